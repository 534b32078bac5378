-- What the pickers of other plugins can show. The features provide the items; snacks.lua,
-- fzf_lua.lua and Telescope's extension show them.

local joined = require("lcursor.joined")
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")

local M = {}

---@return boolean
local function is_chat_enabled()
  joined.chat()
  return requests.is_enabled("chat", "the chat is")
end

---@type table<string, fun(): lcursor.Source|false|nil>
local SOURCES = {
  search = function()
    return require("lcursor.index").source()
  end,
  chats = function()
    return is_chat_enabled() and require("lcursor.chat.list").source()
  end,
  models = function()
    return is_chat_enabled() and require("lcursor.chat.commands").models()
  end,
  hunks = function()
    joined.edit()
    return require("lcursor.edit").is_on() and require("lcursor.edit.quickfix").source()
  end,
}

---@return string[]
function M.names()
  local names = vim.tbl_keys(SOURCES)
  table.sort(names)
  return names
end

--- Return a source for the current project.
---@param name string
---@return lcursor.Source? nil if there is nothing to pick, which is reported
function M.get(name)
  if SOURCES[name] then
    return SOURCES[name]() or nil
  end
  local text = "there is no source %s (expected: %s)"
  notify.warn(text:format(tostring(name), table.concat(M.names(), ", ")))
end

return M
