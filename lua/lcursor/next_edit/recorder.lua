-- Records what the user changes, as finished edits: the lines before and after. A key only extends
-- the range of changed rows; lines are compared at the boundary of an edit: in Normal mode after
-- each change, in Insert mode at its end, at a write, when the cursor leaves the line, or when it
-- rests outside of the changed name.

local delays = require("lcursor.next_edit.delays")
local diff = require("lcursor.text.diff")
local notify = require("lcursor.ui.notify")
local timers = require("lcursor.editor.timer")
local undo = require("lcursor.editor.undo")

local M = {}

local api = vim.api
local MAX_LINES = 20 -- of an edit; a larger one is no cause of another
local MAX_EDITS, MAX_MS = 60, 5 * 60 * 1000

---@class (exact) lcursor.NextEdit as on the wire, and when it was made
---@field path string
---@field row integer when it was made
---@field old string[]
---@field new string[]
---@field is_accepted boolean
---@field at_ms integer
---@field order integer number, over all buffers
---@field before integer number of the change before it
---@field number integer that of its last change

---@class (exact) lcursor.ChangedRows
---@field first integer
---@field last integer of the text at the last boundary
---@field now integer the row after the last changed one

---@class (exact) lcursor.Recorded of a buffer
---@field lines? string[] the text at the last boundary; nil in a buffer without edits that is left
---@field edits lcursor.NextEdit[]
---@field undone lcursor.NextEdit[] those that a redo makes again, the next one last
---@field changed? lcursor.ChangedRows since the last boundary
---@field top integer the highest number of a change
---@field number integer that of the last boundary
---@field due? lcursor.Boundary to be reported when the cursor rests

---@alias lcursor.Boundary "edit"|"undo"|"other" an edit of the user; undo or redo; a change that is
---no edit: too large, or by another program

---@type table<integer, lcursor.Recorded> by buffer
local recorded = {}
---@type fun(buf: integer, kind: lcursor.Boundary)
local on_boundary
local count = 0 -- of edits
local is_block = false -- Insert mode for all lines of a block, which change when it ends
local is_writing = false -- formatters may run

--- Read the text of a buffer, if it is the current one, and forget its edits.
---@param it lcursor.Recorded
local function read(buf, it)
  local is_current = buf == api.nvim_get_current_buf()
  it.lines = is_current and api.nvim_buf_get_lines(buf, 0, -1, false) or nil
  it.edits, it.undone, it.changed, it.due = {}, {}, nil, nil
  it.number = undo.number(buf)
  it.top = it.number
end

--- Record the changes of a buffer. Called at each BufEnter: the text of a buffer without edits is
--- read again then.
---@param buf integer loaded
function M.attach(buf)
  local it = recorded[buf] or {} --[[@as lcursor.Recorded]]
  if not it.lines then
    read(buf, it)
  end
  if recorded[buf] then
    return
  end
  recorded[buf] = it
  api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last, now)
      local range = it.changed
      if recorded[buf] ~= it then
        return true
      elseif not range then
        it.changed = { first = first, last = last, now = now }
        return
      elseif last > range.now then
        range.last, range.now = range.last + last - range.now, last
      end
      range.first, range.now = math.min(range.first, first), range.now + now - last
    end,
    on_reload = function()
      vim.schedule(notify.guarded(function()
        if recorded[buf] == it and api.nvim_buf_is_loaded(buf) then
          read(buf, it)
          on_boundary(buf, "other")
        end
      end))
    end,
    on_detach = function()
      if recorded[buf] == it then
        recorded[buf] = nil
      end
    end,
  })
end

function M.is_attached(buf)
  return recorded[buf] ~= nil
end

---@return boolean whether an edit has not ended yet
function M.is_changed(buf)
  return recorded[buf] ~= nil and recorded[buf].changed ~= nil
end

--- Forget the edits of a buffer.
function M.detach(buf)
  recorded[buf] = nil
end

---@param edit lcursor.NextEdit
---@return boolean whether it is not too old to cause another
local function counts(edit)
  return vim.uv.now() - edit.at_ms <= MAX_MS
end

--- Return the last edits of all buffers, oldest first.
---@return lcursor.NextEdit[]
function M.edits()
  local found = {}
  for _, it in pairs(recorded) do
    vim.list_extend(found, vim.tbl_filter(counts, it.edits))
  end
  table.sort(found, function(one, other)
    return one.order < other.order
  end)
  return found
end

--- Return the buffers with such edits.
---@return integer[]
function M.edited()
  return vim.tbl_filter(function(buf)
    return vim.iter(recorded[buf].edits):any(counts)
  end, vim.tbl_keys(recorded))
end

--- Return whether the last undo in a buffer took back what the user wrote.
function M.is_taken_back(buf)
  local undone = recorded[buf].undone
  return #undone > 0 and not undone[#undone].is_accepted
end

