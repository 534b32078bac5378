-- The sections about index, chat and edits. Starts nothing; asks a host that runs.

local status = require("lcursor.status")

local M = {}

local health = vim.health
local SERVER_MS = 700 -- how long a running host may take to report on the server

-- Index ---------------------------------------------------------------------------------------

local function check_index(state)
  local states = require("lcursor.index.states")
  local text = ("%s: %s"):format(vim.fn.fnamemodify(state.root, ":~"), states.sentence(state))
  if state.phase == "failed" then
    local advice = "Fix this, then run `:LCursor index rebuild` in a file of it"
    health.error(text, { advice, "See `:LCursor log`" })
  elseif state.phase == "absent" then
    health.warn(text, "Enter a file of it, or run `:LCursor index`")
  else
    health.ok(text)
  end
  if not states.is_alive(state) then
    return
  end
  if state.embedder ~= "" then
    local format = "Semantic search with %s: %d of %d chunks"
    health.info(format:format(state.embedder, state.embedded, state.chunks))
  elseif state.embedder_note ~= "" then
    health.warn("No semantic search: " .. state.embedder_note)
  else
    health.info("No semantic search (setting index.embedder)")
  end
  if state.watching == "" and state.phase == "ready" then
    health.warn("Its files are not watched for changes", "Run `:LCursor restart`")
  elseif state.watching == "polling" then
    health.warn(
      "Its files are polled for changes",
      "Raise the limit: `sudo sysctl fs.inotify.max_user_watches=1048576`, then `:LCursor restart`"
    )
  elseif state.watching ~= "" then
    health.info("Changes of its files are noticed at once")
  end
  local format = "Its worker is process %d and uses %.0f MB of memory"
  health.info(format:format(state.pid, state.memory_bytes / 1e6))
  for _, remark in ipairs(state.remarks) do
    health.warn(remark)
  end
end

---@param found lcursor.Findings
function M.index(found)
  if not found.settings.index.enabled then
    return health.info("Switched off by the setting index.enabled")
  end
  local facts = found.probe and found.probe.facts or {}
  local reports =
    { { facts.grammars, health.ok, "Grammars: " }, { facts.index, health.info, "Stored: " } }
  for _, report in ipairs(reports) do
    local fact = report[1]
    if fact and fact.problem then
      health.warn(fact.problem.message, fact.problem.hint)
    elseif fact then
      report[2](report[3] .. fact.text)
    end
  end
  local known = package.loaded["lcursor.index"] and require("lcursor.index").states() or {}
  if #known == 0 then
    health.info("No project is indexed in this session; `:LCursor index` shows what one would read")
  end
  vim.iter(known):each(check_index)
end

-- Chat ----------------------------------------------------------------------------------------

---@return boolean whether it is on this machine
local function is_local(url)
  local host = url:match("^%a[%w+.-]*://([^/]*)") or url
  host = host:gsub("^.*@", ""):gsub(":%d+$", ""):lower()
  local is_loopback = host == "localhost" or host == "[::1]" or host:find("^127%.") ~= nil
  return is_loopback or vim.startswith(url, "unix:")
end

---@param model table
local function check_model(name, model)
  local settings = "Correct it where you configure lcursor; see `:help lcursor-chat-models`"
  if not model.url or model.url == "" then
    return health.error(("chat.models.%s has no url"):format(name), settings)
  end
  local url = model.url:gsub("//[^/]*@", "//") -- without what may be a password
  local text = ("%s: %s at %s"):format(name, model.model or "its only model", url)
  local variable = model.key_env or ""
  if variable ~= "" and (vim.env[variable] or "") == "" then
    health.error(
      ("%s: the variable %s for its API key is empty"):format(name, variable),
      ("Set it before Neovim starts: `export %s=...`"):format(variable)
    )
  elseif is_local(model.url) then
    health.ok(text)
  else
    health.warn(
      text .. ": not on this machine, so your messages and attachments are sent there",
      "Choose another one with `:LCursor chats model`, or remove it from chat.models"
    )
  end
end

