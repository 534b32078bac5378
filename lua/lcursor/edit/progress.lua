-- Shows edits that run: the region, what it is doing, the newest of its lines, in the buffer that
-- it is about; in the message line where there is none. Where several run at the same lines, each
-- is named below them.

local config = require("lcursor.config")
local highlights = require("lcursor.ui.highlights")
local many = require("lcursor.text").many
local notify = require("lcursor.notify")
local place = require("lcursor.edit.place")
local short = require("lcursor.text").short

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.running")
local region_namespace = api.nvim_create_namespace("lcursor.edit.region")
local FRAME_MS = 120
local MAX_LINES = 8 -- of the written ones
local MAX_TITLE = 40 -- characters
local FRAMES = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" }

---@class (exact) lcursor.EditView
---@field buf? integer nil: it is about no buffer
---@field title string what was asked for; "" where nothing was
---@field tick integer of the base
---@field region? integer extmark; moves with what is typed
---@field what string
---@field phase string
---@field detail string
---@field done integer
---@field total integer
---@field seconds_left number
---@field attempt integer
---@field lines string[] written at this attempt
---@field is_stopping boolean
---@field message? string what the message line shows

---@type lcursor.EditView[] the oldest first
local views = {}
---@type uv.uv_timer_t?
local timer
local frame = 0

