-- The health check's section about edits: who writes them, the commands that the settings name,
-- what is open. Runs none of the commands.

local M = {}

local health = vim.health
local SETTINGS = "Correct it where you configure lcursor; see `:help lcursor-edit-checks`"

---@param text string
---@return string its first word: what is run
local function program(text)
  return text:match('^%s*"([^"]+)"') or text:match("^%s*'([^']+)'") or text:match("^%s*(%S+)") or ""
end

---@param name "formatter"|"lint"|"test"
---@param text string
local function check_command(name, text)
  local path = program(text)
  if text == "" then
    return
  elseif path:find("{path}", 1, true) or path:find("=", 1, true) then
    health.info(("Setting edit.%s: %s"):format(name, text))
  elseif vim.fn.executable(path) == 1 then
    health.ok(("Setting edit.%s: %s"):format(name, text))
  else
    health.warn(("Setting edit.%s: there is no program %s here"):format(name, path), SETTINGS)
  end
end

---@param found lcursor.Findings
function M.check(found)
  local settings = found.settings.edit
  if not settings.enabled then
    return health.info("Switched off by the setting edit.enabled")
  end
  local chat = found.settings.chat
  local function named(model)
    return model ~= "" and model or chat.model ~= "" and chat.model or "what suits the machine"
  end
  health.info("Changes are written by: " .. named(settings.model))
  if settings.planner ~= "" then
    health.info("Changes of several files are planned by: " .. settings.planner)
  end
  for _, name in ipairs({ "formatter", "lint", "test" }) do
    check_command(name, settings[name])
  end
  if settings.formatter == "" and settings.lint == "" and settings.test == "" then
    health.info("No formatter, lint or test is run before a change is shown")
  end
  health.info(
    settings.diagnostics and "Language servers check a change before it is shown"
      or "Language servers do not check changes (setting edit.diagnostics)"
  )
  local says = package.loaded["lcursor.edit"] and require("lcursor.edit.reach").describe()
  health.info(says and ("Now " .. says) or "No change is open")
end

return M
