-- :checkhealth lcursor: the state of everything, and for each problem the command that fixes it.
-- Starts nothing but one short Python process. Sections are independent, so that one that fails
-- hides no other finding.

local config = require("lcursor.config")
local editor = require("lcursor.health.editor")
local features = require("lcursor.health.features")
local environment = require("lcursor.host.environment")
local python = require("lcursor.health.python")
local status = require("lcursor.host.status")

local M = {}

local health = vim.health
local RESTART = "Run `:LCursor restart`"
local LOG = "See `:LCursor log`"

local function check_neovim()
  local version = tostring(vim.version())
  if vim.fn.has("nvim-0.11") == 1 then
    health.ok("Neovim " .. version)
  else
    health.error(
      "Neovim " .. version .. " is too old",
      "Install Neovim 0.11 or newer: https://github.com/neovim/neovim/releases"
    )
  end
  if vim.g.loaded_lcursor then
    health.ok("The plugin is loaded, version " .. require("lcursor.host").version())
  else
    health.warn(
      "plugin/lcursor.lua was not sourced, so nothing starts automatically",
      "Load it now with `:runtime plugin/lcursor.lua`; a plugin manager does it at start-up"
    )
  end
end

local function check_config(found)
  local problems = config.problems()
  if #problems == 0 then
    health.ok("The settings are valid")
  end
  for _, problem in ipairs(problems) do
    local advice = "Correct it where you configure lcursor; see :help lcursor-config"
    health.warn(problem.message, advice)
  end
  editor.check_switches(found)
end

local function check_process(info, found)
  local text = ("Process %s, started with %s"):format(info.pid or "?", info.python or "?")
  if info.started_ms then
    text = text .. (", up for %.0f s"):format((vim.uv.now() - info.started_ms) / 1000)
  end
  if info.pid and not vim.uv.kill(info.pid, 0) then
    health.error(("Process %d is gone"):format(info.pid), RESTART)
  else
    health.ok(text)
  end
  local version = require("lcursor.host").version()
  if info.version and info.version ~= version then
    local format = "The process is of version %s, the plugin of %s"
    health.warn(format:format(info.version, version), RESTART)
  end
  if found.python and info.python and info.python ~= found.python then
    health.warn("It was started with an interpreter other than the configured one", RESTART)
  end
end

local function check_host(found)
  local current, info = status.get(), require("lcursor.host").info()
  local detail = current.detail ~= "" and (": " .. current.detail) or ""
  local text = ("State: %s%s"):format(status.describe(), detail)
  if current.state == "failed" and require("lcursor.complete.fim").server_is_away() then
    health.error(text, { "Start the server, or correct its url; typing asks it again", LOG })
  elseif current.state == "failed" then
    health.error(text, { RESTART .. " once the problem is fixed", LOG })
  elseif current.state == "absent" then
    health.error(text, "Run `:LCursor install`")
  elseif current.state == "stopped" then
    health.info(text .. "; it starts with the first insert, or with `:LCursor restart`")
  else
    health.info(text)
  end
  if info.job then
    check_process(info, found)
  end
  local lines = vim.tbl_filter(function(line)
    return line:find("%S") ~= nil
  end, info.stderr)
  if #lines > 0 then
    local last = vim.list_slice(lines, math.max(1, #lines - 4))
    health.info("Last lines on stderr:\n" .. table.concat(last, "\n"))
  end
end

local function check_model(found)
  python.require(found, { config.completion_server() and "endpoint" or "model" })
end

local function check_device(found)
  python.require(found, { "hardware", "engine" })
end

local function check_log()
  local path = require("lcursor.ui.log").path()
  local folder = vim.fs.dirname(path)
  local stat = vim.uv.fs_stat(path)
  if vim.uv.fs_access(stat and path or folder, "W") or not vim.uv.fs_stat(folder) then
    local size = stat and ("%.1f KiB"):format(stat.size / 1024) or "not written yet"
    health.info(("%s (%s); `:LCursor log` opens it"):format(path, size))
  else
    local command = "`chmod u+w " .. vim.fn.shellescape(stat and path or folder) .. "`"
    health.warn(path .. " cannot be written", "Run " .. command)
  end
end

---@type { [1]: string, [2]: fun(found: lcursor.Findings) }[]
local SECTIONS = {
  { "Neovim", check_neovim },
  { "Configuration", check_config },
  { "Python environment", python.check_environment },
  { "Host", check_host },
  { "Model", check_model },
  { "Device", check_device },
  { "Completion", editor.check_completion },
  { "Keys", editor.check_keys },
  { "Index", features.index },
  { "Chat", features.chat },
  { "Edits", features.edit },
  { "Log", check_log },
  { "Integrations", editor.check_integrations },
}

--- Run all checks. Neovim calls it.
function M.check()
  local settings = config.get()
  ---@type lcursor.Findings
  local found =
    { settings = settings, is_own = settings.python ~= "", python = environment.python() or nil }
  for _, section in ipairs(SECTIONS) do
    local title, check = section[1], section[2]
    health.start("lcursor: " .. title)
    local ok, failure = pcall(check, found)
    if not ok then
      health.error("This check failed: " .. tostring(failure), LOG)
    end
  end
end

return M
