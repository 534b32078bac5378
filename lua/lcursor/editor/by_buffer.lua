-- Tables by buffer: what they contain of a buffer is forgotten when it is unloaded.

local config = require("lcursor.config")
local notify = require("lcursor.ui.notify")

local M = {}

---@type table<integer, any>[]
local tables = {}

--- Return a new table by buffer.
function M.new()
  local new = {}
  table.insert(tables, new)
  return new
end

notify.autocmds("by_buffer")("BufUnload", function(event)
  config.forget(event.buf)
  for _, each in ipairs(tables) do
    each[event.buf] = nil
  end
end)

return M
