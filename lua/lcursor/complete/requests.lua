-- The one door to the model: numbers the requests, sends them, hands each answer to who asked.
-- Owns all messages `fim.*` but `fim.outcome`. One request lives at a time, as in the host: a newer
-- one ends the older one. Who asks for what is being worked on joins it. Knows nothing of ghosts
-- and menus.

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

---@type lcursor.LiveRequest? the one that the host works on
local live
---@type lcursor.LiveRequest? the last one, once it was answered; a better answer may still come
local answered
---@type { id: integer, tell: fun(texts: string[]?) }? who waits for alternatives
local asked
---@type lcursor.Answer? of the last request that was answered
local last_answer

local SAME = { "buf", "tick", "row", "col", "single_line" }
local WARM = { "path", "name", "repo", "first_row", "prefix", "suffix", "top" }

---@param request lcursor.Request
---@return boolean whether the host works on just that already
local function is_live(request)
  return live ~= nil
    and vim.iter(SAME):all(function(field)
      return live.request[field] == request[field]
    end)
end

--- Tell all who wait that nothing more will come. Later, so that they may ask again.
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

--- Nothing more will come for who waits for alternatives.
local function give_up_more()
  local it = asked
  asked = nil
  if it then
    it.tell(nil)
  end
end

--- Whether the host runs but finds no server for completion. It looks again at each request.
---@return boolean
function M.server_is_away()
  return status.get().state == "failed"
    and host.info().job ~= nil
    and config.get().completion.backend == "endpoint"
end

--- Why the host cannot be asked now, or nil. Starts it where nobody did yet.
---@return string? code of why.lua
function M.refusal()
  if status.get().state == "stopped" then
    host.start()
  end
  local state = status.get().state
  return state ~= "ready" and not M.server_is_away() and "host_" .. state or nil
end

--- Ask. `waiter.done` is called once, later, unless the waiter cancels.
---@param request lcursor.Request without an id
---@param waiter lcursor.Waiter
---@return integer? id nil when there is a private key in the text, so that nothing was sent
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

--- Let the host evaluate the text around a position in advance; nothing answers.
---@param request lcursor.Request without an id; what `fim.warm` has no use for is left out
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

--- Ask for other answers to a request that was answered.
---@param id integer
---@param typed string what of that answer was typed since
---@param tell fun(texts: string[]?) called once, later, unless cancelled; nil when something else
---came between
---@return boolean whether the host could be asked
function M.more(id, typed, tell)
  if not rpc.notify("fim.more", { id = id, typed = typed }) then
    return false
  end
  give_up_more()
  asked = { id = id, tell = tell }
  return true
end

--- Wait no longer for other answers to a request.
---@param id integer
function M.cancel_more(id)
  if asked and asked.id == id then
    asked = nil
    rpc.notify("fim.cancel", { id = id })
  end
end

--- Wait no longer. The host is told when nobody else waits either.
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

--- End what lives, whoever waits for it.
---@param reason "cancelled"|"failed" failed: the host is gone and need not be told
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

---@return lcursor.Request? the one that was answered, where the host was asked for nothing since
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
