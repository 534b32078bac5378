-- Maps the keys of a visible ghost in its buffer. The user's own maps are restored afterwards; one
-- that was made meanwhile is kept.

local temporary_keymap = require("lcursor.ui.temporary_keymap")

local M = {}

local api = vim.api

---@type integer? buffer in which they are mapped
local buffer
---@type lcursor.TemporaryKeymap[]
local keymaps = {}

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
      local function callback()
        local typed = press(name)
        if not typed then
          pass_on(lhs)
        end
        return typed or ""
      end
      table.insert(
        keymaps,
        temporary_keymap.set(buf, "i", lhs, callback, {
          expr = true,
          replace_keycodes = true,
          silent = true,
          desc = "lcursor: " .. name:gsub("_", " "),
        })
      )
    end
  end
end

--- Unmap them and restore the user's maps.
function M.release()
  local mapped = keymaps
  buffer, keymaps = nil, {}
  vim.iter(mapped):each(temporary_keymap.restore)
end

return M
