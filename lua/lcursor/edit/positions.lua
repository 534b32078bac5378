-- Finds the hunks of a proposal in a buffer, and says what became of each: still possible (open),
-- its lines were modified (conflict), or undone with `u` after it was accepted. Changes hunks,
-- never the buffer.

local buffers = require("lcursor.edit.buffers")
local diff = require("lcursor.diff")
local track = require("lcursor.edit.track")

local M = {}

local api = vim.api

---@alias lcursor.FindRow fun(first: integer, last: integer): integer?

---@class (exact) lcursor.EditSnapshot a text that was sent to the backend
---@field buf integer
---@field tick integer
---@field lines string[]

---@type table<lcursor.EditSnapshot, true> those that the edits still keep
local snapshots = setmetatable({}, { __mode = "k" })

--- Return the text of a buffer as it is sent; it can be found as long as the caller keeps it.
---@param buf integer
---@return lcursor.EditSnapshot
function M.snapshot(buf)
  local tick = api.nvim_buf_get_changedtick(buf)
  local snapshot = { buf = buf, tick = tick, lines = buffers.lines(buf) }
  snapshots[snapshot] = true
  return snapshot
end

--- Return a function that finds rows of the base of a file in its buffer, and the base's lines.
---@param buf integer
---@param tick integer of the base; -1 where it is a file on disk
---@param file? lcursor.EditFile whose base has no known tick
---@return lcursor.FindRow? find nil where the base is not known
---@return string[]? base
function M.finder(buf, tick, file)
  local lines = buffers.lines(buf)
  for snapshot in pairs(snapshots) do
    if snapshot.buf == buf and snapshot.tick == tick then
      return diff.finder(snapshot.lines, lines, true), snapshot.lines
    end
  end
  if not file then
    return nil
  end
  local base = file.base ~= "" and file.base or diff.digest({})
  if diff.digest(lines) == base then
    return diff.finder(lines, lines), lines
  end
  local disk = buffers.read(file.path)
  if disk and diff.digest(disk) == base then
    return diff.finder(disk, lines), disk
  end
end