local function check_server()
  local state = status.get().state
  if state == "stopped" or state == "absent" or state == "failed" then
    return health.info("The local server is unknown: the Python host is " .. state)
  end
  local answer
  require("lcursor.requests").ask("server.ask", { ["do"] = "status" }, function(params)
    answer = params
  end)
  vim.wait(SERVER_MS, function()
    return answer ~= nil
  end, 10)
  if not answer then
    local format = "The local server was not reported within %.1f s; see `:LCursor server`"
    return health.info(format:format(SERVER_MS / 1000))
  end
  local lines = require("lcursor.chat.server").lines(answer)
  local text = "The local server: " .. table.concat(lines, "\n")
  if answer.state == "failed" then
    health.error(text, { "See `:LCursor server log`", "Then run `:LCursor server restart`" })
  elseif answer.state == "running" or answer.state == "sleeping" then
    health.ok(text)
  else
    health.info(text)
  end
end

--- Report what could serve, as `python -m lcursor doctor` found.
---@param fact lcursor.Fact
local function check_possible_server(fact, packages)
  local problem = fact.problem
  local has_missing = vim.iter(packages):any(function(each)
    return each.problem ~= nil
  end)
  if problem and has_missing then -- which is reported above, and may be the reason
    health.info("No local server for now: " .. problem.message)
  elseif problem then
    local report = problem.level == "warn" and health.warn or health.error
    report(problem.message, problem.hint)
  else
    health.ok("For the local server " .. fact.text)
  end
end

---@param found lcursor.Findings
function M.chat(found)
  local settings = found.settings.chat
  if not settings.enabled then
    return health.info("Switched off by the setting chat.enabled")
  end
  for name, model in vim.spairs(settings.models) do
    check_model(name, model)
  end
  health.info("Setting chat.model: " .. (settings.model ~= "" and settings.model or "automatic"))
  if settings.server == "off" and not settings.models[settings.model] then
    health.error(
      "chat.server is off, and chat.model names none of chat.models: there is no model to ask",
      "Correct it where you configure lcursor; see `:help lcursor-chat-models`"
    )
  end
  local possible = found.probe and found.probe.facts.chat
  if settings.server == "off" then
    health.info("The local server is switched off by the setting chat.server")
  else
    if possible then
      check_possible_server(possible, found.probe.packages)
    end
    check_server()
  end
  if vim.treesitter.language.add("markdown") then
    health.ok("Answers are highlighted by treesitter")
  else
    health.info("There is no treesitter parser for markdown, so answers are not highlighted")
  end
end

-- Edits ---------------------------------------------------------------------------------------

---@param name "formatter"|"lint"|"test"
---@param command string
local function check_command(name, command)
  local program = command:match('^%s*"([^"]+)"')
    or command:match("^%s*'([^']+)'")
    or command:match("^%s*(%S+)")
  if not program then
    return
  elseif program:find("{path}", 1, true) or program:find("=", 1, true) then
    health.info(("Setting edit.%s: %s"):format(name, command))
  elseif vim.fn.executable(program) == 1 then
    health.ok(("Setting edit.%s: %s"):format(name, command))
  else
    health.warn(
      ("Setting edit.%s: there is no program %s here"):format(name, program),
      "Correct it where you configure lcursor; see `:help lcursor-edit-checks`"
    )
  end
end

---@param found lcursor.Findings
function M.edit(found)
  local settings, chat = found.settings.edit, found.settings.chat
  if not settings.enabled then
    return health.info("Switched off by the setting edit.enabled")
  end
  local model = settings.model ~= "" and settings.model or chat.model
  health.info("Edits are written by: " .. (model ~= "" and model or "automatic"))
  if settings.planner ~= "" then
    health.info("Edits of several files are planned by: " .. settings.planner)
  end
  for _, name in ipairs({ "formatter", "lint", "test" }) do
    check_command(name, settings[name])
  end
  if settings.formatter == "" and settings.lint == "" and settings.test == "" then
    health.info("No formatter, lint or test is run before an edit is shown")
  end
  health.info(
    settings.diagnostics and "Language servers check an edit before it is shown"
      or "Language servers do not check edits (setting edit.diagnostics)"
  )
  local now = package.loaded["lcursor.edit"] and require("lcursor.edit.commands").describe()
  health.info(now and ("Now " .. now) or "No edit is open")
end

return M
