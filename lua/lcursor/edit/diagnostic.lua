-- `:LCursor fix`: asks for a change that does away with the diagnostics at the cursor, or in a
-- range.

local notify = require("lcursor.notify")

local M = {}

local api = vim.api
local MOST = 10
local SEVERITIES = { "error", "warning", "information", "hint" }

--- The diagnostics of some rows, the gravest first; with no range, those of the cursor's line, the
--- nearest first.
---@param buf integer
---@param first integer row
---@param last integer behind it
---@param col integer of the cursor
---@return vim.Diagnostic[]
function M.find(buf, first, last, col)
  local found = vim.tbl_filter(function(each)
    local stop = math.max(each.end_lnum or each.lnum, each.lnum)
    return each.lnum < last and stop >= first
  end, vim.diagnostic.get(buf))
  local function distance(each)
    if each.lnum ~= first then
      return 1000 + math.abs(each.lnum - first)
    elseif col < each.col then
      return each.col - col
    end
    local is_behind = each.end_col and each.lnum == each.end_lnum and col >= each.end_col
    return is_behind and col - each.end_col or 0
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

--- What is asked for, in the words of the diagnostics.
---@param buf integer
---@param found vim.Diagnostic[]
---@return string
function M.instruction(buf, found)
  local lines = { #found == 1 and "Fix this problem:" or "Fix these problems:" }
  for i, each in ipairs(found) do
    if i > MOST then
      break
    end
    local code = vim.trim(api.nvim_buf_get_lines(buf, each.lnum, each.lnum + 1, false)[1] or "")
    local source = vim.trim(("%s %s"):format(each.source or "", each.code or ""))
    local from = source ~= "" and (" [%s]"):format(source) or ""
    local kind = SEVERITIES[each.severity] or "error"
    local text = each.message:gsub("%s+", " ")
    table.insert(lines, ("%s: %s%s, in the line `%s`"):format(kind, text, from, code))
  end
  return table.concat(lines, "\n")
end

--- Ask for the change.
---@param range? integer[] first row and the one behind the last; nil is the cursor's line
---@param model? string
---@return lcursor.EditRun?
function M.ask(range, model)
  local buf = api.nvim_get_current_buf()
  local cursor = api.nvim_win_get_cursor(0)
  local first, last = cursor[1] - 1, cursor[1]
  if range then
    first, last = range[1], range[2]
  end
  local found = M.find(buf, first, last, cursor[2])
  if #found == 0 then
    local where = range and "these lines have no diagnostics" or "this line has no diagnostics"
    return notify.info(where .. "; :lua vim.diagnostic.setqflist() lists all")
  end
  local row = found[1].lnum
  local opts = { model = model }
  local from, to = row, row
  if range then
    from, to = first, last
  end
  return require("lcursor.edit.region").ask(buf, from, to, M.instruction(buf, found), opts)
end

return M