--- Make a hunk that is in no buffer yet.
---@param part lcursor.EditPart
---@param row integer of the base
---@param old string[]
---@param new string[]
---@return lcursor.Hunk
function M.hunk(part, row, old, new)
  local hunk = { part = part, base_row = row, old = old, new = new } --[[@as lcursor.Hunk]]
  hunk.state, hunk.seq, hunk.above, hunk.below = "waiting", 0, {}, {}
  track.set(hunk, row, row + #old)
  return hunk
end

--- Make what a proposal does to one file.
---@param proposal lcursor.EditProposal
---@param file lcursor.EditFile
---@return lcursor.EditPart
function M.part(proposal, file)
  ---@type lcursor.EditPart
  local part = { proposal = proposal, file = file, state = "waiting", hunks = {}, seq = 0, top = 0 }
  for _, change in ipairs(file.changes) do
    table.insert(part.hunks, M.hunk(part, change.first_row, change.old, change.new))
  end
  return part
end

---@return string "\n", which no line is, where there is none
local function line_at(buf, row)
  return row >= 0 and api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or "\n"
end

--- Remember the lines around insertions, to check later whether they are still in their place.
---@param buf integer
---@param hunks lcursor.Hunk[]
function M.learn(buf, hunks)
  for _, hunk in ipairs(hunks) do
    if hunk.state == "open" and #hunk.old == 0 then
      hunk.above[line_at(buf, hunk.first - 1)] = true
      hunk.below[line_at(buf, hunk.last)] = true
    end
  end
end

---@return integer? row where its old lines are
local function find(buf, hunk)
  if #hunk.old > 0 then
    return track.find(buf, hunk, hunk.old)
  end
  local row = hunk.first + (hunk.is_exact and 0 or hunk.head)
  local is_above = hunk.above[line_at(buf, row - 1)] == true
  local is_below = hunk.below[line_at(buf, row)] == true
  if hunk.is_exact then
    return (is_above or is_below) and row or nil
  end
  return row + hunk.tail == hunk.last and is_above and is_below and row or nil
end

--- Find out again whether a hunk is open.
local function evaluate(buf, hunk)
  local row = find(buf, hunk)
  if row then
    -- One that can be redone counts what is written next to it as its own: it may be the redo.
    track.set(hunk, row, row + #hunk.old, hunk.seq == 0)
  end
  hunk.state = row and "open" or "conflict"
  hunk.is_dirty = false
end

--- Whether a hunk is still what is shown. Asked right before it is written.
---@param buf integer
---@param hunk lcursor.Hunk
---@return boolean
function M.is_sure(buf, hunk)
  return hunk.state == "open"
    and hunk.last - hunk.first == #hunk.old
    and find(buf, hunk) == hunk.first
end

--- Give up a hunk whose place is unknown; it is shown where its lines would begin.
local function lose(buf, hunk)
  local row = hunk.base_row + (#hunk.old > 0 and 1 or 0)
  row = math.min(row, api.nvim_buf_line_count(buf))
  track.set(hunk, row, row)
  hunk.above, hunk.below, hunk.is_lost = {}, {}, true
end

---@param row? integer
local function put(buf, hunk, row)
  local last = (row or 0) + #hunk.old
  if row and diff.is_same(api.nvim_buf_get_lines(buf, row, last, false), hunk.old) then
    track.set(hunk, row, last)
    hunk.state, hunk.above, hunk.below, hunk.is_lost = "open", {}, {}, false
    M.learn(buf, { hunk })
  else
    hunk.state = "conflict"
    lose(buf, hunk)
  end
end

--- Return the base with the accepted hunks in it, and the row of each hunk there.
---@param part lcursor.EditPart with a base
---@return string[]
---@return table<lcursor.Hunk, integer>
local function expected(part)
  local changes, rows, by = {}, {}, 0
  for _, hunk in ipairs(part.hunks) do
    local row = hunk.base_row
    rows[hunk] = row + by
    if hunk.state == "accepted" then
      local last = row + #hunk.old
      table.insert(changes, { first_row = row, last_row = last, old = hunk.old, new = hunk.new })
      by = by + #hunk.new - #hunk.old
    end
  end
  return diff.apply(part.base, changes) or part.base, rows
end

--- Put the hunks of a file into its buffer, which was just read, or was there when they came.
---@param part lcursor.EditPart
---@param buf integer
---@return lcursor.Hunk[] undone accepted before, and not in this text
function M.locate(part, buf)
  part.buf, part.state = buf, "placed"
  part.seq = buffers.change_number(buf)
  part.top = math.max(part.top, part.seq)
  local undone = {}
  if not part.base then
    local find_row
    find_row, part.base = M.finder(buf, part.file.tick, part.file)
    for _, hunk in ipairs(part.hunks) do
      put(buf, hunk, find_row and find_row(hunk.base_row, hunk.base_row + #hunk.old))
    end
    return undone
  end
  local lines = buffers.lines(buf)
  local text, rows = expected(part)
  local find_row, find_base_row = diff.finder(text, lines), diff.finder(part.base, lines)
  for _, hunk in ipairs(part.hunks) do
    if hunk.state == "accepted" then
      local row = find_row(rows[hunk], rows[hunk] + #hunk.new)
      local old_row = not row and find_base_row(hunk.base_row, hunk.base_row + #hunk.old)
      if row then
        track.set(hunk, row, row + #hunk.new, false)
        hunk.is_lost = false
      elseif old_row then
        hunk.seq = 0
        put(buf, hunk, old_row)
        table.insert(undone, hunk)
      else
        lose(buf, hunk)
      end
    elseif hunk.state ~= "rejected" then
      put(buf, hunk, find_row(rows[hunk], rows[hunk] + #hunk.old))
    end
  end
  return undone
end

---@param hunk lcursor.Hunk open or in conflict, once accepted
---@return boolean whether `<C-r>` made it again
local function is_redone(buf, hunk)
  if #hunk.new == 0 then
    return hunk.last - hunk.first == 0 and not hunk.is_exact
  end
  local row = track.find(buf, hunk, hunk.new)
  if row then
    track.set(hunk, row, row + #hunk.new, false)
  end
  return row ~= nil
end

--- Place lost hunks after an undo restored a text with known rows.
local function recall(part, buf)
  local is_lost, count = false, #(part.base or {})
  for _, hunk in ipairs(part.hunks) do
    is_lost = is_lost or hunk.state == "conflict"
    count = count + (hunk.state == "accepted" and #hunk.new - #hunk.old or 0)
  end
  if not is_lost or not part.base or math.max(count, 1) ~= api.nvim_buf_line_count(buf) then
    return
  end
  local text, rows = expected(part)
  if diff.is_same(buffers.lines(buf), text) then
    for _, hunk in ipairs(part.hunks) do
      if hunk.state == "conflict" then
        put(buf, hunk, rows[hunk])
        hunk.is_exact = hunk.seq == 0
      end
    end
  end
end

--- Find out what became of the hunks of a file after its buffer changed. Runs at each keystroke.
---@param buf integer
---@param part lcursor.EditPart
---@param seq integer number of the buffer's latest change
---@return lcursor.Hunk[] undone with `u`
---@return lcursor.Hunk[] redone with `<C-r>`
---@return boolean is_changed whether any has to be drawn again
function M.refresh(buf, part, seq)
  local undone, redone, is_changed = {}, {}, false
  local is_new = seq > part.top
  part.top = math.max(seq, part.top)
  for _, hunk in ipairs(part.hunks) do
    local is_waiting = hunk.state == "open" or hunk.state == "conflict"
    if hunk.state == "accepted" and seq < hunk.seq then
      evaluate(buf, hunk)
      table.insert(undone, hunk)
    elseif is_waiting and (hunk.is_dirty or (is_new and hunk.seq > 0)) then
      is_changed = true
      if is_new then
        hunk.seq = 0 -- after another change there is no redo
      end
      if hunk.seq > 0 and seq >= hunk.seq and not find(buf, hunk) and is_redone(buf, hunk) then
        hunk.state = "accepted"
        table.insert(redone, hunk)
      else
        evaluate(buf, hunk)
      end
    end
  end
  if seq < part.seq then
    recall(part, buf)
    is_changed = true
  end
  part.seq = seq
  return undone, redone, is_changed or #undone > 0
end

return M
