-- Pure functions of what is said about edits. Must not read a buffer or an option.

local many = require("lcursor.text").many

local M = {}

M.many = many

--- A place in a file, as editors write it.
---@param name string
---@param first integer row
---@param last integer behind it
---@return string
function M.place(name, first, last)
  if last > first + 1 then
    return ("%s:%d-%d"):format(name, first + 1, last)
  end
  return ("%s:%d"):format(name, first + 1)
end

--- What a proposal is.
---@param msg lcursor.EditProposed
---@return string
function M.proposal(msg)
  local hunks, failed, seen = 0, {}, {}
  for _, file in ipairs(msg.files) do
    hunks = hunks + math.max(#file.changes, 1)
    for _, check in ipairs(file.checks) do
      if not check.is_ok and not seen[check.name] then
        seen[check.name] = true
        table.insert(failed, check.name)
      end
    end
  end
  local text = many(hunks, "change") .. " proposed"
  if #msg.files > 1 then
    text = ("%s in %d files"):format(text, #msg.files)
  end
  if msg.attempts > 1 then
    text = ("%s after %d attempts"):format(text, msg.attempts)
  end
  if msg.alternative > 1 then
    text = ("%s (alternative %d)"):format(text, msg.alternative)
  end
  if #failed > 0 then
    text = ("%s; not passed: %s"):format(text, table.concat(failed, ", "))
  end
  local note = msg.note:gsub("%s+", " ")
  return note ~= "" and ("%s. %s"):format(text, note) or text
end

return M