local PHASES = {
  server = "starting the server",
  context = "looking at what is attached",
  reading = "reading",
  writing = "writing",
  checking = "checking",
  planning = "planning",
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
---@param view lcursor.EditView
---@return string
function M.sentence(view)
  local text = view.is_stopping and "stopping" or PHASES[view.phase] or view.phase
  if view.what ~= "" and (view.phase == "writing" or view.phase == "reading") then
    text = text .. " " .. view.what
  end
  if view.detail ~= "" then
    text = ("%s: %s"):format(text, view.detail)
  end
  if view.total > 0 then
    local unit = view.phase == "writing" and "line" or view.phase == "reading" and "token" or ""
    -- The length of an answer is only guessed: a longer one has no known end.
    local of = view.done <= view.total and ("%d of "):format(view.done) or ""
    local count = math.max(view.done, view.total)
    text = ("%s, %s%s"):format(text, of, unit ~= "" and many(count, unit) or count)
  end
  if view.total == 0 or view.done < view.total then
    text = text .. time_left(view.seconds_left)
  end
  if view.attempt > 1 then
    text = ("%s (attempt %d)"):format(text, view.attempt)
  end
  return text
end

--- Return the rows of the region.
---@param view lcursor.EditView in a loaded buffer
---@return integer first
---@return integer last
function M.rows(view)
  local opts = { details = true }
  local mark = api.nvim_buf_get_extmark_by_id(view.buf, region_namespace, view.region, opts)
  local first = mark[1] or 0
  return first, math.max(mark[3] and mark[3].end_row or first, first)
end

local function place_region(view, first, last)
  local count = api.nvim_buf_line_count(view.buf)
  first = math.min(first, count)
  view.region = api.nvim_buf_set_extmark(view.buf, region_namespace, first, 0, {
    id = view.region,
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
local function ends(view)
  local first, last = M.rows(view)
  local bottom = api.nvim_buf_line_count(view.buf) - 1
  if #view.lines == 0 then
    last = math.max(last, first + 1) -- a cursor position has no lines: below its own
  end
  return math.min(first, bottom), math.max(math.min(last - 1, bottom), 0)
end

---@param spinner? string where other edits are at the same lines: it is named
---@param rows lcursor.EditChunk[][] that its own are appended to
local function add_lines(view, spinner, rows)
  local tab, first = (" "):rep(vim.bo[view.buf].tabstop), math.max(#view.lines - MAX_LINES, 0)
  if spinner then
    local name = view.title ~= "" and short(view.title, MAX_TITLE) .. ": " or ""
    local text = ("  %s %s%s"):format(spinner, name, M.sentence(view))
    table.insert(rows, { { text, "LCursorEditBadge" } })
  end
  if first > 0 then
    table.insert(rows, { { ("  … %s above"):format(many(first, "line")), "LCursorEditBadge" } })
  end
  for i = first + 1, #view.lines do
    local text = view.lines[i]:gsub("\t", tab):gsub("%c", " ")
    table.insert(rows, { { text ~= "" and text or " ", "LCursorEditAdded" } })
  end
end

--- Draw what all edits of a buffer are doing.
local function draw_buffer(buf)
  if not api.nvim_buf_is_loaded(buf) then
    return
  end
  local heads, tails = vim.defaulttable(), vim.defaulttable() -- views by row
  for _, view in ipairs(views) do
    if view.buf == buf then
      local head, tail = ends(view)
      table.insert(heads[head], view)
      table.insert(tails[tail], view)
    end
  end
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local spinner = FRAMES[frame % #FRAMES + 1]
  local lhs = config.for_buffer(buf).edit.mappings.stop or ""
  for row, some in pairs(heads) do
    local text, hint = ("  %s %s"):format(spinner, M.sentence(some[1])), "  %s stops"
    if #some > 1 then
      text, hint = ("  %d edits run here"):format(#some), "  %s stops them"
    end
    hint = lhs ~= "" and hint:format(lhs) or ""
    api.nvim_buf_set_extmark(buf, namespace, row, 0, {
      virt_text = { { text, "LCursorEditBadge" }, { hint, "LCursorEditKey" } },
      hl_mode = "combine",
    })
  end
  for row, some in pairs(tails) do
    local rows = {} -- for one extmark: Neovim keeps no order among several at one row
    for _, view in ipairs(some) do
      local is_alone = #some == 1 and #heads[(ends(view))] == 1
      add_lines(view, not is_alone and spinner or nil, rows)
    end
    if #rows > 0 then
      api.nvim_buf_set_extmark(buf, namespace, row, 0, { virt_lines = rows })
    end
  end
end

local function draw(view)
  if view.buf then
    return draw_buffer(view.buf)
  end
  local sentence = M.sentence(view)
  local is_free = not api.nvim_get_mode().mode:find("^[cr]") -- nobody types there
  if view.message ~= sentence and is_free then
    view.message = sentence
    notify.progress(sentence .. " … (:LCursor stop)")
  end
end

local function animate()
  frame = frame + 1
  local is_drawn = {}
  for _, view in ipairs(views) do
    if view.buf and not is_drawn[view.buf] and vim.fn.bufwinid(view.buf) > 0 then
      is_drawn[view.buf] = true
      draw_buffer(view.buf)
    end
  end
end

local function start_or_stop_timer()
  if #views > 0 and not timer then
    timer = assert(vim.uv.new_timer())
    timer:start(FRAME_MS, FRAME_MS, vim.schedule_wrap(notify.guarded(animate)))
  elseif #views == 0 and timer then
    timer:close()
    timer = nil
  end
end

--- Begin to show an edit.
---@param buf? integer nil for one that is about no buffer
---@param first integer row of what was selected, or of the cursor
---@param last integer
---@param title? string what distinguishes it from another one at the same lines
---@return lcursor.EditView
function M.open(buf, first, last, title)
  highlights.apply()
  ---@type lcursor.EditView
  local view = {
    buf = buf,
    title = title or "",
    tick = buf and place.remember(buf) or -1,
    what = "",
    phase = "context",
    detail = "",
    done = 0,
    total = 0,
    seconds_left = -1,
    attempt = 1,
    lines = {},
    is_stopping = false,
  }
  if buf then
    place_region(view, first, last)
  end
  table.insert(views, view)
  draw(view)
  start_or_stop_timer()
  return view
end

--- Show the region that will be rewritten.
---@param view lcursor.EditView
---@param started table the fields of `edit.started`
function M.started(view, started)
  view.what, view.attempt, view.lines = started.what, started.attempt, {}
  local is_first = started.attempt == 1 -- later it is the same region, which has moved since
  if is_first and view.buf and api.nvim_buf_is_loaded(view.buf) then
    local find = place.finder(view.buf, started.tick)
    local first = find and find(started.first_row, started.first_row + 1)
    local last = find and find(started.last_row - 1, started.last_row)
    place_region(view, first or started.first_row, last and last + 1 or started.last_row)
  end
  draw(view)
end

---@param view lcursor.EditView
---@param progress table the fields of `edit.progress`
function M.progress(view, progress)
  view.phase, view.detail = progress.phase, progress.detail
  view.done, view.total = progress.done, progress.total
  view.seconds_left, view.attempt = progress.seconds_left, progress.attempt
  draw(view)
end

---@param view lcursor.EditView
---@param delta table the fields of `edit.delta`
function M.delta(view, delta)
  if delta.attempt > view.attempt then
    view.attempt, view.lines = delta.attempt, {}
  end
  vim.list_extend(view.lines, delta.lines)
  if view.buf then
    draw(view)
  end
end

--- Show that an edit was told to stop.
---@param view lcursor.EditView
function M.stopping(view)
  view.is_stopping = true
  draw(view)
end

--- Remove an edit from the screen.
---@param view lcursor.EditView
function M.close(view)
  views = vim.tbl_filter(function(other)
    return other ~= view
  end, views)
  start_or_stop_timer()
  if not view.buf then
    return notify.progress("")
  end
  place.forget(view.buf, view.tick)
  if api.nvim_buf_is_valid(view.buf) then
    api.nvim_buf_del_extmark(view.buf, region_namespace, view.region)
  end
  draw(view)
end

return M
