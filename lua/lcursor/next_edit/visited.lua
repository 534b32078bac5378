-- Where the user went to write an argument: an answer that was under way does not lead there again.

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.next_edit.visited")

---@type table<integer, table<integer, string>> by buffer: extmark -> group
local groups = {}

--- Note that the user went to a proposal.
---@param buf integer
---@param row integer
---@param group string
function M.add(buf, row, group)
  groups[buf] = groups[buf] or {}
  groups[buf][api.nvim_buf_set_extmark(buf, namespace, row, 0, {})] = group
end

---@param buf integer
---@param row integer
---@param group string
---@return boolean
function M.has(buf, row, group)
  for mark, other in pairs(groups[buf] or {}) do
    local at = api.nvim_buf_get_extmark_by_id(buf, namespace, mark, {})
    if other == group and at[1] == row then
      return true
    end
  end
  return false
end

--- Forget everything about a buffer.
---@param buf integer
function M.forget(buf)
  if groups[buf] and api.nvim_buf_is_loaded(buf) then
    api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  end
  groups[buf] = nil
end

return M
