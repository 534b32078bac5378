-- The health check's section about the chat: the models that the settings name and where what one
-- says goes, the local server as it would be and as it is. Starts nothing; asks a host that runs.

local status = require("lcursor.status")

local M = {}

local health = vim.health
local SERVER_MS = 700 -- that a running host gets to say how the server is
local SETTINGS = "Correct it where you configure lcursor; see `:help lcursor-chat-models`"

---@param url string
---@return string without what may be a password
local function shown(url)
  return (url:gsub("//[^/]*@", "//"))
end

---@param url string
---@return boolean whether it is on this machine
local function is_here(url)
  local host = url:match("^%a[%w+.-]*://([^/]*)") or url
  host = host:gsub("^.*@", ""):gsub(":%d+$", ""):lower()
  local is_loopback = host == "localhost" or host == "[::1]" or host:find("^127%.") ~= nil
  return is_loopback or vim.startswith(url, "unix:")
end

---@param name string
---@param model table
local function check_model(name, model)
  if not model.url or model.url == "" then
    return health.error(("chat.models.%s has no url"):format(name), SETTINGS)
  end
  local text = ("%s: %s at %s"):format(name, model.model or "its only model", shown(model.url))
  local variable = model.key_env or ""
  if variable ~= "" and (vim.env[variable] or "") == "" then
    local advice = ("Set it before Neovim starts: `export %s=...`"):format(variable)
    health.error(
      ("%s: the variable %s, which has its key, is empty"):format(name, variable),
      advice
    )
  elseif is_here(model.url) then
    health.ok(text)
  else
    health.warn(
      text .. ": not on this machine, so what you say and attach there is sent to it",
      "Choose another one with `:LCursor chats model`, or take it out of chat.models"
    )
  end
end

---@param settings table
local function check_models(settings)
  local names = vim.tbl_keys(settings.models)
  table.sort(names)
  for _, name in ipairs(names) do
    check_model(name, settings.models[name])
  end
  local first = settings.model ~= "" and settings.model or "what suits the machine"
  health.info("Setting chat.model: " .. first)
  local is_remote = settings.models[settings.model] ~= nil
  if settings.server == "off" and not is_remote then
    health.error(
      "chat.server is off, and chat.model names none of chat.models: nobody can be asked",
      SETTINGS
    )
  end
end

---@return lcursor.ServerTold?
local function ask_server()
  local told
  require("lcursor.requests").ask("server.ask", { ["do"] = "status" }, function(answer)
    told = answer
  end)
  vim.wait(SERVER_MS, function()
    return told ~= nil
  end, 10)
  return told
end

---@param told lcursor.ServerTold
local function check_told(told)
  local lines = require("lcursor.chat.server").lines(told)
  local text = "The local server: " .. table.concat(lines, "\n")
  if told.state == "failed" then
    health.error(text, { "See `:LCursor server log`", "Then run `:LCursor server restart`" })
  elseif told.state == "running" or told.state == "sleeping" then
    health.ok(text)
  else
    health.info(text)
  end
end

local function check_server()
  local state = status.get().state
  if state == "stopped" or state == "absent" or state == "failed" then
    return health.info("The local server is not asked: the Python host is " .. state)
  end
  local told = ask_server()
  if told then
    check_told(told)
  else
    local format = "The local server was not heard of within %.1f s; see `:LCursor server`"
    health.info(format:format(SERVER_MS / 1000))
  end
end

--- What would serve, as `python -m lcursor doctor` says it.
---@param fact lcursor.Fact
---@param packages lcursor.Fact[]
local function check_possible(fact, packages)
  local problem = fact.problem
  local is_whole = not vim.iter(packages):any(function(each)
    return each.problem ~= nil
  end)
  if problem and not is_whole then -- which is told above, and may be all that is wrong
    health.info("No local server for now: " .. problem.message)
  elseif problem then
    local report = problem.level == "warn" and health.warn or health.error
    report(problem.message, problem.hint)
  else
    health.ok("For the local server " .. fact.text)
  end
end

local function check_highlighting()
  if vim.treesitter.language.add("markdown") then
    health.ok("Answers are highlighted by treesitter")
  else
    health.info("There is no treesitter parser for markdown: answers are not highlighted by it")
  end
end

---@param found lcursor.Findings
function M.check(found)
  local settings = found.settings.chat
  if not settings.enabled then
    return health.info("Switched off by the setting chat.enabled")
  end
  check_models(settings)
  if settings.server == "off" then
    health.info("The local server is switched off by the setting chat.server")
  else
    local possible = found.probe and found.probe.facts.chat
    if possible then
      check_possible(possible, found.probe.packages)
    end
    check_server()
  end
  check_highlighting()
end

return M
