-- The way of a feature's questions to the host: numbers what is asked, starts the host where it
-- must, and hands each answer, and each failure, to who asked. Each feature has a door of its own
-- (its requests.lua). Knows nothing of buffers.

local config = require("lcursor.config")
local host = require("lcursor.host")
local notify = require("lcursor.notify")
local report = require("lcursor.report")
local rpc = require("lcursor.rpc")

local M = {}

-- Completion and the index count from 1, and an error tells only a number: ours are not to be
-- mistaken for theirs.
local number = 1000000

---@alias lcursor.Hear fun(method: string, params: table)

---@type lcursor.Door[]
local doors = {}
---@type integer? process that answers
local job
local is_watching = false

local function hear_host()
  local now = host.info().job
  if job and now ~= job then
    for _, door in ipairs(doors) do
      door.fail_all("the Python host ended")
    end
  end
  job = now
end

--- From now on, what was asked of a host that ends fails.
local function watch()
  if not is_watching then
    is_watching = true
    vim.api.nvim_create_autocmd("User", {
      group = vim.api.nvim_create_augroup("lcursor.door", {}),
      pattern = "LCursorHostState",
      callback = notify.guarded(hear_host),
    })
  end
  hear_host()
end

--- Whether a feature may be used by the settings; tells where not.
---@param feature "chat"|"edit"|"index"
---@param what string what it is, for a sentence
---@return boolean
function M.is_on(feature, what)
  local settings = config.get()
  if settings.enabled and settings[feature].enabled then
    return true
  end
  notify.warn(("%s switched off by the setting %s.enabled"):format(what, feature))
  return false
end

--- Open a door.
---@param last string[] messages that answer, and after which nothing more comes
---@param more string[] messages that answer, and after which others do
---@return lcursor.Door
function M.open(last, more)
  ---@type table<integer, lcursor.Hear> by the number of the question
  local waiting = {}
  local is_last = {}
  ---@class lcursor.Door
  local door = {}

  --- Ask, and hear all that is said in answer: each message by its name, an error as `error`,
  --- which is told as well. Whoever hears it has to end what waits, and to forget it where no end
  --- is told.
  ---@param method string
  ---@param params table all fields but the id
  ---@param hear lcursor.Hear
  ---@return integer? id nil when nothing could be sent
  function door.follow(method, params, hear)
    watch()
    number = number + 1
    local id = number
    params.id = id
    waiting[id] = hear
    if not report.request(method, params) then
      waiting[id] = nil
      return nil
    end
    job = host.info().job
    return id
  end

  --- Ask, and hear the one answer.
  ---@param method string
  ---@param params table all fields but the id
  ---@param done? fun(params: table) called once, later; never where nothing answers
  ---@param failed? fun(err: lcursor.Error) called in its place
  ---@return integer? id nil when nothing could be sent
  function door.ask(method, params, done, failed)
    local id
    id = door.follow(method, params, function(name, answer)
      door.forget(id)
      local heard = name == "error" and failed or name ~= "error" and done
      if heard then
        heard(answer)
      end
    end)
    return id
  end

  --- Say what nothing answers.
  ---@param method string
  ---@param params table
  ---@return boolean sent
  function door.tell(method, params)
    return rpc.notify(method, params)
  end

  --- Nobody waits for that answer any more.
  ---@param id? integer
  function door.forget(id)
    if id then
      waiting[id] = nil
    end
  end

  --- Whatever was asked is not answered.
  ---@param why string
  function door.fail_all(why)
    local left = waiting
    waiting = {}
    for id, hear in pairs(left) do
      hear("error", { id = id, code = "host_died", message = why, hint = "", level = "silent" })
    end
  end

  ---@param method string
  ---@param params table
  local function receive(method, params)
    local hear = waiting[params.id]
    if is_last[method] then
      waiting[params.id] = nil
    end
    if hear then
      hear(method, params)
    end
  end

  for _, method in ipairs(last) do
    is_last[method] = true
  end
  for _, methods in ipairs({ last, more }) do
    for _, method in ipairs(methods) do
      rpc.on(method, function(params)
        receive(method, params)
      end)
    end
  end
  host.on_error(function(params)
    receive("error", params)
  end)
  table.insert(doors, door)
  return door
end

return M
