-- Which turns are kept, and which of their hunks are open. Owns the table; draws nothing, places
-- nothing, tells nobody (store.lua does).

local M = {}

local api = vim.api

---@type lcursor.EditTurn[] the oldest first
local turns = {}

---@param turn lcursor.EditTurn
function M.add(turn)
  table.insert(turns, turn)
end

--- Keep only some of the turns.
---@param is_wanted fun(turn: lcursor.EditTurn): boolean
function M.filter(is_wanted)
  turns = vim.tbl_filter(is_wanted, turns)
end

---@param turn lcursor.EditTurn
---@return boolean
function M.has(turn)
  return vim.list_contains(turns, turn)
end

---@return boolean
function M.is_empty()
  return #turns == 0
end

---@param hunk lcursor.Hunk
---@return boolean
function M.is_open(hunk)
  return hunk.state == "open" or hunk.state == "conflict" or hunk.state == "waiting"
end

---@param part lcursor.EditPart
---@return integer
function M.open_in(part)
  local count = 0
  for _, hunk in ipairs(part.hunks) do
    count = count + (M.is_open(hunk) and 1 or 0)
  end
  return count
end

---@param buf? integer
---@return lcursor.EditPart[] of turns that are shown; nil: all
local function parts_of(buf)
  local found = {}
  for _, turn in ipairs(turns) do
    for _, part in ipairs(turn.parts) do
      if not turn.is_hidden and (not buf or part.buf == buf) then
        table.insert(found, part)
      end
    end
  end
  return found
end

--- The open hunks of a buffer, in the order of their rows.
---@param buf integer
---@return lcursor.Hunk[]
function M.hunks(buf)
  buf = buf == 0 and api.nvim_get_current_buf() or buf
  local found, order = {}, {}
  for _, part in ipairs(parts_of(buf)) do
    for _, hunk in ipairs(part.hunks) do
      if hunk.state == "open" or hunk.state == "conflict" then
        table.insert(found, hunk)
        order[hunk] = #found
      end
    end
  end
  table.sort(found, function(one, other)
    if one.first ~= other.first then
      return one.first < other.first
    elseif one.last ~= other.last then
      return one.last < other.last -- what is put between lines comes before what they become
    end
    return order[one] < order[other]
  end)
  return found
end

--- The buffers that have open hunks, in the order of the turns.
---@return integer[]
function M.buffers()
  local found = {}
  for _, part in ipairs(parts_of()) do
    if part.buf and M.open_in(part) > 0 and not vim.list_contains(found, part.buf) then
      table.insert(found, part.buf)
    end
  end
  return found
end

--- The files with open hunks, or with a change of the whole file that waits, turn by turn.
---@return lcursor.EditPart[]
function M.parts()
  return vim.tbl_filter(function(part)
    return part.state ~= "done" and (M.open_in(part) > 0 or M.is_whole(part))
  end, parts_of())
end

--- Whether what is to be done to a file is more than lines of it: it is created, deleted, renamed.
---@param part lcursor.EditPart
---@return boolean
function M.is_whole(part)
  local kind = part.file.kind
  return kind == "delete" or kind == "rename" or (kind == "create" and not part.buf)
end

---@return lcursor.EditTurn[] all that are kept, the oldest first
function M.turns()
  return vim.list_slice(turns)
end

---@param key string
---@return lcursor.EditTurn?
function M.turn(key)
  for _, turn in ipairs(turns) do
    if turn.key == key then
      return turn
    end
  end
end

---@return integer open hunks of all files
function M.count()
  local count = 0
  for _, part in ipairs(parts_of()) do
    count = count + M.open_in(part)
  end
  return count
end

---@param turn lcursor.EditTurn
---@return boolean whether nothing of it waits for the user
function M.is_decided(turn)
  for _, part in ipairs(turn.parts) do
    if M.open_in(part) > 0 or (M.is_whole(part) and part.state ~= "done") then
      return false
    end
  end
  return true
end

---@param turn lcursor.EditTurn
---@return lcursor.EditTurn[] the alternatives that it is one of
function M.alternatives(turn)
  return vim.tbl_filter(function(one)
    return one.group == turn.group
  end, turns)
end

return M
