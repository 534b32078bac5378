-- Requests to the host and their answers, for all features: one counter, one table of listeners.
-- (Completion only takes its ids from here: several may wait for one answer, see complete/.)

local config = require("lcursor.config")
local host = require("lcursor.host")
local notify = require("lcursor.ui.notify")
local protocol = require("lcursor.host.protocol")
local rpc = require("lcursor.host.rpc")
local status = require("lcursor.host.status")

local M = {}

--- Called with each message that answers a request; an error arrives as `error`, after it was
--- reported.
---@alias lcursor.Listener fun(method: string, params: table)

local last_id = 0
---@type table<integer, lcursor.Listener> by id
local listeners = {}
---@type table<integer, true> ids of the requests that follow each other while the user types
local typed = {}

---@return integer id of a new request
function M.next_id()
  last_id = last_id + 1
  return last_id
end

--- Send a notification; does not start the host.
M.notify = rpc.notify

--- Send a message. Starts the host if necessary, and reports if it cannot be reached.
---@param params? table
---@return boolean sent
function M.send(method, params)
  if status.get().state == "stopped" then
    host.start()
  end
  local sent = rpc.notify(method, params)
  if not sent and status.get().state == "absent" then
    notify.warn("there is no Python environment yet. Run :LCursor install")
  elseif not sent then
    local text = "the Python host is not running (%s); see :LCursor status"
    notify.warn(text:format(status.get().state))
  end
  return sent
end

--- Send a request and listen to every answer.
---@param params table all fields but the id
---@param listener lcursor.Listener
---@return integer? id nil if nothing could be sent
function M.follow(method, params, listener)
  local id = M.next_id()
  params.id = id
  listeners[id] = listener
  if not M.send(method, params) then
    listeners[id] = nil
    return nil
  end
  return id
end

--- Send a request that has one answer.
---@param params table all fields but the id
---@param done? fun(params: table) called once, later
---@param failed? fun(err: lcursor.Error) called instead, after the error was reported
---@param is_typed? boolean whether such requests follow each other while the user types
---@return integer? id nil if nothing could be sent
function M.ask(method, params, done, failed, is_typed)
  local id
  id = M.follow(method, params, function(name, answer)
    M.forget(id)
    local callback = done
    if name == "error" then
      callback = failed
    end
    if callback then
      callback(answer)
    end
  end)
  if id and is_typed then
    typed[id] = true
  end
  return id
end

--- Return whether the user waits for the answer to a request.
---@param id integer
function M.is_awaited(id)
  return listeners[id] ~= nil and not typed[id]
end

--- Ignore further answers to a request.
---@param id? integer
function M.forget(id)
  if id then
    listeners[id], typed[id] = nil, nil
  end
end

--- Fail all requests, later.
function M.fail_all(message)
  local left = listeners
  listeners, typed = {}, {}
  vim.schedule(notify.guarded(function()
    for id, listener in pairs(left) do
      local err = { id = id, code = "host_died", message = message, hint = "", level = "silent" }
      listener("error", err)
    end
  end))
end

--- Whether the settings allow a feature; reports it if not.
---@param feature "agent"|"chat"|"edit"|"index"
---@param name string beginning of a sentence about it
function M.is_enabled(feature, name)
  if not config.switched_off(feature) then
    return true
  end
  local setting = config.get().enabled and feature .. ".enabled" or "enabled"
  notify.warn(("%s switched off by the setting %s"):format(name, setting))
  return false
end

for method, fields in pairs(protocol.to_lua) do
  if vim.list_contains(fields, "id") then
    rpc.on(method, function(params)
      local listener = listeners[params.id]
      if vim.endswith(method, ".done") then
        M.forget(params.id) -- nothing comes after it
      end
      if listener then
        listener(method, params)
      end
    end)
  end
end
rpc.on_disconnect(function()
  M.fail_all("the Python host ended")
end)

return M
