-- The one door from edits to the host: numbers what is asked, starts the host where it must, and
-- hands each answer, and each failure, to who asked. Knows nothing of buffers.

local host = require("lcursor.host")
local report = require("lcursor.report")
local rpc = require("lcursor.rpc")

local M = {}

-- The other features count from lower ones, and an error tells only a number: ours are not to be
-- mistaken.
local number = 2000000

---@alias lcursor.EditListen fun(method: string, params: table)

---@type table<integer, lcursor.EditListen> by the number of the question
local waiting = {}

--- Those after which nothing more comes.
local LAST = {
  ["edit.done"] = true,
  ["edit.written"] = true,
  ["edit.reverted"] = true,
  ["edit.turned"] = true,
}
local MORE = {
  "edit.started",
  "edit.progress",
  "edit.delta",
  "edit.planned",
  "edit.question",
  "edit.proposed",
  "edit.message",
}

--- Ask, and hear all that is said in answer: each message by its name, an error as `error`, which
--- is told as well. Whoever hears it has to end what waits, and to forget it where no end is told.
---@param method string
---@param params table all fields but the id
---@param hear lcursor.EditListen
---@return integer? id nil when nothing could be sent
function M.follow(method, params, hear)
  number = number + 1
  params.id = number
  waiting[number] = hear
  if report.request(method, params) then
    return number
  end
  waiting[number] = nil
end

--- Ask, and hear the one answer.
---@param method string
---@param params table all fields but the id
---@param done fun(params: table) called once, later; never where nothing answers
---@param failed? fun(err: lcursor.Error) called in its place
---@return integer? id nil when nothing could be sent
function M.ask(method, params, done, failed)
  local id
  id = M.follow(method, params, function(name, answer)
    M.forget(id)
    if name ~= "error" then
      done(answer)
    elseif failed then
      failed(answer)
    end
  end)
  return id
end

--- Say something about an edit that runs, or about what was decided; nothing answers.
---@param method string
---@param params table
---@return boolean sent
function M.tell(method, params)
  return rpc.notify(method, params)
end

--- Nobody waits for that answer any more.
---@param id? integer
function M.forget(id)
  if id then
    waiting[id] = nil
  end
end

---@param method string
---@param params table
local function hear(method, params)
  local who = waiting[params.id]
  if LAST[method] then
    waiting[params.id] = nil
  end
  if who then
    who(method, params)
  end
end

for _, methods in ipairs({ vim.tbl_keys(LAST), MORE }) do
  for _, method in ipairs(methods) do
    rpc.on(method, function(params)
      hear(method, params)
    end)
  end
end

host.on_error(function(params)
  hear("error", params)
end)

--- The host is gone: whatever was asked is not answered.
---@param why string
function M.fail_all(why)
  local left = waiting
  waiting = {}
  for id, who in pairs(left) do
    who("error", { id = id, code = "host_died", message = why, hint = "", level = "silent" })
  end
end

return M
