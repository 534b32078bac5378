-- Requests for completions. As in the host, a new request cancels the previous one; another one for
-- the same position (by a menu, say) shares the first.

local config = require("lcursor.config")
local host = require("lcursor.host")
local next_id = require("lcursor.host.requests").next_id
local privacy = require("lcursor.editor.privacy")
local rpc = require("lcursor.host.rpc")
local status = require("lcursor.host.status")

local M = {}

---@class (exact) lcursor.LiveRequest
---@field request lcursor.Request
---@field listeners lcursor.CompletionListener[]

---@type lcursor.LiveRequest? the one that the host is answering
local live
---@type lcursor.LiveRequest? the last one, once it was answered; a better answer may still come
local answered
---@type { id: integer, done: fun(texts: string[]?) }? the request for alternatives
local pending_more
---@type lcursor.Answer? of the last request that was answered
local last_answer

local SAME = { "buf", "tick", "row", "col", "single_line" }
local WARM = { "path", "name", "repo", "first_row", "prefix", "suffix", "top" }

---@param request lcursor.Request
local function has_key(request)
  return privacy.has_private_key(request.prefix) or privacy.has_private_key(request.suffix)
end

--- Drop the request that the host is answering; end its callbacks later, so that they may send
--- another one.
---@param reason "cancelled"|"failed"
local function give_up(reason)
  local ended = live
  live = nil
  if ended then
    vim.schedule(function()
      for _, listener in ipairs(ended.listeners) do
        listener.done(ended.request.id, { text = "", reason = reason })
      end
    end)
  end
end

--- Drop the request for alternatives.
local function give_up_more()
  local it = pending_more
  pending_more = nil
  if it then
    it.done(nil)
  end
end

--- Return whether the host runs but has no completion server. It reconnects with each request.
function M.server_is_away()
  return status.get().state == "failed"
    and host.info().job ~= nil
    and config.completion_server() ~= nil
end

--- Return why a request is impossible now. Starts the host if necessary.
---@return string? code of why.lua
function M.block_reason()
  if status.get().state == "stopped" then
    host.start()
  end
  local state = status.get().state
  return state ~= "ready" and not M.server_is_away() and "host_" .. state or nil
end

--- Send a request. `listener.done` is called once, later, unless it is cancelled.
---@param request lcursor.Request without an id
---@param listener lcursor.CompletionListener
---@return integer? id nil if the text contains a private key, so that nothing was sent
function M.ask(request, listener)
  if has_key(request) then
    return nil
  end
  local is_same = live
    and vim.iter(SAME):all(function(field)
      return live.request[field] == request[field]
    end)
  if live and is_same then
    table.insert(live.listeners, listener)
    return live.request.id
  end
  give_up("cancelled")
  request.id = next_id()
  live, answered = { request = request, listeners = { listener } }, nil
  rpc.notify("fim.request", request)
  give_up_more()
  return request.id
end

--- Let the host evaluate the text around a position in advance. There is no answer.
---@param request lcursor.Request without an id; fields that `fim.warm` does not need are left out
---@return integer? id to cancel it with; nil when nothing was sent
function M.warm(request)
  if has_key(request) then
    return nil
  end
  answered = nil
  local position = { id = next_id() }
  for _, field in ipairs(WARM) do
    position[field] = request[field]
  end
  return rpc.notify("fim.warm", position) and position.id or nil
end

--- Stop evaluating in advance.
---@param id integer from `warm`
function M.cancel_warm(id)
  rpc.notify("fim.cancel", { id = id })
end

--- Request alternatives to an answer.
---@param typed string the part of that answer that was typed since
---@param done fun(texts: string[]?) called once, later, unless cancelled; nil if another request
---was sent
---@return boolean sent
function M.more(id, typed, done)
  if not rpc.notify("fim.more", { id = id, typed = typed }) then
    return false
  end
  give_up_more()
  pending_more = { id = id, done = done }
  return true
end

--- Cancel the request for alternatives.
function M.cancel_more(id)
  if pending_more and pending_more.id == id then
    pending_more = nil
    rpc.notify("fim.cancel", { id = id })
  end
end

--- Cancel a request for one listener; for the host too if it was the last.
---@param listener lcursor.CompletionListener
function M.cancel(id, listener)
  if not live or live.request.id ~= id then
    return
  end
  live.listeners = vim.tbl_filter(function(other)
    return other ~= listener
  end, live.listeners)
  if #live.listeners == 0 then
    live = nil
    rpc.notify("fim.cancel", { id = id })
  end
end

--- End the current request for all.
---@param reason "cancelled"|"failed" failed: the host is gone
function M.stop(reason)
  give_up_more()
  if reason == "failed" then
    answered = nil
  elseif live then
    rpc.notify("fim.cancel", { id = live.request.id })
  end
  give_up(reason)
end

---@return lcursor.Request? the last one, if it was answered
function M.last_answered()
  return answered and answered.request
end

---@return lcursor.Answer? the last answer of the host
function M.last_answer()
  return last_answer
end

---@param of lcursor.LiveRequest?
---@param callback "partial"|"done"|"improved"
---@param value string|lcursor.Answer
local function call(of, id, callback, value)
  for _, listener in ipairs(of and of.request.id == id and of.listeners or {}) do
    if listener[callback] then
      listener[callback](id, value)
    end
  end
end

rpc.on("fim.partial", function(params)
  call(live, params.id, "partial", params.text)
end)

rpc.on("fim.alternatives", function(params)
  local it = pending_more
  if it and it.id == params.id then
    pending_more = nil
    it.done(params.texts)
  end
end)

rpc.on("fim.done", function(params)
  last_answer = params
  local it = live
  if it and it.request.id == params.id then
    live, answered = nil, it
    call(it, params.id, "done", params)
  end
end)

rpc.on("fim.improved", function(params)
  call(answered, params.id, "improved", params)
end)

return M
