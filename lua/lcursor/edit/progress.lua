-- Shows edits that run: the region, what it is doing, the newest of its lines, in the buffer that
-- it is about. Where several run at the same lines, each is named below them. An edit without a
-- visible buffer is shown by what handles LspProgress, else in the message line.

local highlights = require("lcursor.ui.highlights")
local keymaps = require("lcursor.editor.keymaps")
local lsp_progress = require("lcursor.ui.lsp_progress")
local many = require("lcursor.text").many
local notes = require("lcursor.ui.notes")
local notify = require("lcursor.ui.notify")
local positions = require("lcursor.edit.positions")
local short = require("lcursor.text").short
local wrap = require("lcursor.text.wrap")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.running")
local region_namespace = api.nvim_create_namespace("lcursor.edit.region")
notes.transient[namespace] = true
local FRAME_MS = 120
local MAX_LINES = 8 -- of the written ones
local MAX_TITLE = 40 -- characters
local FRAMES = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" }

---@type lcursor.EditRun[] the oldest first
local runs = {}
local frame, is_animated = 0, false

local PHASES = {
  server = "starting the server",
  context = "reading files",
  queue = "waiting for other requests",
  reading = "reading",
  writing = "writing",
  checking = "checking",
}

---@return string
local function time_left(seconds)
  if seconds < 0 then
    return ""
  elseif seconds < 90 then
    return (", %d s left"):format(math.ceil(seconds))
  end
  return (", %d min left"):format(math.ceil(seconds / 60))
end

--- Say in one line what an edit is doing.
---@param run lcursor.EditRun
---@return string
function M.sentence(run)
  local text = run.is_stopping and "stopping" or PHASES[run.phase] or run.phase
  if run.what ~= "" and (run.phase == "writing" or run.phase == "reading") then
    text = text .. " " .. run.what
  end
  if run.detail ~= "" then
    text = ("%s: %s"):format(text, run.detail)
  end
  if run.total > 0 then
    local unit = run.phase == "writing" and "line" or run.phase == "reading" and "token" or ""
    -- The length of an answer is only guessed: a longer one has no known end.
    local of = run.done <= run.total and ("%d of "):format(run.done) or ""
    local count = math.max(run.done, run.total)
    text = ("%s, %s%s"):format(text, of, unit ~= "" and many(count, unit) or count)
  end
  if run.total == 0 or run.done < run.total then
    text = text .. time_left(run.seconds_left)
  end
  if run.attempt > 1 then
    text = ("%s (attempt %d)"):format(text, run.attempt)
  end
  return text
end

--- Return the rows of the region.
---@param run lcursor.EditRun in a loaded buffer
---@return integer first
---@return integer last
function M.rows(run)
  local opts = { details = true }
  local mark = api.nvim_buf_get_extmark_by_id(run.buf, region_namespace, run.region, opts)
  local first = mark[1] or 0
  return first, math.max(mark[3] and mark[3].end_row or first, first)
end

local function mark_region(run, first, last)
  local count = api.nvim_buf_line_count(run.buf)
  first = math.min(first, count)
  run.region = api.nvim_buf_set_extmark(run.buf, region_namespace, first, 0, {
    id = run.region,
    end_row = math.min(math.max(last, first), count),
    end_col = 0,
    right_gravity = false,
    end_right_gravity = false,
    hl_group = "LCursorEditRegion",
    hl_eol = true,
    priority = 50,
    strict = false,
  })
end

---@return integer head row at whose end it says what it is doing
---@return integer tail row below which its lines stand
local function ends(run)
  local first, last = M.rows(run)
  local bottom = api.nvim_buf_line_count(run.buf) - 1
  if #run.lines == 0 then
    last = math.max(last, first + 1) -- a cursor position has no lines: below its own
  end
  return math.min(first, bottom), math.max(math.min(last - 1, bottom), 0)
end

