-- Reads the diagnostics of rows, and describes them to a model.

local M = {}

local api = vim.api
local MAX_DIAGNOSTICS = 10
local SEVERITIES = { "error", "warning", "information", "hint" }

--- Return the diagnostics of some rows, the most severe first, then the nearest to the cursor.
---@param first integer row
---@param last integer
---@param col integer of the cursor
---@return vim.Diagnostic[]
function M.at(buf, first, last, col)
  local found = vim.tbl_filter(function(each)
    return each.lnum < last and math.max(each.end_lnum or each.lnum, each.lnum) >= first
  end, vim.diagnostic.get(buf))
  local function distance(each)
    if each.lnum ~= first then
      return 1000 + math.abs(each.lnum - first)
    elseif col < each.col then
      return each.col - col
    end
    local is_past = each.end_col and each.lnum == each.end_lnum and col >= each.end_col
    return is_past and col - each.end_col or 0
  end
  table.sort(found, function(one, other)
    if one.severity ~= other.severity then
      return one.severity < other.severity
    elseif distance(one) ~= distance(other) then
      return distance(one) < distance(other)
    end
    return one.message < other.message
  end)
  return found
end

---@param found vim.Diagnostic[]
local function fix_instruction(buf, found)
  local lines = { #found == 1 and "Fix this problem:" or "Fix these problems:" }
  for _, each in ipairs(vim.list_slice(found, 1, MAX_DIAGNOSTICS)) do
    local code = vim.trim(api.nvim_buf_get_lines(buf, each.lnum, each.lnum + 1, false)[1] or "")
    local source = vim.trim(("%s %s"):format(each.source or "", each.code or ""))
    local from = source ~= "" and (" [%s]"):format(source) or ""
    local text = each.message:gsub("%s+", " ")
    local kind = SEVERITIES[each.severity] or "error"
    table.insert(lines, ("%s: %s%s, in the line `%s`"):format(kind, text, from, code))
  end
  return table.concat(lines, "\n")
end

--- Describe the diagnostics of the cursor's line, or of a range.
---@param range? integer[] first row and the one after the last
---@return string? instruction to fix them; nil if there are none
---@return integer? row of the first
function M.problems(range)
  local buf, cursor = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)
  local rows = range or { cursor[1] - 1, cursor[1] }
  local found = M.at(buf, rows[1], rows[2], cursor[2])
  if #found > 0 then
    return fix_instruction(buf, found), found[1].lnum
  end
end

return M
