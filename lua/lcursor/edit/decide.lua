-- Takes hunks and refuses them: the one file that writes a proposal into a buffer. Each act is one
-- undo step; what is not exactly where it was shown is not written.

local anchor = require("lcursor.edit.anchor")
local diff = require("lcursor.edit.diff")
local direct = require("lcursor.edit.direct")
local draw = require("lcursor.edit.draw")
local placing = require("lcursor.edit.placing")
local store = require("lcursor.edit.store")

local M = {}

---@param hunks lcursor.Hunk[]
---@return table<lcursor.EditPart, lcursor.Hunk[]>
local function by_part(hunks)
  local parts = {}
  for _, hunk in ipairs(hunks) do
    parts[hunk.part] = parts[hunk.part] or {}
    table.insert(parts[hunk.part], hunk)
  end
  return parts
end

--- Set where the hunks of a file are after some of them were written. What Neovim told of the
--- writing is not enough where one ends and the next, of no lines, begins.
---@param part lcursor.EditPart
---@param rows table<lcursor.Hunk, integer> where those were that were sure, before
---@param made table<lcursor.Hunk, true>
local function settle(part, rows, made)
  local by = 0
  for _, hunk in ipairs(part.hunks) do
    local row = rows[hunk]
    if row and made[hunk] then
      anchor.set(hunk, row + by, row + by + #hunk.new, false)
      by = by + #hunk.new - #hunk.old
    elseif row then
      anchor.set(hunk, row + by, row + by + #hunk.old)
    end
  end
end

---@param buf integer
---@param part lcursor.EditPart
---@param hunks lcursor.Hunk[] of this file
---@return lcursor.Hunk[] made
---@return string? problem
local function write(buf, part, hunks)
  local rows, made, wanted, problem = {}, {}, {}, nil
  for _, hunk in ipairs(hunks) do
    wanted[hunk] = true
  end
  for _, hunk in ipairs(part.hunks) do
    local is_known = hunk.state == "open" and hunk.is_exact and not hunk.is_dirty
    if wanted[hunk] then
      is_known = placing.is_sure(buf, hunk)
    end
    rows[hunk] = is_known and hunk.first or nil
  end
  local sure = {}
  for hunk in pairs(rows) do
    table.insert(sure, hunk)
  end
  anchor.aside(buf, sure, function()
    local marks = direct.marks(buf) -- from the last to the first: those above stay where they are
    for i = #part.hunks, 1, -1 do
      local hunk = part.hunks[i]
      if wanted[hunk] and not rows[hunk] then
        problem = "the lines of a hunk are others now, so it was left out; u or :LCursor undo may "
          .. "bring them back"
      elseif wanted[hunk] then
        local failed = direct.write(buf, rows[hunk], hunk.old, hunk.new, marks)
        problem = failed or problem
        if not failed then
          made[hunk] = true
        end
      end
    end
    settle(part, rows, made)
  end)
  local done = vim.tbl_filter(function(hunk)
    return made[hunk]
  end, part.hunks)
  return done, problem
end

--- Make hunks of a buffer, as one undo step.
---@param buf integer
---@param hunks lcursor.Hunk[] of that buffer
---@return integer made
---@return string? problem why one was not
function M.accept(buf, hunks)
  local told, problem, count = {}, nil, 0
  direct.step(buf)
  for part, some in pairs(by_part(hunks)) do
    local made, failed = write(buf, part, some)
    problem = failed or problem
    count = count + #made
    if #made > 0 then
      told[part] = made
    end
  end
  direct.step(buf)
  local seq = direct.number(buf)
  for part, made in pairs(told) do
    draw.clear(buf, made)
    for _, hunk in ipairs(made) do
      hunk.state, hunk.seq = "accepted", seq
    end
    placing.learn(buf, part.hunks)
  end
  for part, made in pairs(told) do
    local function tell(hunk)
      return store.told(buf, hunk)
    end
    store.decided(part, vim.tbl_map(tell, made), {})
  end
  store.changed(buf)
  return count, problem
end

---@param hunk lcursor.Hunk
---@return lcursor.EditChange of the base
local function refused(hunk)
  local first = hunk.base_row
  return { first_row = first, last_row = first + #hunk.old, old = hunk.old, new = hunk.new }
end

--- Refuse hunks, in whatever file.
---@param hunks lcursor.Hunk[]
function M.reject(hunks)
  local buffers = {}
  for part, some in pairs(by_part(hunks)) do
    if part.buf then
      draw.clear(part.buf, some)
      buffers[part.buf] = true
    end
    for _, hunk in ipairs(some) do
      hunk.state = "rejected"
      if part.buf then
        anchor.forget(part.buf, hunk)
      end
    end
    store.decided(part, {}, vim.tbl_map(refused, some))
  end
  for buf in pairs(buffers) do
    store.changed(buf)
  end
  store.changed(nil)
end

--- The blocks of a hunk; a block whose lines are one to one, line by line.
---@param hunk lcursor.Hunk
---@return lcursor.EditBlock[]
local function pieces(hunk)
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

---@param hunk lcursor.Hunk
---@param run lcursor.EditBlock rows of it
---@return lcursor.Hunk
local function part_of(hunk, run)
  local one = anchor.span(hunk.first + run.first, hunk.first + run.last) --[[@as lcursor.Hunk]]
  one.part, one.base_row, one.state = hunk.part, hunk.base_row + run.first, "open"
  one.old = vim.list_slice(hunk.old, run.first + 1, run.last)
  one.new = vim.list_slice(hunk.new, run.new_first + 1, run.new_last)
  one.above, one.below, one.seq, one.marks = {}, {}, 0, {}
  return one
end

--- Make of one hunk several: those that have rows of a range, and the others.
---@param buf integer
---@param hunk lcursor.Hunk open
---@param first integer row of the buffer
---@param last integer
---@return lcursor.Hunk[] inside
function M.split(buf, hunk, first, last)
  local runs = {} ---@type { is_in: boolean, block: lcursor.EditBlock }[]
  for _, piece in ipairs(pieces(hunk)) do
    local from, to = hunk.first + piece.first, hunk.first + piece.last
    local is_in = from == to and first < from + 1 and last >= from or from < last and to > first
    local run = runs[#runs]
    if run and run.is_in == is_in then
      run.block.last, run.block.new_last = piece.last, piece.new_last
    else
      table.insert(runs, { is_in = is_in, block = vim.deepcopy(piece) })
    end
  end
  if #runs < 2 or not placing.is_sure(buf, hunk) then
    return (#runs == 0 or runs[1].is_in or #runs > 1) and { hunk } or {}
  end
  local inside, all = {}, {}
  for _, run in ipairs(runs) do
    local one = part_of(hunk, run.block)
    table.insert(all, one)
    anchor.keep(buf, one)
    if run.is_in then
      table.insert(inside, one)
    end
  end
  local part = hunk.part
  for i, one in ipairs(part.hunks) do
    if one == hunk then
      table.remove(part.hunks, i)
      for k, new in ipairs(all) do
        table.insert(part.hunks, i + k - 1, new)
      end
      break
    end
  end
  draw.clear(buf, { hunk })
  anchor.forget(buf, hunk)
  placing.learn(buf, all)
  return inside
end

return M
