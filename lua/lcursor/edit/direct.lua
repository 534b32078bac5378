-- Writes lines into buffers, with as little touched as can be, so that marks, folds and extmarks
-- stay; and makes the changes of an undone or redone turn. Checks before it writes: where the old
-- lines are not, nothing is written.

local diff = require("lcursor.edit.diff")

local M = {}

local api = vim.api
local MOST_PAIRS = 200 -- lines that are changed one by one

--- Begin a new undo step in a buffer, whatever was typed into it just before.
---@param buf integer
function M.step(buf)
  api.nvim_buf_call(buf, function()
    vim.go.undolevels = vim.go.undolevels -- setting it ends the step
  end)
end

---@param buf integer
---@return integer number of its latest change that is not undone
function M.number(buf)
  return api.nvim_buf_call(buf, vim.fn.changenr)
end

---@param buf integer
---@param row integer
---@param old string
---@param new string
local function line(buf, row, old, new)
  local head, tail = diff.ends(old, new)
  local text = new:sub(head + 1, #new - tail)
  api.nvim_buf_set_text(buf, row, head, row, #old - tail, { text })
end

---@alias lcursor.EditMark { name: string, row: integer, col: integer }

--- The marks that a user has set in a buffer. Writing through the API takes them off each line that
--- it touches.
---@param buf integer
---@return lcursor.EditMark[]
function M.marks(buf)
  local found = {}
  for _, mark in ipairs(vim.fn.getmarklist(buf)) do
    local name = mark.mark:sub(2)
    if name:find("^%l$") then
      table.insert(found, { name = name, row = mark.pos[2] - 1, col = mark.pos[3] - 1 })
    end
  end
  return found
end

--- Line by line as far as there are pairs: other plugins' extmarks stay so.
---@param buf integer
---@param row integer
---@param old string[]
---@param new string[]
---@param block lcursor.EditBlock
---@param marks lcursor.EditMark[]
local function write(buf, row, old, new, block, marks)
  local count, new_count = block.last - block.first, block.new_last - block.new_first
  local both = math.min(count, new_count)
  if both > MOST_PAIRS then
    both = 0
  end
  row = row + block.first
  if count ~= both or new_count ~= both then
    local lines = vim.list_slice(new, block.new_first + both + 1, block.new_last)
    api.nvim_buf_set_lines(buf, row + both, row + count, true, lines)
  end
  for i = 1, both do
    local was, now = old[block.first + i], new[block.new_first + i]
    if was:find("\n", 1, true) or now:find("\n", 1, true) then
      api.nvim_buf_set_lines(buf, row + i - 1, row + i, true, { now })
    elseif was ~= now then
      line(buf, row + i - 1, was, now)
    end
  end
  for _, mark in ipairs(marks) do
    if mark.row >= row and mark.row < row + math.min(count, new_count) then
      local col = math.min(mark.col, #new[block.new_first + mark.row - row + 1])
      api.nvim_buf_set_mark(buf, mark.name, mark.row + 1, col, {})
    end
  end
end

---@return boolean
local function has_no_bytes()
  return vim.fn.line2byte(1) < 0 -- a blank line has one, its end
end

---@type { buf: integer, tick: integer }? a buffer all of whose lines we took: it has a blank one
local emptied

---@param buf integer
---@param old string[]
---@return boolean whether the buffer is one that has no text, and that is about to get the first
local function is_blank(buf, old)
  local tick = api.nvim_buf_get_changedtick(buf)
  if #old == 0 and emptied and emptied.buf == buf and emptied.tick == tick then
    return true
  end
  return #old == 0
    and api.nvim_buf_line_count(buf) == 1
    and api.nvim_buf_get_lines(buf, 0, 1, false)[1] == ""
    and api.nvim_buf_call(buf, has_no_bytes)
end

---@param buf integer
---@return string
local function name_of(buf)
  return vim.fn.fnamemodify(api.nvim_buf_get_name(buf), ":~:.")
end

--- Write lines in place of others.
---@param buf integer
---@param row integer
---@param old string[] what has to be there
---@param new string[]
---@param marks? lcursor.EditMark[] of the buffer, where they are known: those above stay valid
---@return string? problem why nothing was written
function M.write(buf, row, old, new, marks)
  if not api.nvim_get_option_value("modifiable", { buf = buf }) then
    return ("%s cannot be changed; :set modifiable allows it"):format(name_of(buf))
  end
  if not diff.is_same(api.nvim_buf_get_lines(buf, row, row + #old, false), old) then
    return ("%s has other text there now"):format(name_of(buf))
  end
  if is_blank(buf, old) then
    emptied = nil
    api.nvim_buf_set_lines(buf, 0, -1, true, new)
    return nil
  end
  local is_all = #new == 0 and #old == api.nvim_buf_line_count(buf)
  local blocks = diff.blocks(old, new, true)
  marks = marks or M.marks(buf)
  for i = #blocks, 1, -1 do
    write(buf, row, old, new, blocks[i], marks)
  end
  emptied = is_all and { buf = buf, tick = api.nvim_buf_get_changedtick(buf) } or nil
  return nil
end

---@param path string
---@return integer? buf a loaded buffer of that file
function M.buffer(path)
  local real = vim.uv.fs_realpath(path) or path
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" then
      local name = api.nvim_buf_get_name(buf)
      if name ~= "" and (name == path or (vim.uv.fs_realpath(name) or name) == real) then
        return buf
      end
    end
  end
end

---@param buf integer
---@param file lcursor.EditFile
---@return string? problem
local function make(buf, file)
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  local is_as_sent = file.tick >= 0 and api.nvim_buf_get_changedtick(buf) == file.tick
  local base = file.base ~= "" and file.base or diff.digest({})
  if not is_as_sent and diff.digest(lines) ~= base then
    return file.name .. " was changed meanwhile; nothing was done to it"
  end
  if not diff.apply(lines, file.changes) then
    return file.name .. " has other text than it had; nothing was done to it"
  end
  if #file.changes == 0 then
    return nil
  end
  M.step(buf)
  local marks = M.marks(buf)
  for i = #file.changes, 1, -1 do
    local change = file.changes[i]
    local problem = M.write(buf, change.first_row, change.old, change.new, marks)
    if problem then
      return problem
    end
  end
  M.step(buf)
end

--- Make the changes of files in the buffers that have them, one undo step each. A file that no
--- buffer has is left alone: its changes are on the disk.
---@param files lcursor.EditFile[]
---@return string[] problems one for each file to which nothing was done
function M.apply(files)
  local problems = {}
  for _, file in ipairs(files) do
    local buf = M.buffer(file.path)
    local problem = buf and make(buf, file)
    if problem then
      table.insert(problems, problem)
    end
  end
  return problems
end

return M
