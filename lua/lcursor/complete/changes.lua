-- The user's recent changes as text for the model: old and new lines. Pure functions of text and
-- time; the caller keeps the list.

local text = require("lcursor.text")

local M = {}

local NEAR_LINES = 8
local MAX_CHANGES, MAX_LINES = 5, 24
local MAX_AGE_MS = 5 * 60 * 1000

---@class (exact) lcursor.Change
---@field name string of the file
---@field row integer
---@field old string[]
---@field new string[]
---@field at_ms integer

--- Compare two states of a file; changes near each other become one.
---@param old string
---@param new string
---@param name string
---@param now_ms integer
---@return lcursor.Change[]
function M.between(old, new, name, now_ms)
  local hunks = text.diff(old, new, { result_type = "indices" }) --[[@as integer[][] ]]
  local spans = {}
  for _, hunk in ipairs(hunks) do
    -- A hunk without lines is after the line that it names.
    local a = hunk[2] == 0 and hunk[1] + 1 or hunk[1]
    local b = hunk[4] == 0 and hunk[3] + 1 or hunk[3]
    local last = spans[#spans]
    if last and a - last.a_end <= NEAR_LINES then
      last.a_end, last.b_end = a + hunk[2], b + hunk[4]
    else
      table.insert(spans, { a = a, a_end = a + hunk[2], b = b, b_end = b + hunk[4] })
    end
  end
  local old_lines, new_lines = vim.split(old, "\n"), vim.split(new, "\n")
  return vim.tbl_map(function(span)
    return {
      name = name,
      row = span.b - 1,
      old = vim.list_slice(old_lines, span.a, span.a_end - 1),
      new = vim.list_slice(new_lines, span.b, span.b_end - 1),
      at_ms = now_ms,
    }
  end, spans)
end

---@param one lcursor.Change
---@param other lcursor.Change
---@return boolean whether the second reverts the first
local function is_inverse(one, other)
  return one.name == other.name
    and math.abs(one.row - other.row) <= NEAR_LINES
    and vim.deep_equal(one.old, other.new)
    and vim.deep_equal(one.new, other.old)
end

--- Add changes to a list, without those that were reverted, are too old or too many.
---@param list lcursor.Change[] oldest first
---@param found lcursor.Change[]
---@param now_ms integer
---@return lcursor.Change[]
function M.add(list, found, now_ms)
  local kept = vim.tbl_filter(function(change)
    return now_ms - change.at_ms <= MAX_AGE_MS
  end, list)
  for _, change in ipairs(found) do
    local undone = nil
    for i = #kept, 1, -1 do
      if is_inverse(kept[i], change) then
        undone = i
        break
      end
    end
    if undone then
      table.remove(kept, undone)
    elseif #change.old + #change.new <= MAX_LINES then
      table.insert(kept, change)
    end
  end
  return vim.list_slice(kept, math.max(1, #kept - MAX_CHANGES + 1))
end

---@param list lcursor.Change[]
---@return string
function M.text(list)
  local lines = {}
  for _, change in ipairs(list) do
    table.insert(lines, ("@@ %s:%d"):format(change.name, change.row + 1))
    for _, line in ipairs(change.old) do
      table.insert(lines, "-" .. line)
    end
    for _, line in ipairs(change.new) do
      table.insert(lines, "+" .. line)
    end
  end
  return table.concat(lines, "\n")
end

return M
