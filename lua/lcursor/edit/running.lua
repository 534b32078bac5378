-- What is seen of an edit while it runs: its region, what it waits for, the newest of its lines, in
-- the buffer that it is about; in the message line where there is none. Where several run at the
-- same lines, each says below them which it is. Owns these extmarks; the region moves with what is
-- typed. Never the text.

local config = require("lcursor.config")
local highlights = require("lcursor.ui.highlights")
local many = require("lcursor.text").many
local notify = require("lcursor.notify")
local short = require("lcursor.text").short
local trace = require("lcursor.edit.trace")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.running")
local TURN_MS = 120
local MOST_LINES = 8 -- of what is written that are shown
local MOST_TITLE = 40 -- characters
local FRAMES = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" }

---@type table<lcursor.EditView, true>
local views = {}
---@type uv.uv_timer_t?
local timer
local frame, opened = 0, 0

local PHASES = {
  server = "starting the server",
  context = "looking at what is attached",
  reading = "reading",
  writing = "writing",
  checking = "checking",
  planning = "planning",
}

---@param seconds number
---@return string
local function left(seconds)
  if seconds < 0 then
    return ""
  elseif seconds < 90 then
    return (", %d s left"):format(math.ceil(seconds))
  end
  return (", %d min left"):format(math.ceil(seconds / 60))
end

--- What an edit does, in one line.
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
    -- How long an answer becomes is only guessed; what is longer has no end that is known.
    local of = view.done <= view.total and ("%d of "):format(view.done) or ""
    local count = math.max(view.done, view.total)
    count = unit ~= "" and many(count, unit) or tostring(count)
    text = ("%s, %s%s"):format(text, of, count)
  end
  if view.total == 0 or view.done < view.total then
    text = text .. left(view.seconds_left)
  end
  if view.attempt > 1 then
    text = ("%s (attempt %d)"):format(text, view.attempt)
  end
  return text
end

---@param view lcursor.EditView
---@return integer first
---@return integer last
function M.rows(view)
  if view.mark and view.buf and api.nvim_buf_is_loaded(view.buf) then
    local at = api.nvim_buf_get_extmark_by_id(view.buf, namespace, view.mark, { details = true })
    if at[1] then
      return at[1], math.max(at[3].end_row or at[1], at[1])
    end
  end
  return view.first, view.last
end

---@param view lcursor.EditView
---@param first integer
---@param last integer
local function place(view, first, last)
  local count = api.nvim_buf_line_count(view.buf)
  first = math.min(first, count)
  last = math.min(math.max(last, first), count)
  view.first, view.last = first, last
  view.mark = api.nvim_buf_set_extmark(view.buf, namespace, first, 0, {
    id = view.mark,
    end_row = last,
    end_col = 0,
    right_gravity = false,
    end_right_gravity = false,
    hl_group = "LCursorEditRegion",
    hl_eol = true,
    priority = 50,
    strict = false,
  })
end

---@param view lcursor.EditView
---@return string key that stops it; "" for none
local function key(view)
  return view.buf and config.for_buffer(view.buf).edit.mappings.stop or ""
end

---@param view lcursor.EditView
---@return integer head row at whose end it says what it does
---@return integer tail row below which its lines stand
local function ends(view)
  local first, last = M.rows(view)
  local bottom = api.nvim_buf_line_count(view.buf) - 1
  if #view.lines == 0 then
    last = math.max(last, first + 1) -- a cursor, which has no lines: below its own
  end
  return math.min(first, bottom), math.max(math.min(last - 1, bottom), 0)
end

---@param one lcursor.EditView
---@param other lcursor.EditView
---@return boolean
local function is_older(one, other)
  return one.number < other.number
end

