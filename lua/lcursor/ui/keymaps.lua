-- Maps that a buffer has for a while. A map of the user's that was there is restored afterwards;
-- one that was made meanwhile is left alone.

local M = {}

---@class (exact) lcursor.Keymap
---@field mode string
---@field lhs string
---@field callback function
---@field before? table maparg() of the user's buffer-local map

---@return table? maparg() of the buffer-local map in the current buffer
local function find(lhs, mode)
  local map = vim.fn.maparg(lhs, mode, false, true)
  return map.buffer == 1 and map or nil
end

--- Map a key in the current buffer.
---@param mode string
---@param lhs string
---@param callback function
---@param opts vim.keymap.set.Opts
---@return lcursor.Keymap
function M.set(mode, lhs, callback, opts)
  local map = { mode = mode, lhs = lhs, callback = callback, before = find(lhs, mode) }
  opts.buffer, opts.nowait = true, true
  vim.keymap.set(mode, lhs, callback, opts)
  return map
end

--- Remove maps, the last one first.
---@param buf integer
---@param maps lcursor.Keymap[]
function M.remove(buf, maps)
  if #maps == 0 or not vim.api.nvim_buf_is_valid(buf) then
    return
  end
  vim.api.nvim_buf_call(buf, function()
    for _, map in vim.iter(maps):rev():enumerate() do
      local now = find(map.lhs, map.mode)
      if now and now.callback == map.callback then
        vim.keymap.del(map.mode, map.lhs, { buffer = true })
        if map.before then
          vim.fn.mapset(map.mode, false, map.before)
        end
      end
    end
  end)
end

return M
