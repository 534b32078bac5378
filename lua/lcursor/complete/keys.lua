-- Maps the keys of a visible ghost in its buffer. The user's own maps are restored afterwards; one
-- that was made meanwhile is kept.

local M = {}

local api = vim.api

---@class (exact) lcursor.Key
---@field lhs string
---@field callback function
---@field before? table maparg() of the user's buffer-local map, to be restored

---@type integer? buffer in which they are mapped
local buffer
---@type lcursor.Key[]
local keys = {}

---@type table<string, string> setting -> its <Plug> map
local PLUGS = {
  accept = "<Plug>(lcursor-accept)",
  accept_line = "<Plug>(lcursor-accept-line)",
  accept_word = "<Plug>(lcursor-accept-word)",
  dismiss = "<Plug>(lcursor-dismiss)",
  next = "<Plug>(lcursor-next)",
  prev = "<Plug>(lcursor-prev)",
}

--- Press a key as if lcursor were not there.
---@param lhs string
local function pass_on(lhs)
  M.release()
  api.nvim_feedkeys(vim.keycode(lhs), "imt", false)
end

--- Map the keys in the current buffer, unless they are mapped.
---@param config table<string, any>
---@param press fun(name: string): string? returns what to type; nil passes the key on
function M.map(config, press)
  local buf = api.nvim_get_current_buf()
  if buffer == buf then
    return
  end
  M.release()
  buffer = buf
  if not config.enabled then
    return
  end
  for name, plug in pairs(PLUGS) do
    local lhs = config[name]
    if lhs ~= "" and vim.fn.hasmapto(plug, "i") == 0 then
      local before = vim.fn.maparg(lhs, "i", false, true)
      local key = { lhs = lhs, before = before.buffer == 1 and before or nil }
      key.callback = function()
        local typed = press(name)
        if not typed then
          pass_on(lhs)
        end
        return typed or ""
      end
      api.nvim_buf_set_keymap(buf, "i", lhs, "", {
        callback = key.callback,
        expr = true,
        noremap = true,
        nowait = true,
        replace_keycodes = true,
        silent = true,
        desc = "lcursor: " .. name:gsub("_", " "),
      })
      table.insert(keys, key)
    end
  end
end

---@param key lcursor.Key
local function restore(key)
  local now = vim.fn.maparg(key.lhs, "i", false, true)
  if now.buffer ~= 1 or now.callback ~= key.callback then
    return
  end
  api.nvim_buf_del_keymap(0, "i", key.lhs)
  if key.before then
    vim.fn.mapset("i", false, key.before)
  end
end

--- Unmap them and restore the user's maps.
function M.release()
  local buf, held = buffer, keys
  buffer, keys = nil, {}
  if #held == 0 or not buf or not api.nvim_buf_is_valid(buf) then
    return
  end
  if buf == api.nvim_get_current_buf() then
    vim.iter(held):each(restore)
  else
    api.nvim_buf_call(buf, function()
      vim.iter(held):each(restore)
    end)
  end
end

return M
