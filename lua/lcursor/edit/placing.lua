-- Where the hunks of a file are in its buffer, and what has become of each: still what it was
-- (open), other text by now (conflict), or taken back with `u` after it was accepted.
-- Changes hunks, never the buffer.

local anchor = require("lcursor.edit.anchor")
local diff = require("lcursor.edit.diff")
local direct = require("lcursor.edit.direct")
local trace = require("lcursor.edit.trace")

local M = {}

local api = vim.api
local AT_ONCE = 1000 -- lines

---@type table<lcursor.EditPart, integer> number of the highest change of its buffer that was seen
local tops = setmetatable({}, { __mode = "k" })
---@type table<lcursor.EditPart, integer> number of the last one
local lasts = setmetatable({}, { __mode = "k" })

--- What a proposal does to a file; its hunks wait for a buffer.
---@param turn lcursor.EditTurn
---@param file lcursor.EditFile
---@return lcursor.EditPart
function M.part(turn, file)
  ---@type lcursor.EditPart
  local part = { turn = turn, file = file, hunks = {}, state = "waiting" }
  for _, change in ipairs(file.changes) do
    local hunk = anchor.span(change.first_row, change.last_row) --[[@as lcursor.Hunk]]
    hunk.part, hunk.base_row, hunk.state = part, change.first_row, "waiting"
    hunk.old, hunk.new = change.old, change.new
    hunk.above, hunk.below, hunk.seq, hunk.marks = {}, {}, 0, {}
    table.insert(part.hunks, hunk)
  end
  return part
end

---@param buf integer
---@param row integer
---@return string "" where there is no line, which is no line's text: `\n` never is
local function at(buf, row)
  local line = row >= 0 and api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
  return line or "\n"
end

--- Learn what stands around a hunk that adds lines.
---@param buf integer
---@param hunk lcursor.Hunk
local function learn(buf, hunk)
  if #hunk.old == 0 then
    hunk.above[at(buf, hunk.first - 1)] = true
    hunk.below[at(buf, hunk.last)] = true
  end
end

--- We have changed the buffer ourselves: other hunks have other neighbours now, and rightly so.
---@param buf integer
---@param hunks lcursor.Hunk[]
function M.learn(buf, hunks)
  for _, hunk in ipairs(hunks) do
    if hunk.state == "open" then
      learn(buf, hunk)
    end
  end
end

---@param buf integer
---@param hunk lcursor.Hunk
---@param row integer
---@return boolean above whether it still is below a line that it was below
---@return boolean below
local function sides(buf, hunk, row)
  return hunk.above[at(buf, row - 1)] == true, hunk.below[at(buf, row)] == true
end

---@param buf integer
---@param hunk lcursor.Hunk
---@return integer? row where its old lines are
local function find(buf, hunk)
  if #hunk.old > 0 then
    return anchor.find(buf, hunk, hunk.old)
  elseif hunk.is_exact then
    local is_above, is_below = sides(buf, hunk, hunk.first)
    return (is_above or is_below) and hunk.first or nil
  end
  local row = hunk.first + hunk.head
  local is_above, is_below = sides(buf, hunk, row)
  return row + hunk.tail == hunk.last and is_above and is_below and row or nil
end

