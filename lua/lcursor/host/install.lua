-- `:LCursor install`. While the engine is compiled for the first time, the host completes with a
-- llama-server or Ollama that runs on this machine, as this user or as a system account of its own.
-- The doctor looks for it, on the loopback interface only.

local config = require("lcursor.config")
local doctor = require("lcursor.host.doctor")
local host = require("lcursor.host")
local environment = require("lcursor.host.environment")
local notify = require("lcursor.ui.notify")
local status = require("lcursor.host.status")

local M = {}

--- Let the host complete with a server until the engine is compiled.
---@param python string of the incomplete environment
---@param fact lcursor.Fact of the section local_server
local function use(python, fact)
  local is_on = config.get().enabled and config.get().completion.enabled
  if not environment.progress() or not is_on or config.completion_server() or host.info().job then
    return
  end
  local name = fact.api == "ollama" and "Ollama" or "llama-server"
  local server = { url = fact.url, model = fact.model }
  config.set_interim({ models = { [name] = server }, completion = { model = name } })
  environment.set_interim(python, name)
  status.set("stopped", "")
  host.start()
  local text = "until the engine is compiled, %s completes; nothing leaves this machine"
  notify.info(text:format(fact.text))
end

local function look_for_server(python)
  doctor.follow(python, nil, function(fact)
    if fact.section == "local_server" and fact.url then
      use(python, fact)
    end
  end)
end

---@param err? lcursor.Error
local function finish(err)
  if environment.interim() then
    config.set_interim(nil)
    environment.set_interim(nil)
    host.stop()
    if err then
      status.set("absent", err.message)
    end
  end
  if not err then
    host.restart()
  end
end

--- Run `:LCursor install`. Returns at once.
function M.install()
  environment.run(finish, look_for_server)
end

return M
