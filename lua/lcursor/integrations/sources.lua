-- What the pickers of other plugins can show. The features provide the items; snacks.lua,
-- fzf_lua.lua and Telescope's extension show them.

local chat = require("lcursor.commands.chat")
local edit = require("lcursor.commands.edit")
local notify = require("lcursor.ui.notify")

local M = {}

---@type table<string, fun(): lcursor.Source|false|nil>
local SOURCES = {
  search = function()
    return require("lcursor.index").source()
  end,
  chats = function()
    return chat.is_enabled() and require("lcursor.chat.list").source()
  end,
  models = function()
    return chat.is_enabled() and require("lcursor.chat.verbs").models()
  end,
  hunks = function()
    return edit.is_enabled() and require("lcursor.edit.quickfix").source()
  end,
}

---@return string[]
function M.names()
  local names = vim.tbl_keys(SOURCES)
  table.sort(names)
  return names
end

--- Return a source for the current project.
---@return lcursor.Source? nil if there is nothing to pick, which is reported
function M.get(name)
  if SOURCES[name] then
    return SOURCES[name]() or nil
  end
  local text = "there is no source %s (expected: %s)"
  notify.warn(text:format(tostring(name), table.concat(M.names(), ", ")))
end

return M
