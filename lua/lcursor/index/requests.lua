-- The one door to the index: numbers questions, starts the host where it must, and hands each
-- answer to who asked. A question whose answer never comes is forgotten with the next of its kind.

local context = require("lcursor.context")
local report = require("lcursor.report")
local rpc = require("lcursor.rpc")

local M = {}

local number = 0
---@type table<string, { id: integer, done: fun(params: table) }> by the answer's name
local waiting = {}

local ANSWERS = {
  ["index.report"] = "index.reported",
  ["index.why"] = "index.explained",
  ["index.search"] = "index.found",
  ["index.symbols"] = "index.found",
}

--- The place that a command is about: the file of the current buffer, else the working folder.
---@return string absolute
function M.here()
  return context.file(0) or assert(vim.uv.cwd())
end

--- Ask; a newer question of a kind takes the place of an older one.
---@param method string
---@param params table all fields but the id
---@param done? fun(params: table) called once, later; never where nothing answers
---@return boolean sent
function M.ask(method, params, done)
  number = number + 1
  params.id = number
  local answer = ANSWERS[method]
  if answer and done then
    waiting[answer] = { id = number, done = done }
  end
  return report.request(method, params)
end

--- Nobody waits for an answer of that kind any more.
---@param method string of the question
function M.forget(method)
  waiting[ANSWERS[method]] = nil
end

for _, answer in pairs(ANSWERS) do
  rpc.on(answer, function(params)
    local waiter = waiting[answer]
    if waiter and waiter.id == params.id then
      waiting[answer] = nil
      waiter.done(params)
    end
  end)
end

return M
