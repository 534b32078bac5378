-- Which suggestions there are for one place, and which of them comes next. Pure functions of text:
-- must not draw, send or read a buffer.

local text = require("lcursor.text")

local M = {}

---@param one string
---@return string what is seen of it
local function seen_of(one)
  return (one:gsub("%s+$", ""))
end

--- The suggestion that is shown and the others, without what would show nothing new.
---@param shown string
---@param others string[] best first
---@param single_line boolean only their first lines are wanted
---@return string[] the first one is `shown`
function M.gather(shown, others, single_line)
  local texts, known = { shown }, { [seen_of(shown)] = true }
  for _, other in ipairs(others) do
    other = single_line and text.first_line(other) or other
    local seen = seen_of(other)
    if seen ~= "" and not known[seen] then
      known[seen] = true
      table.insert(texts, other)
    end
  end
  return texts
end

--- Those that agree with what was typed since and still have something to show.
---@param texts string[]
---@param typed string
---@return string[]
local function fitting(texts, typed)
  return vim.tbl_filter(function(one)
    return vim.startswith(one, typed) and text.is_visible(one:sub(#typed + 1))
  end, texts)
end

--- The text that is so many steps from the shown one, cyclically, among those that still fit.
---@param texts string[]
---@param shown string one of them
---@param typed string beginning of `shown` that stands in the buffer
---@param steps integer below 0 goes backwards
---@return string chosen `shown` when no other fits
---@return integer number of the chosen one, from 1
---@return integer count
function M.step(texts, shown, typed, steps)
  local fit = fitting(texts, typed)
  for number, one in ipairs(fit) do
    if one == shown then
      local to = (number - 1 + steps) % #fit + 1
      return fit[to], to, #fit
    end
  end
  return shown, 1, 1
end

return M
