-- The sections about the Python environment, the model and the device. A short Python process
-- reports the facts one by one (lcursor/cli/doctor.py), so that those before a crash are kept: the
-- interpreter may be missing, hang, crash or be something else.

local config = require("lcursor.config")
local install = require("lcursor.install")

local M = {}

local health = vim.health
local INSTALL = "Run `:LCursor install`"

--- Time limit of the process.
M.limit_ms = 10000

-- Readable by every Python, so that an old one can report its version.
local CODE = [[
import os, sys
print('{"section": "version", "major": %d, "minor": %d}' % tuple(sys.version_info[:2]))
sys.stdout.flush()
if sys.version_info >= (3, 10):
    sys.path.insert(0, sys.argv[1])
    from lcursor.cli import doctor
    completion, chat = (os.environ.get("LCURSOR_" + each, "") for each in ("COMPLETION", "CHAT"))
    doctor.tell(sys.argv[2], completion, sys.argv[3], chat)
]]

---@class (exact) lcursor.Fact one line of the doctor
---@field section string
---@field text string
---@field problem? { code: string, level: "warn"|"error", message: string, hint: string }
---@field [string] any

---@class (exact) lcursor.Probe what the process reported
---@field facts table<string, lcursor.Fact> by section
---@field packages lcursor.Fact[]
---@field failure? string why it reported no more
---@field ms number that it took

---@return string? what is being loaded, "" for nothing
local function add_fact(probe, line)
  local ok, fact = pcall(vim.json.decode, line, { luanil = { object = true } })
  if not ok or type(fact) ~= "table" or type(fact.section) ~= "string" then
    return nil -- a library that prints while it is loaded
  elseif fact.section == "trying" then
    return fact.name
  elseif fact.section == "package" then
    table.insert(probe.packages, fact)
  else
    probe.facts[fact.section] = fact
  end
  return ""
end

---@param result vim.SystemCompleted
---@return string how the process ended
local function ending(result)
  if result.code == 124 then
    return ("gave no answer in %.1f s"):format(M.limit_ms / 1000)
  end
  local last = vim.trim(result.stderr or ""):match("[^\n]*$")
  local how = ("ended with exit code %d"):format(result.code)
  if result.signal ~= 0 then
    how = ("crashed with signal %d"):format(result.signal)
  end
  return last ~= "" and (how .. ": " .. last) or how
end

---@return boolean whether the interpreter can run the host
local function is_new_enough(probe)
  local version = probe.facts.version
  return version ~= nil and version.major == 3 and version.minor >= 10
end

--- Ask an interpreter. Waits, at most limit_ms.
---@param root string of the plugin
---@return lcursor.Probe
local function ask(python, root, settings)
  local probe = { facts = {}, packages = {}, ms = 0 } ---@type lcursor.Probe
  local began = vim.uv.hrtime()
  local completion, embedder = settings.completion, settings.index.embedder
  local argv = { python, "-I", "-X", "utf8", "-c", CODE, root, completion.model, embedder }
  local sent = config.for_host()
  -- Not in argv: an address may have a password in it.
  local env = { LCURSOR_CHAT = vim.json.encode(sent.chat) }
  if completion.backend == "endpoint" then
    env.LCURSOR_COMPLETION = vim.json.encode(sent.completion)
  end
  local ok, job = pcall(vim.system, argv, { env = env })
  if not ok then -- there is no such program
    probe.failure = "cannot be run: " .. tostring(job):gsub("^.-: ", "")
    return probe
  end
  local result = job:wait(M.limit_ms)
  probe.ms = (vim.uv.hrtime() - began) / 1e6
  local loading = ""
  for line in vim.gsplit(result.stdout or "", "\n") do
    loading = add_fact(probe, line) or loading
  end
  if not probe.facts["end"] and not (probe.facts.version and not is_new_enough(probe)) then
    local where = loading ~= "" and (" while it loaded " .. loading) or ""
    probe.failure = ending(result) .. where
  end
  return probe
end

---@class lcursor.Findings what all sections of a check share
---@field settings lcursor.Config
---@field python? string
---@field is_own boolean the interpreter is the user's setting
---@field probe? lcursor.Probe

---@param problem { level: "warn"|"error", message: string, hint: string }
local function report_problem(problem)
  local report = problem.level == "warn" and health.warn or health.error
  report(problem.message, problem.hint)
end

--- Return a fact that is usable; reports its problem, or that it is missing.
---@param section string
---@return lcursor.Fact?
local function fact_of(found, section)
  local fact = found.probe and found.probe.facts[section]
  if not fact then
    health.info("Not checked: Python did not get that far (see Python environment above)")
    return nil
  elseif fact.problem then
    report_problem(fact.problem)
  end
  local is_usable = not fact.problem or fact.problem.level == "warn"
  return is_usable and fact or nil
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

--- Return the interpreter to ask; also one of an incomplete environment, since it may report more.
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

---@param is_own boolean
---@return string where it comes from
---@return string advice for when it is unusable
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
  found.probe = ask(python, install.plugin_root(), found.settings)
  local failure, facts = found.probe.failure, found.probe.facts
  if facts.version and not is_new_enough(found.probe) then
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
    report_problem(environment.problem)
  elseif environment then
    health.info("Environment: " .. environment.text)
  end
  report_packages(found.probe.packages)
end

local function check_endpoint(found)
  local settings = found.settings.completion
  health.info(
    "Setting completion.backend: endpoint, at " .. settings.endpoint_url:gsub("//.*@", "//")
  )
  local endpoint = found.probe and found.probe.facts.endpoint
  if endpoint and endpoint.is_local == false then
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
    local count = threads == 0 and ("%d, one per physical core"):format(machine.cores) or threads
    health.info(("On the CPU, threads: %s (setting completion.threads)"):format(count))
  end
end

return M
