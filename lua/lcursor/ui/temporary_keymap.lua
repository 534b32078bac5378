-- Maps a key in a buffer for a while. The user's map of the key is restored afterwards; one that
-- was made meanwhile is kept.

local M = {}

local api = vim.api

---@class (exact) lcursor.TemporaryKeymap
---@field buf integer
---@field mode string
---@field lhs string
---@field callback function
---@field before? table maparg() of the user's buffer-local map

---@param buf integer
---@param fn fun()
local function with_buffer(buf, fn)
  if buf == api.nvim_get_current_buf() then
    fn()
  elseif api.nvim_buf_is_valid(buf) then
    api.nvim_buf_call(buf, fn)
  end
end

--- Map a key.
---@param buf integer
---@param mode string one letter
---@param lhs string
---@param callback function
---@param opts? vim.api.keyset.keymap
---@return lcursor.TemporaryKeymap
function M.set(buf, mode, lhs, callback, opts)
  ---@type lcursor.TemporaryKeymap
  local keymap = { buf = buf, mode = mode, lhs = lhs, callback = callback }
  with_buffer(buf, function()
    local before = vim.fn.maparg(lhs, mode, false, true)
    keymap.before = before.buffer == 1 and before or nil
    local all = vim.tbl_extend("keep", { callback = callback, nowait = true }, opts or {})
    all.noremap = true
    api.nvim_buf_set_keymap(0, mode, lhs, "", all)
  end)
  return keymap
end

--- Unmap it, and restore what was there.
---@param keymap lcursor.TemporaryKeymap
function M.restore(keymap)
  with_buffer(keymap.buf, function()
    local now = vim.fn.maparg(keymap.lhs, keymap.mode, false, true)
    if now.buffer == 1 and now.callback == keymap.callback then
      api.nvim_buf_del_keymap(0, keymap.mode, keymap.lhs)
      if keymap.before then
        vim.fn.mapset(keymap.mode, false, keymap.before)
      end
    end
  end)
end

return M
