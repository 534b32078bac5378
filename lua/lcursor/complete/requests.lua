-- Requests for completions. As in the host, a new request cancels the previous one; another one for
-- the same position (by a menu, say) shares the first.

local config = require("lcursor.config")
local host = require("lcursor.host")
local privacy = require("lcursor.privacy")
local next_id = require("lcursor.requests").next_id
local rpc = require("lcursor.rpc")
local status = require("lcursor.status")

local M = {}

---@class (exact) lcursor.LiveRequest
---@field request lcursor.Request
---@field waiters lcursor.Waiter[]

---@type lcursor.LiveRequest? the one that the host is answering
local live
---@type lcursor.LiveRequest? the last one, once it was answered; a better answer may still come
local answered
---@type { id: integer, tell: fun(texts: string[]?) }? the request for alternatives
local asked
---@type lcursor.Answer? of the last request that was answered
local last_answer

local SAME = { "buf", "tick", "row", "col", "single_line" }
local WARM = { "path", "name", "repo", "first_row", "prefix", "suffix", "top" }

---@param request lcursor.Request
---@return boolean whether the host is answering the same request already
local function is_live(request)
  return live ~= nil
    and vim.iter(SAME):all(function(field)
      return live.request[field] == request[field]
    end)
end

--- End the callbacks of a request, later, so that they may send another one.
---@param ended lcursor.LiveRequest
---@param reason "cancelled"|"failed"
local function give_up(ended, reason)
  local waiters = ended.waiters
  ended.waiters = {}
  vim.schedule(function()
    for _, waiter in ipairs(waiters) do
      waiter.done(ended.request.id, { text = "", reason = reason })
    end
  end)
end

--- Give up the request for alternatives.
local function give_up_more()
  local it = asked
  asked = nil
  if it then
    it.tell(nil)
  end
end

--- Return whether the host runs but has no completion server. It looks again at each request.
---@return boolean
function M.server_is_away()
  return status.get().state == "failed"
    and host.info().job ~= nil
    and config.get().completion.backend == "endpoint"
end

--- Return why the host cannot be asked now. Starts it if nothing did yet.
---@return string? code of why.lua
function M.refusal()
  if status.get().state == "stopped" then
    host.start()
  end
  local state = status.get().state
  return state ~= "ready" and not M.server_is_away() and "host_" .. state or nil
end

--- Send a request. `waiter.done` is called once, later, unless it is cancelled.
---@param request lcursor.Request without an id
---@param waiter lcursor.Waiter
---@return integer? id nil if the text contains a private key, so that nothing was sent
function M.ask(request, waiter)
  if privacy.has_private_key(request.prefix) or privacy.has_private_key(request.suffix) then
    return nil
  elseif live and is_live(request) then
    table.insert(live.waiters, waiter)
    return live.request.id
  end
  local older = live
  request.id = next_id()
  live, answered = { request = request, waiters = { waiter } }, nil
  rpc.notify("fim.request", request)
  give_up_more()
  if older then
    give_up(older, "cancelled")
  end
  return request.id
end

--- Let the host evaluate the text around a position in advance. There is no answer.
---@param request lcursor.Request without an id; fields that `fim.warm` does not need are left out
---@return integer? id to cancel it with; nil when nothing was sent
function M.warm(request)
  if privacy.has_private_key(request.prefix) or privacy.has_private_key(request.suffix) then
    return nil
  end
  answered = nil
  local place = { id = next_id() }
  for _, field in ipairs(WARM) do
    place[field] = request[field]
  end
  return rpc.notify("fim.warm", place) and place.id or nil
end

--- Stop evaluating in advance.
---@param id integer from `warm`
function M.cancel_warm(id)
  rpc.notify("fim.cancel", { id = id })
end

--- Request alternatives to an answer.
---@param id integer
---@param typed string what of that answer was typed since
---@param tell fun(texts: string[]?) called once, later, unless cancelled; nil if another request
---was sent
---@return boolean sent
function M.more(id, typed, tell)
  if not rpc.notify("fim.more", { id = id, typed = typed }) then
    return false
  end
  give_up_more()
  asked = { id = id, tell = tell }
  return true
end

--- Cancel the request for alternatives.
---@param id integer
function M.cancel_more(id)
  if asked and asked.id == id then
    asked = nil
    rpc.notify("fim.cancel", { id = id })
  end
end

--- Cancel a request for one waiter; for the host too if it was the last.
---@param id integer
---@param waiter lcursor.Waiter
function M.cancel(id, waiter)
  local it = live
  if not it or it.request.id ~= id then
    return
  end
  it.waiters = vim.tbl_filter(function(other)
    return other ~= waiter
  end, it.waiters)
  if #it.waiters == 0 then
    live = nil
    rpc.notify("fim.cancel", { id = id })
  end
end

--- End the current request for all.
---@param reason "cancelled"|"failed" failed: the host is gone
function M.stop(reason)
  give_up_more()
  local it = live
  live = nil
  if reason == "failed" then
    answered = nil
  end
  if it then
    if reason == "cancelled" then
      rpc.notify("fim.cancel", { id = it.request.id })
    end
    give_up(it, reason)
  end
end

---@return lcursor.Request? the last one, if it was answered
function M.last_answered()
  return answered and answered.request
end

---@return lcursor.Answer? the last answer of the host
function M.last_answer()
  return last_answer
end

rpc.on("fim.partial", function(params)
  local it = live
  if it and it.request.id == params.id then
    for _, waiter in ipairs(it.waiters) do
      waiter.partial(params.id, params.text)
    end
  end
end)

rpc.on("fim.alternatives", function(params)
  local it = asked
  if it and it.id == params.id then
    asked = nil
    it.tell(params.texts)
  end
end)

rpc.on("fim.done", function(params)
  last_answer = {
    text = params.text,
    replaces = params.replaces,
    reason = params.reason,
    stats = params.stats,
  }
  local it = live
  if it and it.request.id == params.id then
    live, answered = nil, it
    for _, waiter in ipairs(it.waiters) do
      waiter.done(params.id, last_answer)
    end
  end
end)

rpc.on("fim.improved", function(params)
  local it = answered
  if it and it.request.id == params.id then
    for _, waiter in ipairs(it.waiters) do
      if waiter.improved then
        waiter.improved(params.id, {
          text = params.text,
          replaces = params.replaces,
          reason = "end",
          stats = params.stats,
        })
      end
    end
  end
end)

return M