--- Return the last edit of a buffer.
---@return lcursor.NextEdit?
function M.last(buf)
  local edits = recorded[buf].edits
  return edits[#edits]
end

--- Replace the changed rows of the recorded text, and return what changed.
---@return lcursor.NextEdit? nil if nothing did
local function take(buf, it)
  local range, old_lines = it.changed, it.lines
  it.changed = nil
  if not range or not old_lines then
    return nil
  end
  local by = api.nvim_buf_line_count(buf) - #old_lines
  local new = api.nvim_buf_get_lines(buf, range.first, range.last + by, false)
  local old = vim.list_slice(old_lines, range.first + 1, range.last)
  if by == 0 then
    for i, line in ipairs(new) do
      old_lines[range.first + i] = line
    end
  else
    local lines = vim.list_slice(old_lines, 1, range.first)
    vim.list_extend(lines, new)
    it.lines = vim.list_extend(lines, old_lines, range.last + 1)
  end
  local head, tail = diff.equal_ends(old, new)
  if #old == head + tail and #new == head + tail then
    return nil
  end
  return {
    path = api.nvim_buf_get_name(buf),
    row = range.first + head,
    old = vim.list_slice(old, head + 1, #old - tail),
    new = vim.list_slice(new, head + 1, #new - tail),
    is_accepted = false,
    at_ms = vim.uv.now(),
    order = count,
    before = 0,
    number = 0,
  }
end

--- Add an edit; one of the same rows as the last one continues that.
---@param edit lcursor.NextEdit
local function add(it, edit)
  local last = it.edits[#it.edits]
  local is_more = last
    and not last.is_accepted
    and not edit.is_accepted
    and last.row == edit.row
    and #last.new == #edit.old
    and #edit.new == #edit.old
  if is_more then
    last.new, last.at_ms, last.number = edit.new, edit.at_ms, edit.number
    if diff.is_same(last.old, last.new) then
      table.remove(it.edits)
    end
    return
  end
  table.insert(it.edits, edit)
  while #it.edits > MAX_EDITS or not counts(it.edits[1]) do
    table.remove(it.edits, 1)
  end
end

--- Move edits that were undone to `undone`, or those that were made again back.
---@param before integer number of the last change
---@param number integer of the current one
---@return boolean whether these edits are all that changed
local function travel(it, before, number)
  local is_undo = number < before
  local from, to = it.edits, it.undone
  if not is_undo then
    from, to = to, from
  end
  for i, edit in ipairs(from) do
    local is_first = is_undo and edit.before == number or not is_undo and edit.number == number
    if is_first and (is_undo or from[#from].before == before) then
      while #from >= i do
        table.insert(to, table.remove(from))
      end
      return true
    end
  end
  return false
end

--- End the current edit of a buffer.
---@param is_accepted? boolean whether it was a proposal
---@return lcursor.Boundary? nil if nothing changed
function M.finish(buf, is_accepted)
  local it = recorded[buf]
  if not it or not it.changed then
    return nil
  end
  local before, number = it.number, undo.number(buf)
  local is_undo = number < it.top or number < before or (number > before and number <= it.top)
  it.number, it.top = number, math.max(it.top, number)
  count = count + 1
  local edit = take(buf, it)
  if not edit then
    return nil
  elseif is_undo and travel(it, before, number) then
    return "undo"
  end
  it.undone = {}
  if is_writing or math.max(#edit.old, #edit.new) > MAX_LINES then
    it.edits = {}
    return "other"
  end
  edit.is_accepted, edit.before, edit.number = is_accepted or false, before, number
  add(it, edit)
  return is_undo and "undo" or "edit"
end

--- End the current edit, and report it.
local function boundary(buf)
  local kind, it = M.finish(buf), recorded[buf]
  if it then
    kind, it.due = kind or it.due, nil
  end
  if kind then
    on_boundary(buf, kind)
  end
end

---@return boolean whether the cursor is inside or at the end of a name
local function is_in_name()
  local row, col = unpack(api.nvim_win_get_cursor(0))
  local line = api.nvim_buf_get_lines(0, row - 1, row, false)[1] or ""
  return line:sub(1, col):find("[%w_\128-\255]$") ~= nil
end

---@return boolean whether the cursor is in the changed rows
local function is_in_change(range)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  return row >= range.first and row < math.max(range.now, range.first + 1)
end

local rest_later = timers.new(function()
  local buf = api.nvim_get_current_buf()
  local it = recorded[buf]
  if not it or is_block or api.nvim_get_mode().mode ~= "i" then
    return
  elseif it.changed and is_in_change(it.changed) and is_in_name() then
    return
  end
  local kind = M.finish(buf) or it.due
  it.due = nil
  if kind then
    on_boundary(buf, kind)
  end
end)

--- A key in Insert mode.
local function on_key(event)
  local it = recorded[event.buf]
  if not it or is_block or not (it.changed or it.due) then
    return
  elseif it.changed and not is_in_change(it.changed) then
    it.due = M.finish(event.buf) or it.due
  end
  rest_later(delays.rest)
end

--- Report boundaries until Neovim ends.
---@param callback fun(buf: integer, kind: lcursor.Boundary)
function M.start(callback)
  on_boundary = callback
  local on = notify.autocmds("next_edit.recorder")
  on({ "TextChangedI", "CursorMovedI" }, on_key)
  on("ModeChanged", function()
    local old, new = vim.v.event.old_mode, vim.v.event.new_mode
    local buf = api.nvim_get_current_buf()
    local it = recorded[buf]
    if new == "i" and not vim.startswith(old, "ni") then
      is_block = old == "\22"
    elseif it and old == "i" and new == "n" and not is_block then
      it.due = M.finish(buf) or it.due -- at InsertLeave autocommands of the user may write the file
    end
  end)
  on({ "InsertLeave", "TextChanged" }, function(event)
    if event.event == "TextChanged" then
      is_block = false
    elseif is_block then
      return
    end
    boundary(event.buf)
    is_writing = false
  end)
  on("User", function(event)
    vim.schedule(notify.guarded(function()
      boundary(event.data.buf)
    end))
  end, { pattern = "LCursorCompletionAccept" })
  on("BufLeave", function(event)
    local it = recorded[event.buf]
    if it and #it.edits == 0 and not it.changed then
      it.lines, it.undone = nil, {}
    end
  end)
  on("BufWritePre", function(event)
    local it = recorded[event.buf]
    if it and api.nvim_get_mode().mode:sub(1, 1) == "i" then
      it.due = M.finish(event.buf) or it.due
    end
    is_writing = true
  end)
  on("BufWritePost", function(event)
    boundary(event.buf)
    is_writing = false
  end)
end

return M
