-- What the doctor finds out about the interpreter, the packages, the models and the engine.

local doctor = require("lcursor.host.doctor")
local environment = require("lcursor.host.environment")

local M = {}

local health = vim.health
local INSTALL = "Run `:LCursor install`"
local END_MS = 1000 -- for a process that is told to end

--- Ask an interpreter. Waits for it, at most doctor.limit_ms and a little.
---@return lcursor.Probe
local function ask(python)
  local probe = doctor.follow(python)
  local has_ended = vim.wait(doctor.limit_ms + END_MS, function()
    return not probe.is_running
  end, 20)
  if not has_ended then
    probe.job:kill("sigkill")
    probe.failure = "cannot be stopped"
  end
  return probe
end

---@class lcursor.Findings what all sections of a check share
---@field settings lcursor.Config
---@field python? string
---@field is_own boolean the interpreter is the user's setting
---@field probe? lcursor.Probe

---@param fact lcursor.Fact
local function is_broken(fact)
  return fact.problem ~= nil and fact.problem.level == "error"
end

--- Report the facts of some sections: the problem of each, and its text unless it is an error.
---@param found lcursor.Findings
---@param sections string[]
function M.report(found, sections)
  local facts = found.probe and found.probe.facts or {}
  for _, section in ipairs(sections) do
    for _, fact in ipairs(facts[section] or {}) do
      local problem = fact.problem
      if problem and problem.level == "warn" and vim.iter(facts.package or {}):any(is_broken) then
        health.info(problem.message) -- a missing package, which has its own line, may be the reason
      elseif problem then
        local report = is_broken(fact) and health.error or health.warn
        report(problem.message, problem.hint)
      end
      if not is_broken(fact) then
        local report = fact.is_local == false and health.warn or health.ok
        report(fact.text)
      end
      if fact.verify then
        health.info("Its sha256 was not checked yet; this does it: " .. fact.verify)
      end
    end
  end
end

--- Report facts that are in every complete report.
---@param found lcursor.Findings
---@param sections string[]
function M.require(found, sections)
  for _, section in ipairs(sections) do
    if not (found.probe and found.probe.facts[section]) then
      health.info("Not checked: Python did not get that far (see Python environment above)")
      return
    end
    M.report(found, { section })
  end
end

--- Report the packages: those that load in one line, those with the same hint in one.
local function report_packages(packages)
  local good, hints, by_hint = {}, {}, {}
  for _, fact in ipairs(packages) do
    local problem = fact.problem
    if not problem then
      table.insert(good, fact.text)
    else
      if not by_hint[problem.hint] then
        by_hint[problem.hint] = { level = "warn", messages = {} }
        table.insert(hints, problem.hint)
      end
      local group = by_hint[problem.hint]
      group.level = problem.level == "error" and "error" or group.level
      table.insert(group.messages, problem.message)
    end
  end
  if #good > 0 then
    health.ok("Packages: " .. table.concat(good, ", "))
  end
  for _, hint in ipairs(hints) do
    local report = by_hint[hint].level == "error" and health.error or health.warn
    report(table.concat(by_hint[hint].messages, "\n"), hint)
  end
end

---@return string where it comes from
---@return string advice for when it is unusable
local function origin(python, is_own)
  if is_own then
    local advice = "Correct the setting python, or remove it and run `:LCursor install`"
    return "the setting python", advice
  end
  local venv = vim.fs.dirname(vim.fs.dirname(python))
  local advice = ("Run `rm -rf %s`, then `:LCursor install`"):format(vim.fn.shellescape(venv))
  local is_users = vim.startswith(python, environment.venv())
  return is_users and "made by `:LCursor install`" or "made by make in the checkout", advice
end

---@param found lcursor.Findings
function M.check_environment(found)
  local python, missing = doctor.interpreter()
  if missing then
    health.error(missing:sub(1, 1):upper() .. missing:sub(2), INSTALL)
  end
  if not python then
    return
  end
  local from, advice = origin(python, found.is_own)
  health.info(("Interpreter: %s (%s)"):format(python, from))
  found.probe = ask(python)
  local facts = found.probe.facts
  local version = facts.version and facts.version[1]
  if version and (version.major ~= 3 or version.minor < 10) then
    local text = "It is Python %d.%d; 3.10 or newer is needed"
    health.error(text:format(version.major, version.minor), advice)
    return
  elseif facts.python then
    local took = ("answered in %.1f s"):format(found.probe.ms / 1000)
    health.ok(("Python %s, %s"):format(facts.python[1].version, took))
  end
  if found.probe.failure then
    health.error("The interpreter " .. found.probe.failure, advice)
  end
  if found.python then -- otherwise the environment was reported above
    M.report(found, { "environment" })
  end
  report_packages(facts.package or {})
end

return M
