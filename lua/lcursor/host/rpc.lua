-- The connection to the Python host: sends messages (the only caller of vim.rpcnotify) and hands
-- those that arrive to their handlers. host.lua starts the process.

local log = require("lcursor.ui.log")
local notify = require("lcursor.ui.notify")
local protocol = require("lcursor.host.protocol")

local M = {}

---@type integer? channel of the running host
local channel
---@type fun()? called once if the channel turns out to be closed
local on_broken
---@type table<string, (fun(params: table))[]> by message
local handlers = {}
---@type fun()[]
local disconnected = {}

--- Call a function with each message of a name. An error in it is logged and reported: Neovim
--- reports it to nobody.
---@param method string one of protocol.to_lua
---@param handler fun(params: table)
function M.on(method, handler)
  assert(protocol.to_lua[method], method)
  handlers[method] = handlers[method] or {}
  table.insert(handlers[method], notify.guarded(handler))
end

--- Call a function whenever the host is disconnected.
function M.on_disconnect(callback)
  table.insert(disconnected, callback)
end

---@param number integer? nil if the host is gone
---@param broken? fun() called, later, if a message could not be sent
function M.connect(number, broken)
  channel, on_broken = number, broken
  for _, callback in ipairs(number and {} or disconnected) do
    callback()
  end
end

--- Send a message; never waits, never throws. Neovim closes a channel on which something other than
--- msgpack-RPC arrived, though its process may live on: sending then fails.
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

--- Handle a message. Python calls this function and no other.
---@param from integer channel it came over
function M.receive(from, method, params)
  if from ~= channel then
    return log.debug("%s from a host that has ended", method)
  end
  local fields = protocol.to_lua[method]
  if not fields or not handlers[method] or type(params) ~= "table" then
    return log.warn("unknown message: %s", tostring(method))
  end
  for _, field in ipairs(fields) do
    if params[field] == nil then
      return log.warn("%s: field %s is missing", method, field)
    end
  end
  for _, handler in ipairs(handlers[method]) do
    handler(params)
  end
end

return M