---@param buf integer
---@param hunk lcursor.Hunk
local function weigh(buf, hunk)
  local row = find(buf, hunk)
  if row then
    -- One that may be redone takes what is written next to it as its own: that may be the redo.
    anchor.set(hunk, row, row + #hunk.old, hunk.seq == 0)
  end
  hunk.state = row and "open" or "conflict"
  hunk.is_dirty = false
end

--- Whether a hunk still is what is shown, asked right before it is made.
---@param buf integer
---@param hunk lcursor.Hunk
---@return boolean
function M.is_sure(buf, hunk)
  return hunk.state == "open"
    and hunk.last - hunk.first == #hunk.old
    and find(buf, hunk) == hunk.first
end

--- It is nowhere: nothing that is typed brings it back. It is shown at the line where its own would
--- begin, as an area of no lines below that.
---@param buf integer
---@param hunk lcursor.Hunk
local function lose(buf, hunk)
  local row = hunk.base_row + (#hunk.old > 0 and 1 or 0)
  local guess = math.min(row, api.nvim_buf_line_count(buf))
  hunk.above, hunk.below = {}, {}
  anchor.forget(buf, hunk)
  anchor.set(hunk, guess, guess)
end

---@param buf integer
---@param hunk lcursor.Hunk
---@param row? integer
local function put(buf, hunk, row)
  if not row then
    hunk.state = "conflict"
    return lose(buf, hunk)
  end
  anchor.set(hunk, row, row + #hunk.old)
  hunk.state, hunk.above, hunk.below = "open", {}, {}
  if diff.is_same(api.nvim_buf_get_lines(buf, row, row + #hunk.old, false), hunk.old) then
    learn(buf, hunk)
    return anchor.keep(buf, hunk)
  end
  put(buf, hunk, nil)
end

--- The base with the accepted hunks in it, and where each hunk is there.
---@param part lcursor.EditPart with a base
---@return string[]
---@return table<lcursor.Hunk, integer>
local function expected(part)
  local changes, rows, by = {}, {}, 0
  for _, hunk in ipairs(part.hunks) do
    rows[hunk] = hunk.base_row + by
    if hunk.state == "accepted" then
      local last = hunk.base_row + #hunk.old
      local change = { first_row = hunk.base_row, last_row = last, old = hunk.old, new = hunk.new }
      table.insert(changes, change)
      by = by + #hunk.new - #hunk.old
    end
  end
  return diff.apply(part.base, changes) or part.base, rows
end

---@param old string[]
---@param new string[]
---@return fun(first: integer, last: integer): integer?
local function finder(old, new)
  if diff.is_same(old, new) then
    return function(first)
      return first
    end
  end
  return diff.finder(old, new)
end

--- Put the hunks of a file into its buffer, which has just been read, or was there when they came.
---@param part lcursor.EditPart
---@param buf integer watched
---@return lcursor.Hunk[] undone accepted before, and not in this text
function M.place(part, buf)
  part.buf, part.state = buf, "placed"
  local number = direct.number(buf)
  tops[part], lasts[part] = math.max(tops[part] or 0, number), number
  local undone = {}
  if not part.base then
    local find_row
    find_row, part.base = trace.finder(buf, part.file)
    for _, hunk in ipairs(part.hunks) do
      put(buf, hunk, find_row and find_row(hunk.base_row, hunk.base_row + #hunk.old))
    end
    return undone
  end
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  local text, rows = expected(part)
  local now, before = finder(text, lines), finder(part.base, lines)
  for _, hunk in ipairs(part.hunks) do
    if hunk.state == "accepted" then
      local row = now(rows[hunk], rows[hunk] + #hunk.new)
      local old_row = not row and before(hunk.base_row, hunk.base_row + #hunk.old)
      if row then
        anchor.set(hunk, row, row + #hunk.new, false)
        anchor.keep(buf, hunk)
      elseif old_row then
        hunk.seq = 0
        put(buf, hunk, old_row)
        table.insert(undone, hunk)
      else
        lose(buf, hunk)
      end
    elseif hunk.state ~= "rejected" then
      put(buf, hunk, now(rows[hunk], rows[hunk] + #hunk.old))
    end
  end
  return undone
end

---@param buf integer
---@param hunk lcursor.Hunk open or in conflict, once accepted
---@return boolean whether `<C-r>` made it again
local function is_redone(buf, hunk)
  if #hunk.new == 0 then
    return hunk.last - hunk.first == 0 and not hunk.is_exact
  end
  local row = anchor.find(buf, hunk, hunk.new)
  if row then
    anchor.set(hunk, row, row + #hunk.new, false)
  end
  return row ~= nil
end

---@param buf integer
---@param lines string[]
---@return boolean whether that is its text; of a long one no more is read than has to be
local function is_text(buf, lines)
  for first = 0, math.max(#lines - 1, 0), AT_ONCE do
    local last = first + AT_ONCE < #lines and first + AT_ONCE or -1
    local some = last < 0 and first == 0 and lines
      or vim.list_slice(lines, first + 1, last < 0 and #lines or last)
    if not diff.is_same(api.nvim_buf_get_lines(buf, first, last, false), some) then
      return false
    end
  end
  return true
end

--- After an undo the text may be what it was, though its way there was not to be followed: then the
--- rows are known.
---@param part lcursor.EditPart
---@param buf integer
local function recall(part, buf)
  local is_lost = false
  for _, hunk in ipairs(part.hunks) do
    is_lost = is_lost or hunk.state == "conflict"
  end
  if not is_lost or not part.base then
    return
  end
  local count = #part.base
  for _, hunk in ipairs(part.hunks) do
    count = count + (hunk.state == "accepted" and #hunk.new - #hunk.old or 0)
  end
  if math.max(count, 1) ~= api.nvim_buf_line_count(buf) then
    return
  end
  local text, rows = expected(part)
  if is_text(buf, text) then
    for _, hunk in ipairs(part.hunks) do
      if hunk.state == "conflict" then
        local seq = hunk.seq
        put(buf, hunk, rows[hunk])
        hunk.seq, hunk.is_exact = seq, seq == 0
      end
    end
  end
end

--- The buffer has changed: see what has become of its hunks. Runs at each keystroke.
---@param buf integer
---@param part lcursor.EditPart
---@param number integer of the buffer's latest change
---@return lcursor.Hunk[] undone with `u`, and waiting again
---@return lcursor.Hunk[] redone with `<C-r>`
---@return boolean is_other whether any has to be redrawn
function M.look(buf, part, number)
  local hunks, undone, redone, is_other = part.hunks, {}, {}, false
  local is_new = number > (tops[part] or 0)
  tops[part] = math.max(number, tops[part] or 0)
  for _, hunk in ipairs(hunks) do
    local is_waiting = hunk.state == "open" or hunk.state == "conflict"
    if hunk.state == "accepted" and number < hunk.seq then
      weigh(buf, hunk)
      table.insert(undone, hunk)
    elseif is_waiting and (hunk.is_dirty or (is_new and hunk.seq > 0)) then
      is_other = true
      if is_new then
        hunk.seq = 0 -- what was undone cannot be redone after something else
      end
      if hunk.seq > 0 and number >= hunk.seq and not find(buf, hunk) and is_redone(buf, hunk) then
        hunk.state = "accepted"
        table.insert(redone, hunk)
      else
        weigh(buf, hunk)
      end
    end
  end
  if number < (lasts[part] or 0) then
    recall(part, buf)
    is_other = true
  end
  lasts[part] = number
  return undone, redone, is_other or #undone > 0
end

return M