---@param spinner? string where other edits are at the same lines: it is named
---@param rows lcursor.EditChunk[][] that its own are appended to
local function add_lines(run, spinner, rows)
  local tab, first = (" "):rep(vim.bo[run.buf].tabstop), math.max(#run.lines - MAX_LINES, 0)
  if spinner then
    local name = run.instruction ~= "" and short(run.instruction, MAX_TITLE) .. ": " or ""
    local text = ("  %s %s%s"):format(spinner, name, M.sentence(run))
    vim.list_extend(rows, wrap.rows({ { text, "LCursorEditBadge" } }, notes.width(run.buf), 2))
  end
  if first > 0 then
    table.insert(rows, { { ("  … %s above"):format(many(first, "line")), "LCursorEditBadge" } })
  end
  for i = first + 1, #run.lines do
    local text = run.lines[i]:gsub("\t", tab):gsub("%c", " ")
    table.insert(rows, { { text ~= "" and text or " ", "LCursorEditAdded" } })
  end
end

--- Draw what all edits of a buffer are doing.
local function draw_buffer(buf)
  if not api.nvim_buf_is_loaded(buf) then
    return
  end
  local heads, tails = vim.defaulttable(), vim.defaulttable() -- runs by row
  for _, run in ipairs(runs) do
    if run.buf == buf then
      local head, tail = ends(run)
      table.insert(heads[head], run)
      table.insert(tails[tail], run)
    end
  end
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local spinner = FRAMES[frame % #FRAMES + 1]
  local lhs = keymaps.shown("edit", "stop", buf)
  for row, some in pairs(heads) do
    local text, hint = ("  %s %s"):format(spinner, M.sentence(some[1])), "  %s stops"
    if #some > 1 then
      text, hint = ("  %d edits run here"):format(#some), "  %s stops them"
    end
    hint = lhs and hint:format(lhs) or ""
    local chunks = { { text, "LCursorEditBadge" }, { hint, "LCursorEditKey" } }
    local opts, run = { hl_mode = "combine" }, some[1]
    -- Its text changes all the time: a note that once was too long stays where it is.
    run.is_apart = select(2, notes.set(buf, namespace, row, chunks, opts, run.is_apart))
  end
  for row, some in pairs(tails) do
    local rows = {} -- for one extmark: Neovim keeps no order among several at one row
    for _, run in ipairs(some) do
      local is_alone = #some == 1 and #heads[(ends(run))] == 1
      add_lines(run, not is_alone and spinner or nil, rows)
    end
    if #rows > 0 then
      api.nvim_buf_set_extmark(buf, namespace, row, 0, { virt_lines = rows })
    end
  end
end

---@param run lcursor.EditRun
---@return string token of its `$/progress`
local function token_of(run)
  return "edit " .. tostring(run)
end

--- Show an edit whose buffer is not visible.
---@param run lcursor.EditRun
local function show_elsewhere(run)
  local sentence = M.sentence(run)
  local title = "edit"
    .. (run.instruction ~= "" and ": " .. short(run.instruction, MAX_TITLE) or "")
  local fraction = run.total > 0 and run.done / run.total or nil
  local is_free = not api.nvim_get_mode().mode:find("^[cr]") -- nobody types there
  if lsp_progress.report(token_of(run), title, sentence, fraction) or run.buf then
    return
  elseif run.message ~= sentence and is_free then
    run.message = sentence
    notify.progress(sentence .. " …", false, " (:LCursor edit stop)")
  end
end

--- Draw what an edit is doing.
---@param run lcursor.EditRun
function M.draw(run)
  if run.buf then
    draw_buffer(run.buf)
  end
  if run.buf and vim.fn.bufwinid(run.buf) > 0 then
    lsp_progress.finish(token_of(run))
  else
    show_elsewhere(run)
  end
end

local function animate()
  is_animated = #runs > 0
  if not is_animated then
    return
  end
  notify.later(FRAME_MS, animate)
  frame = frame + 1
  local is_drawn = {}
  for _, run in ipairs(runs) do
    if run.buf and vim.fn.bufwinid(run.buf) < 0 then
      if not lsp_progress.is_shown(token_of(run)) then
        show_elsewhere(run)
      end
    elseif run.buf and not is_drawn[run.buf] then
      is_drawn[run.buf] = true
      draw_buffer(run.buf)
    end
  end
end

--- Begin to show an edit.
---@param run lcursor.EditRun
function M.open(run)
  highlights.apply()
  run.what, run.phase, run.detail, run.lines = "", "context", "", {}
  run.done, run.total, run.seconds_left, run.attempt = 0, 0, -1, 1
  if run.buf then
    mark_region(run, run.first, run.last)
  end
  table.insert(runs, run)
  M.draw(run)
  if not is_animated then
    is_animated = true
    notify.later(FRAME_MS, animate)
  end
end

--- Show the region that will be rewritten.
---@param run lcursor.EditRun
---@param started table the fields of `edit.started`
function M.started(run, started)
  run.what, run.attempt, run.lines = started.what, started.attempt, {}
  local is_first = started.attempt == 1 -- later it is the same region, which has moved since
  if is_first and run.buf and api.nvim_buf_is_loaded(run.buf) then
    local find = positions.finder(run.buf, started.tick)
    local first = find and find(started.first_row, started.first_row + 1)
    local last = find and find(started.last_row - 1, started.last_row)
    mark_region(run, first or started.first_row, last and last + 1 or started.last_row)
  end
  M.draw(run)
end

---@param run lcursor.EditRun
---@param progress table the fields of `edit.progress`
function M.progress(run, progress)
  run.phase, run.detail = progress.phase, progress.detail
  run.done, run.total = progress.done, progress.total
  run.seconds_left, run.attempt = progress.seconds_left, progress.attempt
  M.draw(run)
end

---@param run lcursor.EditRun
---@param delta table the fields of `edit.delta`
function M.delta(run, delta)
  if delta.attempt > run.attempt then
    run.attempt, run.lines = delta.attempt, {}
  end
  vim.list_extend(run.lines, delta.lines)
  if run.buf then
    M.draw(run)
  end
end

--- Remove an edit from the screen.
---@param run lcursor.EditRun
function M.close(run)
  runs = vim.tbl_filter(function(other)
    return other ~= run
  end, runs)
  lsp_progress.finish(token_of(run))
  if not run.buf then
    return notify.progress("")
  end
  if api.nvim_buf_is_valid(run.buf) then
    api.nvim_buf_del_extmark(run.buf, region_namespace, run.region)
  end
  draw_buffer(run.buf)
end

return M
