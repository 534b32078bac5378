-- The sections about index, chat and edits. Starts nothing; asks a host that runs.

local python = require("lcursor.health.python")
local status = require("lcursor.host.status")
local system = require("lcursor.host.system")

local M = {}

local health = vim.health
-- How long a running host may take to report on the server. Tests change it.
M.server_ms = 700

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
    local advice = "Raise the limit: `sudo sysctl fs.inotify.max_user_watches=1048576`, "
      .. "then `:LCursor restart`"
    health.warn("Its files are polled for changes", system.is_linux and advice or nil)
  elseif state.watching ~= "" then
    health.info("Changes of its files are noticed at once")
  end
  health.info(("Its worker is process %d%s"):format(state.pid, states.memory(state)))
  for _, remark in ipairs(state.remarks) do
    health.warn(remark)
  end
end

---@param found lcursor.Findings
function M.index(found)
  if not found.settings.index.enabled then
    return health.info("Switched off by the setting index.enabled")
  end
  python.report(found, { "grammars", "index" })
  local known = package.loaded["lcursor.index"] and require("lcursor.index").states() or {}
  if #known == 0 then
    health.info("No project is indexed in this session; `:LCursor index` shows what one would read")
  end
  vim.iter(known):each(check_index)
end

-- Chat ----------------------------------------------------------------------------------------

local function check_server()
  local state = status.get().state
  if state == "stopped" or state == "absent" or state == "failed" then
    return health.info("The local server is unknown: the Python host is " .. state)
  end
  local answer
  require("lcursor.host.requests").ask("server.ask", { ["do"] = "status" }, function(params)
    answer = params
  end)
  vim.wait(M.server_ms, function()
    return answer ~= nil
  end, 10)
  if not answer then
    local format = "The local server was not reported within %.1f s; see `:LCursor server`"
    return health.info(format:format(M.server_ms / 1000))
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

---@param found lcursor.Findings
function M.chat(found)
  local settings = found.settings.chat
  health.info("Setting chat.model: " .. (settings.model ~= "" and settings.model or "automatic"))
  python.report(found, { "chat_model", "chat" })
  if settings.server ~= "off" then
    check_server()
  end
  if vim.treesitter.language.add("markdown") then
    health.ok("Answers are highlighted by treesitter")
  else
    health.info("There is no treesitter parser for markdown, so answers are not highlighted")
  end
end

-- Edits ---------------------------------------------------------------------------------------

---@param found lcursor.Findings
function M.edit(found)
  local settings, chat = found.settings.edit, found.settings.chat
  local model = settings.model ~= "" and settings.model or chat.model
  health.info("Edits are written by: " .. (model ~= "" and model or "automatic"))
  python.report(found, { "edit", "sandbox" })
  if settings.formatter == "" and settings.lint == "" and settings.test == "" then
    health.info("No formatter, lint or test is run before an edit is shown")
  end
  local now = package.loaded["lcursor.edit"] and require("lcursor.edit.lcedit").describe()
  health.info(now and ("Now " .. now) or "No edit is open")
end

return M