--- The edits that say something where a view does, itself among them.
---@param view lcursor.EditView
---@return lcursor.EditView[] heads those at the end of the same line, the oldest first
---@return lcursor.EditView[] tails those below the same line
local function beside(view)
  local head, tail = ends(view)
  local heads, tails = {}, {}
  for other in pairs(views) do
    if other.buf == view.buf then
      local other_head, other_tail = ends(other)
      if other_head == head then
        table.insert(heads, other)
      end
      if other_tail == tail then
        table.insert(tails, other)
      end
    end
  end
  table.sort(heads, is_older)
  table.sort(tails, is_older)
  return heads, tails
end

---@param view lcursor.EditView
---@param name "head"|"tail"
local function erase(view, name)
  if view[name] then
    api.nvim_buf_del_extmark(view.buf, namespace, view[name])
    view[name] = nil
  end
end

---@param view lcursor.EditView
---@param tabs string
---@param rows lcursor.EditChunk[][] that its own are put behind
local function add_lines(view, tabs, rows)
  local first = math.max(#view.lines - MOST_LINES, 0)
  if view.titled ~= "" then
    table.insert(rows, { { "  " .. view.titled, "LCursorEditBadge" } })
  end
  if first > 0 then
    table.insert(rows, { { ("  … %s above"):format(many(first, "line")), "LCursorEditBadge" } })
  end
  for i = first + 1, #view.lines do
    local text = view.lines[i]:gsub("\t", tabs):gsub("%c", " ")
    table.insert(rows, { { text ~= "" and text or " ", "LCursorEditAdded" } })
  end
end

--- Draw what stands below the line where a view has its lines. That is one mark, the oldest one's:
--- of several at one line Neovim shows now this first, now that.
---@param view lcursor.EditView
local function draw_lines(view)
  local tabs, rows = (" "):rep(vim.bo[view.buf].tabstop), {}
  local _, tails = beside(view)
  for i, each in ipairs(tails) do
    add_lines(each, tabs, rows)
    if i > 1 then
      erase(each, "tail")
    end
  end
  local oldest = tails[1]
  if not oldest or #rows == 0 then
    return erase(oldest or view, "tail")
  end
  local _, row = ends(view)
  oldest.tail = api.nvim_buf_set_extmark(view.buf, namespace, row, 0, {
    id = oldest.tail,
    virt_lines = rows,
    strict = false,
  })
end

---@param view lcursor.EditView
local function draw_head(view)
  local sentence = M.sentence(view)
  if not view.buf then
    local is_free = not api.nvim_get_mode().mode:find("^[cr]") -- nobody types there
    if view.drawn ~= sentence and is_free then
      view.drawn = sentence
      notify.progress(sentence .. " … (:LCursor stop)")
    end
    return
  end
  local spin = FRAMES[frame % #FRAMES + 1]
  local together, below = beside(view)
  local text, titled = ("%s %s"):format(spin, sentence), ""
  if #together > 1 or #below > 1 then
    local name = view.title ~= "" and short(view.title, MOST_TITLE) .. ": " or ""
    titled = ("%s %s%s"):format(spin, name, sentence)
  end
  if #together > 1 then
    text = view == together[1] and ("%d edits run here"):format(#together) or ""
  end
  if titled ~= view.titled then
    view.titled = titled
    draw_lines(view)
  end
  if text == view.drawn then
    return
  end
  view.drawn = text
  if text == "" then
    return erase(view, "head")
  end
  local lhs = key(view)
  local how = lhs ~= "" and ("  %s stops%s"):format(lhs, #together > 1 and " them" or "") or ""
  view.head = api.nvim_buf_set_extmark(view.buf, namespace, (ends(view)), 0, {
    id = view.head,
    virt_text = { { "  " .. text, "LCursorEditBadge" }, { how, "LCursorEditKey" } },
    virt_text_pos = "eol",
    hl_mode = "combine",
    strict = false,
  })
end

---@param view lcursor.EditView
---@return boolean
local function is_alive(view)
  return not view.buf or api.nvim_buf_is_loaded(view.buf)
end

--- Another one of a buffer came, moved or went: what each says may be said elsewhere now.
---@param buf? integer
local function draw_all(buf)
  for view in pairs(views) do
    if view.buf == buf and is_alive(view) then
      draw_head(view)
    end
  end
  for view in pairs(views) do
    if buf and view.buf == buf and is_alive(view) then
      draw_lines(view)
    end
  end
end

local function turn()
  frame = frame + 1
  for view in pairs(views) do
    local is_seen = view.buf and is_alive(view) and vim.fn.bufwinid(view.buf) > 0
    if is_seen then
      draw_head(view)
    end
  end
end

local function wind()
  if next(views) and not timer then
    timer = assert(vim.uv.new_timer())
    timer:start(TURN_MS, TURN_MS, vim.schedule_wrap(notify.guarded(turn)))
  elseif not next(views) and timer then
    timer:close()
    timer = nil
  end
end

--- Begin to show an edit.
---@param buf? integer nil for one that is about no buffer
---@param first integer row of what was selected, or of the cursor
---@param last integer behind it
---@param title? string what tells it from another one at the same lines
---@return lcursor.EditView
function M.open(buf, first, last, title)
  highlights.apply()
  opened = opened + 1
  ---@type lcursor.EditView
  local view = {
    buf = buf,
    number = opened,
    title = title or "",
    tick = buf and trace.remember(buf) or -1,
    first = first,
    last = last,
    what = "",
    phase = "context",
    detail = "",
    done = 0,
    total = 0,
    seconds_left = -1,
    attempt = 1,
    lines = {},
    is_stopping = false,
    drawn = "",
    titled = "",
  }
  if buf then
    place(view, first, math.max(last, first))
  end
  views[view] = true
  draw_all(buf)
  wind()
  return view
end

--- The region that is written anew is known.
---@param view lcursor.EditView
---@param started table the fields of `edit.started`
function M.started(view, started)
  view.what, view.attempt, view.lines = started.what, started.attempt, {}
  if not view.buf then
    return draw_head(view)
  elseif not is_alive(view) then
    return
  end
  if started.attempt > 1 then
    draw_lines(view)
    return draw_head(view) -- the same rows, which have moved since
  end
  local find = trace.finder(view.buf, {
    path = started.path,
    name = "",
    kind = "edit",
    to = "",
    base = "-",
    tick = started.tick,
    changes = {},
    checks = {},
    is_outside = false,
  })
  local first = find and find(started.first_row, started.first_row + 1)
  local last = find and find(started.last_row - 1, started.last_row)
  place(view, first or started.first_row, last and last + 1 or started.last_row)
  view.drawn = "" -- it is said in another row
  draw_all(view.buf)
end

---@param view lcursor.EditView
---@param progress table the fields of `edit.progress`
function M.progress(view, progress)
  view.phase, view.detail = progress.phase, progress.detail
  view.done, view.total = progress.done, progress.total
  view.seconds_left, view.attempt = progress.seconds_left, progress.attempt
  if is_alive(view) then
    draw_head(view)
  end
end

---@param view lcursor.EditView
---@param delta table the fields of `edit.delta`
function M.delta(view, delta)
  if delta.attempt > view.attempt then
    view.attempt, view.lines = delta.attempt, {}
  end
  vim.list_extend(view.lines, delta.lines)
  if view.buf and is_alive(view) then
    draw_lines(view)
  end
end

--- It is told to stop.
---@param view lcursor.EditView
function M.stopping(view)
  view.is_stopping = true
  if is_alive(view) then
    draw_head(view)
  end
end

--- Take it off the screen.
---@param view lcursor.EditView
function M.close(view)
  if not views[view] then
    return
  end
  views[view] = nil
  wind()
  if not view.buf then
    return notify.progress("")
  end
  view.first, view.last = M.rows(view)
  trace.forget(view.buf, view.tick)
  for _, mark in ipairs({ view.mark or -1, view.head or -1, view.tail or -1 }) do
    if mark >= 0 and api.nvim_buf_is_valid(view.buf) then
      api.nvim_buf_del_extmark(view.buf, namespace, mark)
    end
  end
  view.mark, view.head, view.tail = nil, nil, nil
  draw_all(view.buf)
end

return M
