-- :checkhealth lcursor: what is so, what is wrong, and for each finding the command that mends it.
-- Starts nothing but one short Python process (health/probe.lua). Each section stands alone, so
-- that whatever is broken hides no other finding.

local chat = require("lcursor.health.chat")
local config = require("lcursor.config")
local edit = require("lcursor.health.edit")
local editor = require("lcursor.health.editor")
local index = require("lcursor.health.index")
local install = require("lcursor.install")
local python = require("lcursor.health.python")
local status = require("lcursor.status")

local M = {}

local health = vim.health
local INSTALL = "Run `:LCursor install`"
local RESTART = "Run `:LCursor restart`"
local LOG = "See `:LCursor log`"

---@param bytes number
---@return string
local function human(bytes)
  for _, unit in ipairs({ "bytes", "KiB", "MiB" }) do
    if bytes < 1024 then
      return (unit == "bytes" and "%d %s" or "%.1f %s"):format(bytes, unit)
    end
    bytes = bytes / 1024
  end
  return ("%.1f GiB"):format(bytes)
end

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
      "plugin/lcursor.lua was not sourced, so nothing comes by itself",
      "Load it now with `:runtime plugin/lcursor.lua`; a plugin manager does it at start-up"
    )
  end
end

---@param found lcursor.Findings
local function check_config(found)
  local problems = config.problems()
  if #problems == 0 then
    health.ok("The settings are right")
  else
    for _, problem in ipairs(problems) do
      health.warn(
        problem.message,
        "Correct it where you configure lcursor; all settings are in :help lcursor-config"
      )
    end
  end
  editor.check_switches(found)
end

---@param info lcursor.HostInfo
---@param found lcursor.Findings
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
    health.warn("It was started with another interpreter than the one chosen now", RESTART)
  end
end

---@param found lcursor.Findings
local function check_host(found)
  local host = require("lcursor.host")
  local current, info = status.get(), host.info()
  local detail = current.detail ~= "" and (": " .. current.detail) or ""
  local progress = current.progress >= 0 and (" (%d%%)"):format(current.progress * 100) or ""
  local text = ("State: %s%s%s"):format(current.state, progress, detail)
  if current.state == "failed" then
    health.error(text, { RESTART .. " when what is said above and below is mended", LOG })
  elseif current.state == "absent" then
    health.error(text, INSTALL)
  elseif current.state == "stopped" then
    health.info(text .. "; it starts with the first insert, or with `:LCursor restart`")
  else
    health.info(text)
  end
  if info.job then
    check_process(info, found)
  end
  local words = vim.tbl_filter(function(line)
    return line:find("%S") ~= nil
  end, info.stderr)
  if #words > 0 then
    local last = vim.list_slice(words, math.max(1, #words - 4))
    health.info("Last words on stderr:\n" .. table.concat(last, "\n"))
  end
end

local function check_log()
  local path = require("lcursor.log").path()
  local folder = vim.fs.dirname(path)
  local stat = vim.uv.fs_stat(path)
  if vim.uv.fs_access(stat and path or folder, "W") or not vim.uv.fs_stat(folder) then
    local size = stat and human(stat.size) or "not written yet"
    health.info(("%s (%s); `:LCursor log` opens it"):format(path, size))
  else
    local command = "`chmod u+w " .. vim.fn.shellescape(stat and path or folder) .. "`"
    health.warn(path .. " cannot be written", "Run " .. command)
  end
end

---@type { title: string, check: fun(found: lcursor.Findings) }[]
local SECTIONS = {
  { title = "Neovim", check = check_neovim },
  { title = "Configuration", check = check_config },
  { title = "Python environment", check = python.check_environment },
  { title = "Host", check = check_host },
  { title = "Model", check = python.check_model },
  { title = "Device", check = python.check_device },
  { title = "Completion", check = editor.check_completion },
  { title = "Index", check = index.check },
  { title = "Chat", check = chat.check },
  { title = "Edits", check = edit.check },
  { title = "Log", check = check_log },
  { title = "Integrations", check = editor.check_integrations },
}

--- Run all checks; Neovim calls it.
function M.check()
  local settings = config.get()
  ---@type lcursor.Findings
  local found =
    { settings = settings, is_own = settings.python ~= "", python = install.python() or nil }
  for _, section in ipairs(SECTIONS) do
    health.start("lcursor: " .. section.title)
    local fine, failure = pcall(section.check, found) -- the root of every check
    if not fine then
      health.error("This check failed: " .. tostring(failure), LOG)
    end
  end
end

return M
