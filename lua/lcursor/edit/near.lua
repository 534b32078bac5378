-- What of a buffer is on the screen, and near it. Knows nothing of how hunks are drawn.

local M = {}

--- The windows that show a buffer.
---@param buf integer
---@return integer[][] first and last rows of each
function M.windows(buf)
  local found = {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local info = vim.fn.getwininfo(win)[1]
    table.insert(found, { info.topline - 1, info.botline })
  end
  return found
end

--- Whether a hunk is in one of some windows, or near it.
---@param hunk lcursor.Hunk
---@param windows integer[][] as `windows` returns them
---@param beyond integer so many lines above and below count, too
---@return boolean
function M.is_within(hunk, windows, beyond)
  for _, rows in ipairs(windows) do
    if hunk.first <= rows[2] + beyond and hunk.last >= rows[1] - beyond then
      return true
    end
  end
  return false
end

return M
