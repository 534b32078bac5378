-- The wire's Lua end: the only caller of vim.rpcnotify, and the one function that Python calls.
-- Owns the channel's number and the table of handlers; starts nothing (host.lua does).

local log = require("lcursor.log")
local notify = require("lcursor.notify")
local protocol = require("lcursor.protocol")

local M = {}

---@type integer? channel of the running host
local channel
---@type fun()? called once when the channel turns out to be closed
local on_broken
---@type table<string, fun(params: table)>
local handlers = {}

--- Say who handles a message. One handler a message. An error in it is logged and reported: Neovim
--- hands it to nobody.
---@param method string one of protocol.to_lua
---@param handler fun(params: table)
function M.on(method, handler)
  assert(protocol.to_lua[method], method)
  handlers[method] = notify.guarded(handler)
end

---@param number integer? nil when the host is gone
---@param broken? fun() called, later, when a message could not be sent
function M.connect(number, broken)
  channel, on_broken = number, broken
end

--- Send a message; never waits, never throws. Neovim closes a channel over which came something
--- else than msgpack-RPC, while the process behind it may live on: this is where that shows.
---@param method string one of protocol.to_python
---@param params? table
---@return boolean sent
function M.notify(method, params)
  if not channel then
    return false
  end
  local ok, err = pcall(vim.rpcnotify, channel, method, params or vim.empty_dict())
  if not ok then
    log.warn("cannot send %s: %s", method, err)
    channel = nil
    if on_broken then
      vim.schedule(on_broken)
    end
  end
  return ok
end

--- Everything that Python says arrives here.
---@param from integer channel it came over
---@param method string
---@param params table
function M.receive(from, method, params)
  if from ~= channel then
    return log.debug("%s from a host that is gone", method)
  end
  local fields = protocol.to_lua[method]
  local handler = handlers[method]
  if not fields or not handler or type(params) ~= "table" then
    return log.warn("message that nobody knows: %s", tostring(method))
  end
  for _, field in ipairs(fields) do
    if params[field] == nil then
      return log.warn("%s: field %s is missing", method, field)
    end
  end
  handler(params)
end

return M
