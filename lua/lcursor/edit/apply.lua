-- Accepts and rejects hunks: the one module that writes a proposal into a buffer. Each accept is
-- one undo step. As little text as possible is replaced, so that marks, folds and other plugins'
-- extmarks stay; without the old lines nothing is written.

local buffers = require("lcursor.editor.buffers")
local diff = require("lcursor.text.diff")
local positions = require("lcursor.edit.positions")
local proposals = require("lcursor.edit.proposals")
local track = require("lcursor.edit.track")
local undo = require("lcursor.editor.undo")

local M = {}

local api = vim.api
local MAX_PAIRS = 200 -- lines that are changed one by one

---@alias lcursor.EditMark { name: string, row: integer, col: integer }

--- Return the user's marks a-z of a buffer. The API takes them off each line it writes.
---@return lcursor.EditMark[]
local function marks_of(buf)
  local found = {}
  for _, mark in ipairs(vim.fn.getmarklist(buf)) do
    local name = mark.mark:sub(2)
    if name:find("^%l$") then
      table.insert(found, { name = name, row = mark.pos[2] - 1, col = mark.pos[3] - 1 })
    end
  end
  return found
end

---@param block lcursor.EditBlock
---@param marks lcursor.EditMark[]
local function write_block(buf, row, old, new, block, marks)
  local count, new_count = block.last - block.first, block.new_last - block.new_first
  local pairs_ = math.min(count, new_count)
  if pairs_ > MAX_PAIRS then
    pairs_ = 0
  end
  row = row + block.first
  if count ~= pairs_ or new_count ~= pairs_ then
    local lines = vim.list_slice(new, block.new_first + pairs_ + 1, block.new_last)
    api.nvim_buf_set_lines(buf, row + pairs_, row + count, true, lines)
  end
  for i = 1, pairs_ do
    local was, now = old[block.first + i], new[block.new_first + i]
    if was:find("\n", 1, true) or now:find("\n", 1, true) then
      api.nvim_buf_set_lines(buf, row + i - 1, row + i, true, { now })
    elseif was ~= now then
      local head, tail = diff.ends(was, now)
      local text = now:sub(head + 1, #now - tail)
      api.nvim_buf_set_text(buf, row + i - 1, head, row + i - 1, #was - tail, { text })
    end
  end
  for _, mark in ipairs(marks) do
    if mark.row >= row and mark.row < row + math.min(count, new_count) then
      local col = math.min(mark.col, #new[block.new_first + mark.row - row + 1])
      api.nvim_buf_set_mark(buf, mark.name, mark.row + 1, col, {})
    end
  end
end

---@type { buf: integer, tick: integer }? a buffer that lost all its lines: one blank is left
local emptied

--- Whether a buffer has no text, not even a blank line.
local function is_blank(buf)
  local tick = api.nvim_buf_get_changedtick(buf)
  if emptied and emptied.buf == buf and emptied.tick == tick then
    return true
  end
  local lines = api.nvim_buf_get_lines(buf, 0, 2, false)
  return #lines == 1
    and lines[1] == ""
    and api.nvim_buf_call(buf, function()
      return vim.fn.line2byte(1) < 0
    end)
end

--- Replace lines.
---@param old string[] what has to be there
---@param marks lcursor.EditMark[] of the buffer
---@return string? problem why nothing was written
local function replace(buf, row, old, new, marks)
  local name = vim.fn.fnamemodify(api.nvim_buf_get_name(buf), ":~:.")
  if not vim.bo[buf].modifiable then
    return ("%s cannot be changed; :set modifiable allows it"):format(name)
  elseif not diff.is_same(api.nvim_buf_get_lines(buf, row, row + #old, false), old) then
    return ("%s has changed at this place"):format(name)
  elseif #old == 0 and is_blank(buf) then
    emptied = nil
    api.nvim_buf_set_lines(buf, 0, -1, true, new)
    return nil
  end
  local is_all = #new == 0 and #old == api.nvim_buf_line_count(buf)
  local blocks = diff.blocks(old, new, true)
  for i = #blocks, 1, -1 do
    write_block(buf, row, old, new, blocks[i], marks)
  end
  emptied = is_all and { buf = buf, tick = api.nvim_buf_get_changedtick(buf) } or nil
end

---@return string? problem
local function change_file(buf, file)
  local lines = buffers.lines(buf)
  local is_as_sent = file.tick >= 0 and api.nvim_buf_get_changedtick(buf) == file.tick
  local base = file.base ~= "" and file.base or diff.digest({})
  if not is_as_sent and diff.digest(lines) ~= base then
    return file.name .. " has changed meanwhile; it was left alone"
  elseif not diff.apply(lines, file.changes) then
    return file.name .. " has changed; it was left alone"
  elseif file.kind == "delete" then
    pcall(api.nvim_buf_delete, buf, { force = true }) -- the backend deleted the file
    return nil
  elseif #file.changes == 0 then
    return nil
  end
  undo.end_step(buf)
  local marks, problem = marks_of(buf), nil
  for i = #file.changes, 1, -1 do
    local change = file.changes[i]
    problem = problem or replace(buf, change.first_row, change.old, change.new, marks)
  end
  undo.end_step(buf)
  return problem
end

--- Make the changes of an undone or redone edit in the buffers of its files, one undo step each.
--- The backend writes the files that no buffer has. The buffer of a deleted file is deleted.
---@param files lcursor.EditFile[]
---@return string[] problems one for each file to which nothing was done
function M.change_files(files)
  local problems = {}
  for _, file in ipairs(files) do
    local buf = buffers.find(file.path)
    table.insert(problems, buf and change_file(buf, file) or nil)
  end
  return problems
end

---@return table<lcursor.EditPart, lcursor.Hunk[]>
local function by_part(hunks)
  local parts = {}
  for _, hunk in ipairs(hunks) do
    parts[hunk.part] = parts[hunk.part] or {}
    table.insert(parts[hunk.part], hunk)
  end
  return parts
end

--- Set the rows of a file's hunks after some were written. Neovim's reports of the change are
--- ambiguous where one hunk ends and the next begins.
---@param rows table<lcursor.Hunk, integer> the known rows before that
---@param is_made table<lcursor.Hunk, true>
local function update_rows(part, rows, is_made)
  local by = 0
  for _, hunk in ipairs(part.hunks) do
    local row = rows[hunk]
    if row and is_made[hunk] then
      track.set(hunk, row + by, row + by + #hunk.new, false)
      by = by + #hunk.new - #hunk.old
    elseif row then
      track.set(hunk, row + by, row + by + #hunk.old)
    end
  end
end

---@param hunks lcursor.Hunk[] of this file
---@return lcursor.Hunk[] made
---@return string? problem
local function write(buf, part, hunks)
  local rows, is_made, problem = {}, {}, nil
  for _, hunk in ipairs(part.hunks) do
    rows[hunk] = positions.is_sure(buf, hunk) and hunk.first or nil
  end
  part.written = rows
  local ok, err = pcall(function() -- other plugins listen to the buffer
    local marks = marks_of(buf) -- from the last hunk to the first: those above stay valid
    for i = #part.hunks, 1, -1 do
      local hunk = part.hunks[i]
      local is_wanted = vim.list_contains(hunks, hunk)
      if is_wanted and not rows[hunk] then
        problem = "skipped a stale hunk (its lines were modified);"
          .. " u or :LCursor edit undo may restore it"
      elseif is_wanted then
        local failed = replace(buf, rows[hunk], hunk.old, hunk.new, marks)
        problem = failed or problem
        is_made[hunk] = not failed or nil
      end
    end
  end)
  part.written = nil
  update_rows(part, rows, is_made)
  if not ok then
    error(err, 0)
  end
  return vim.tbl_filter(function(hunk)
    return is_made[hunk]
  end, part.hunks), problem
end

--- Accept hunks of a buffer, as one undo step.
---@param buf integer
---@param hunks lcursor.Hunk[] of that buffer
---@return string? problem why one was not
function M.accept(buf, hunks)
  if #hunks == 0 then
    return nil
  end
  local accepted, problem = {}, nil
  undo.end_step(buf)
  for part, some in pairs(by_part(hunks)) do
    local made, failed = write(buf, part, some)
    problem = failed or problem
    accepted[part] = #made > 0 and made or nil
  end
  undo.end_step(buf)
  local seq = undo.number(buf)
  for part, made in pairs(accepted) do
    for _, hunk in ipairs(made) do
      hunk.state, hunk.seq = "accepted", seq
    end
    positions.learn(buf, part.hunks)
  end
  for part, made in pairs(accepted) do
    proposals.report_accepted(part, made, false)
  end
  proposals.changed(buf)
  return problem
end

--- Reject hunks, in whatever file.
---@param hunks lcursor.Hunk[]
function M.reject(hunks)
  local bufs = {}
  for part, some in pairs(by_part(hunks)) do
    if part.buf then
      bufs[part.buf] = true
    end
    local rejected = vim.tbl_map(function(hunk)
      hunk.state = "rejected"
      local last = hunk.base_row + #hunk.old
      return { first_row = hunk.base_row, last_row = last, old = hunk.old, new = hunk.new }
    end, some)
    proposals.report(part, {}, rejected, false)
  end
  for buf in pairs(bufs) do
    proposals.changed(buf)
  end
  proposals.changed(nil)
end

--- Split a hunk in place into the parts that have rows of a range, and the others.
---@param buf integer
---@param hunk lcursor.Hunk open
---@param first integer row of the buffer
---@param last integer
---@return lcursor.Hunk[] those inside the range
function M.split(buf, hunk, first, last)
  local function is_inside(piece)
    local from, to = hunk.first + piece.first, hunk.first + piece.last
    return from == to and first < from + 1 and last >= from or from < last and to > first
  end
  if positions.is_sure(buf, hunk) then
    return positions.split(buf, hunk, is_inside)
  end
  return vim.iter(positions.pieces(hunk)):any(is_inside) and { hunk } or {}
end

return M
