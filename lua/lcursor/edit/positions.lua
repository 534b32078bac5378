-- Finds the hunks of a proposal in a buffer, and says what became of each: still possible (open),
-- its lines were modified (conflict), or undone with `u` after it was accepted. Changes hunks,
-- never the buffer.

local buffers = require("lcursor.editor.buffers")
local diff = require("lcursor.text.diff")
local track = require("lcursor.edit.track")
local undo = require("lcursor.editor.undo")

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
  hunk.state, hunk.seq, hunk.above, hunk.below, hunk.area = "waiting", 0, {}, {}, {}
  track.set(hunk, row, row + #old)
  track.set(hunk.area, row, row + #old, false)
  return hunk
end

--- Make what a proposal does to one file.
---@param proposal lcursor.EditProposal
---@param file lcursor.EditFile
---@return lcursor.EditPart
function M.part(proposal, file)
  ---@type lcursor.EditPart
  local part = { proposal = proposal, file = file, state = "waiting", hunks = {} }
  part.seq, part.top, part.since = 0, 0, 0
  for i, change in ipairs(file.changes) do
    local hunk = M.hunk(part, change.first_row, change.old, change.new)
    hunk.is_unneeded = vim.list_contains(file.unneeded, i - 1)
    table.insert(part.hunks, hunk)
  end
  return part
end

---@return string "\n", which no line is, where there is none
local function line_at(buf, row)
  return row >= 0 and api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or "\n"
end

--- Remember where open hunks are, to check later whether they are still in their place: the lines
--- around insertions, and the area that will hold what is written at a hunk.
---@param buf integer
---@param hunks lcursor.Hunk[]
function M.learn(buf, hunks)
  for _, hunk in ipairs(hunks) do
    if hunk.state == "open" then
      track.set(hunk.area, hunk.first, hunk.last, false)
      if #hunk.old == 0 then
        hunk.above[line_at(buf, hunk.first - 1)] = true
        hunk.below[line_at(buf, hunk.last)] = true
      end
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
    if not hunk.is_exact then
      track.set(hunk.area, row, row + #hunk.old, false)
    end
    -- One that can be redone counts what is written next to it as its own: it may be the redo.
    track.set(hunk, row, row + #hunk.old, hunk.seq == 0)
  end
  hunk.state = row and "open" or "conflict"
  hunk.is_dirty, hunk.area.is_dirty = false, false
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
  part.seq = undo.number(buf)
  part.top, part.since = math.max(part.top, part.seq), part.seq
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

--- Whether the new lines of a hunk are in its place: `<C-r>` restored them, or the user typed them.
---@param hunk lcursor.Hunk open or in conflict
---@return boolean
local function is_made(buf, hunk)
  local row = track.find(buf, hunk.area, hunk.new)
    or (not hunk.is_exact and track.find(buf, hunk, hunk.new))
  if row and not hunk.is_lost then
    track.set(hunk, row, row + #hunk.new, false)
    return true
  end
  return false
end

--- Return the blocks of a hunk. One with no new lines, or as many as old ones, is split into lines.
---@param hunk lcursor.Hunk
---@return lcursor.EditBlock[]
function M.pieces(hunk)
  local found = {}
  for _, block in ipairs(diff.blocks(hunk.old, hunk.new, true)) do
    local count, new_count = block.last - block.first, block.new_last - block.new_first
    if count > 1 and (new_count == count or new_count == 0) then
      for i = 0, count - 1 do
        local new_first = block.new_first + math.min(i, new_count)
        table.insert(found, {
          first = block.first + i,
          last = block.first + i + 1,
          new_first = new_first,
          new_last = new_first + math.min(new_count, 1),
        })
      end
    else
      table.insert(found, block)
    end
  end
  return found
end

--- Replace a hunk by several: each consists of adjoining pieces for which a test has one result.
---@param buf integer
---@param hunk lcursor.Hunk
---@param test fun(piece: lcursor.EditBlock, index: integer): boolean
---@param row? integer where the hunk begins, if the pieces that pass the test are made already
---@return lcursor.Hunk[] those whose pieces pass
function M.split(buf, hunk, test, row)
  local runs = {} ---@type { is_true: boolean, block: lcursor.EditBlock }[]
  for i, piece in ipairs(M.pieces(hunk)) do
    local run, is_true = runs[#runs], test(piece, i)
    if run and run.is_true == is_true then
      run.block.last, run.block.new_last = piece.last, piece.new_last
    else
      table.insert(runs, { is_true = is_true, block = vim.deepcopy(piece) })
    end
  end
  if #runs < 2 then
    return (#runs == 0 or runs[1].is_true) and { hunk } or {}
  end
  local found, all, by = {}, {}, row or hunk.first
  for _, run in ipairs(runs) do
    local block = run.block
    local old = vim.list_slice(hunk.old, block.first + 1, block.last)
    local new = vim.list_slice(hunk.new, block.new_first + 1, block.new_last)
    local one = M.hunk(hunk.part, hunk.base_row + block.first, old, new)
    local is_new = row ~= nil and run.is_true
    track.set(one, by + block.first, by + block.first + (is_new and #new or #old), not is_new)
    by = by + (is_new and #new - #old or 0)
    one.state = is_new and "accepted" or "open"
    table.insert(all, one)
    table.insert(found, run.is_true and one or nil)
  end
  local hunks = {}
  for _, one in ipairs(hunk.part.hunks) do
    vim.list_extend(hunks, one == hunk and all or { one })
  end
  hunk.part.hunks = hunks
  M.learn(buf, all)
  return found
end

--- Find the pieces of a hunk whose new lines are in a text, which has the old lines of the others.
---@param hunk lcursor.Hunk
---@param lines string[]
---@return boolean[]? has_new by piece; nil if there is none, or if the text has other lines
local function made_pieces(hunk, lines)
  local has_new, row, old_row = {}, 0, 0
  --- Skip some lines of a text, if they are the next ones.
  ---@return boolean are_next
  local function skip(text, first, last)
    local part = vim.list_slice(lines, row + 1, row + last - first)
    local are_next = diff.is_same(part, vim.list_slice(text, first + 1, last))
    row = row + (are_next and last - first or 0)
    return are_next
  end
  for i, piece in ipairs(M.pieces(hunk)) do
    local is_deletion = piece.new_first == piece.new_last
    local is_above = skip(hunk.old, old_row, piece.first)
    has_new[i] = not is_deletion and skip(hunk.new, piece.new_first, piece.new_last)
    local has_old = not has_new[i] and skip(hunk.old, piece.first, piece.last)
    has_new[i] = has_new[i] or (is_deletion and not has_old)
    if not is_above or not (has_new[i] or has_old) then
      return nil
    end
    old_row = piece.last
  end
  local is_whole = skip(hunk.old, old_row, #hunk.old) and row == #lines
  return is_whole and vim.list_contains(has_new, true) and has_new or nil
end

--- Return what of a hunk is in the buffer already: the whole hunk, or pieces of it, which become
--- hunks of their own; `do` of Neovim's diff mode makes one by one.
---@param hunk lcursor.Hunk
---@return lcursor.Hunk[]
local function find_made(buf, hunk)
  if is_made(buf, hunk) then
    return { hunk }
  end
  local first, last = hunk.area.first + hunk.area.head, hunk.area.last - hunk.area.tail
  if hunk.seq > 0 or hunk.is_lost or first > last then
    return {}
  end
  local has_new = made_pieces(hunk, api.nvim_buf_get_lines(buf, first, last, false))
  return has_new and M.split(buf, hunk, function(_, i)
    return has_new[i]
  end, first) or {}
end

--- Find hunks in conflict again: where the text is the base with the accepted hunks, after an undo,
--- and where the lines above and below were written anew too, by a filter or a formatter.
local function recall(part, buf)
  local function in_conflict(is_back)
    return vim.tbl_filter(function(hunk)
      local is_rewritten = hunk.head > 0 and hunk.tail > 0
      return hunk.state == "conflict" and (is_back or hunk.is_lost or is_rewritten)
    end, part.base and part.hunks or {})
  end
  if #in_conflict(true) == 0 then
    return
  end
  local text, rows = expected(part)
  local lines = buffers.lines(buf)
  local hunks = in_conflict(diff.is_same(lines, text))
  local find_row = #hunks > 0 and diff.finder(text, lines)
  for _, hunk in ipairs(hunks) do
    local row = find_row(rows[hunk], rows[hunk] + #hunk.old)
    if row then
      put(buf, hunk, row)
      hunk.is_exact = hunk.seq == 0
    end
  end
end

--- Find out what became of the hunks of a file after its buffer changed. Runs at each keystroke.
---@param buf integer
---@param part lcursor.EditPart
---@param seq integer number of the buffer's latest change
---@return lcursor.Hunk[] undone with `u`
---@return lcursor.Hunk[] redone with `<C-r>`, or made by hand
---@return boolean is_changed whether any has to be drawn again
function M.refresh(buf, part, seq)
  local undone, redone, is_changed, is_new_conflict = {}, {}, false, false
  local is_new = seq > part.top
  part.top = math.max(seq, part.top)
  local is_typing = api.nvim_get_mode().mode:find("^[iR]") ~= nil
  for _, hunk in ipairs(part.hunks) do
    local is_dirty = hunk.is_dirty or hunk.area.is_dirty or (hunk.is_typed and not is_typing)
    local is_waiting = hunk.state == "open" or hunk.state == "conflict"
    if hunk.state == "accepted" and seq < hunk.seq then
      evaluate(buf, hunk)
      table.insert(undone, hunk)
    elseif is_waiting and (is_dirty or (is_new and hunk.seq > 0)) then
      is_changed = true
      hunk.is_typed = is_typing -- it is compared when Insert mode ends
      if is_new then
        hunk.seq = 0 -- after another change there is no redo
      end
      -- Undo may bring an older text that has the new lines too.
      local from = hunk.seq > 0 and hunk.seq or not part.proposal.is_hidden and part.since + 1
      local may_be_made = from and seq >= from and not is_typing
      local made = may_be_made and find_made(buf, hunk) or {}
      for _, one in ipairs(made) do
        one.state, one.seq = "accepted", hunk.seq > 0 and hunk.seq or seq
        table.insert(redone, one)
      end
      local was_open = hunk.state == "open"
      if #made == 0 then
        evaluate(buf, hunk)
      end
      is_new_conflict = is_new_conflict or (was_open and hunk.state == "conflict")
    end
  end
  if seq < part.seq or is_new_conflict then
    recall(part, buf)
    is_changed = true
  end
  part.seq = seq
  return undone, redone, is_changed or #undone > 0
end

return M
