-- The health check's sections about the Python half: environment, model and device. They share the
-- answer of one process.

local install = require("lcursor.install")
local probe = require("lcursor.health.probe")

local M = {}

local health = vim.health
local INSTALL = "Run `:LCursor install`"

---@class lcursor.Findings what one check knows, for all its sections
---@field settings lcursor.Config
---@field python? string
---@field is_own boolean the interpreter is the user's setting
---@field probe? lcursor.Probe

---@param problem { level: "warn"|"error", message: string, hint: string }
local function tell_problem(problem)
  local report = problem.level == "warn" and health.warn or health.error
  report(problem.message, problem.hint)
end

--- Tell a section of the doctor's, or that there is none.
---@param found lcursor.Findings
---@param section string
---@return lcursor.Fact? fact that may be relied on
local function fact_of(found, section)
  local fact = found.probe and found.probe.facts[section]
  if not fact then
    health.info("Not checked: Python did not get that far (see Python environment above)")
    return nil
  elseif fact.problem then
    tell_problem(fact.problem)
  end
  local is_usable = not fact.problem or fact.problem.level == "warn"
  return is_usable and fact or nil
end

--- Tell what the doctor said of the packages: the good ones in one line, alike problems in one.
---@param packages lcursor.Fact[]
local function tell_packages(packages)
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

--- The interpreter to ask; of an environment that is not whole as well, since it may know more.
---@param found lcursor.Findings
---@return string?
local function interpreter(found)
  local is_needed, reason = install.is_needed()
  if not is_needed then
    return found.python
  end
  reason = reason or "there is no Python environment"
  health.error(reason:sub(1, 1):upper() .. reason:sub(2), INSTALL)
  local broken = vim.fs.joinpath(install.venv(), "bin", "python")
  return vim.fn.executable(broken) == 1 and broken or nil
end

---@param python string
---@param is_own boolean
---@return string where it comes from
---@return string advice for when it is good for nothing
local function origin(python, is_own)
  if is_own then
    local advice = "Correct the setting python, or remove it and run `:LCursor install`"
    return "the setting python", advice
  end
  local venv = vim.fs.dirname(vim.fs.dirname(python))
  local advice = ("Run `rm -rf %s`, then `:LCursor install`"):format(vim.fn.shellescape(venv))
  local is_users = vim.startswith(python, install.venv())
  return is_users and "made by `:LCursor install`" or "made by make in the checkout", advice
end

---@param found lcursor.Findings
function M.check_environment(found)
  local python = interpreter(found)
  if not python then
    return
  end
  local from, advice = origin(python, found.is_own)
  health.info(("Interpreter: %s (%s)"):format(python, from))
  local settings, root = found.settings, install.plugin_root()
  found.probe = probe.ask(python, root, settings.completion, settings.index.embedder)
  local failure, facts = found.probe.failure, found.probe.facts
  if facts.version and not probe.is_new_enough(found.probe) then
    local version = ("%d.%d"):format(facts.version.major, facts.version.minor)
    health.error(("It is Python %s; 3.10 or newer is needed"):format(version), advice)
  elseif facts.python then
    local took = ("answered in %.1f s"):format(found.probe.ms / 1000)
    health.ok(("Python %s, %s"):format(facts.python.version, took))
  end
  if failure then
    health.error("The interpreter " .. failure, advice)
  end
  local environment = facts.environment
  if environment and found.python and environment.problem then
    tell_problem(environment.problem)
  elseif environment then
    health.info("Environment: " .. environment.text)
  end
  tell_packages(found.probe.packages)
end

---@param found lcursor.Findings
local function check_endpoint(found)
  local settings = found.settings.completion
  health.info(
    "Setting completion.backend: endpoint, at " .. settings.endpoint_url:gsub("//.*@", "//")
  )
  local told = found.probe and found.probe.facts.endpoint
  if told and told.is_local == false then
    health.warn(
      "The server is not on this machine: what you write is sent there",
      'Set `completion.backend = "inproc"` where you configure lcursor to keep it here'
    )
  end
  local fact = fact_of(found, "endpoint")
  if fact then
    health.ok("Answers: " .. fact.text)
  end
end

---@param found lcursor.Findings
function M.check_model(found)
  if found.settings.completion.backend == "endpoint" then
    return check_endpoint(found)
  end
  health.info("Setting completion.model: " .. found.settings.completion.model)
  local fact = fact_of(found, "model")
  if fact then
    health.ok(fact.text)
  end
  if fact and fact.verify then
    health.info("Its sha256 was not checked yet; this does it: " .. fact.verify)
  end
end

---@param found lcursor.Findings
function M.check_device(found)
  local machine = fact_of(found, "hardware")
  if not machine then
    return
  end
  health.info("Machine: " .. machine.text)
  local engine = fact_of(found, "engine")
  if not engine then
    return
  end
  health.ok(engine.text)
  local layers = found.settings.completion.gpu_layers
  if engine.has_gpu then
    local where = layers < 0 and "all layers" or ("%d layers"):format(layers)
    health.info(("On the GPU: %s (setting completion.gpu_layers)"):format(where))
  else
    local threads = found.settings.completion.threads
    local many = threads == 0 and ("%d, one a physical core"):format(machine.cores) or threads
    health.info(("On the CPU, threads: %s (setting completion.threads)"):format(many))
  end
end

return M
