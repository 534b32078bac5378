-- Runs the doctor (lcursor/cli/doctor.py): a short Python process that reports the facts about an
-- installation one by one, so that those before a crash are kept. The interpreter may be missing,
-- hang, crash, or not be Python at all.

local config = require("lcursor.config")
local environment = require("lcursor.host.environment")
local notify = require("lcursor.ui.notify")

local M = {}

--- Time limit of the process; loading all packages takes 10 s beside a build.
M.limit_ms = 30000

-- Readable by every Python, so that an old one can report its version.
local CODE = [[
import os, sys
print('{"section": "version", "major": %d, "minor": %d}' % tuple(sys.version_info[:2]))
sys.stdout.flush()
if sys.version_info >= (3, 10):
    sys.path.insert(0, sys.argv[1])
    from lcursor.cli import doctor
    doctor.print_lines(os.environ["LCURSOR_SETTINGS"], *sys.argv[2:])
]]

---@class (exact) lcursor.Fact one line of the doctor
---@field section string
---@field text string
---@field problem? { code: string, level: "warn"|"error", message: string, hint: string }
---@field [string] any

---@class (exact) lcursor.Probe what the doctor has reported so far
---@field facts table<string, lcursor.Fact[]> by section
---@field is_running boolean
---@field failure? string why it reported no more
---@field ms number that it took
---@field job? vim.SystemObj

---@return lcursor.Fact? nil for other output, such as that of a library
local function parse(line)
  local ok, fact = pcall(vim.json.decode, line, { luanil = { object = true } })
  return ok and type(fact) == "table" and type(fact.section) == "string" and fact or nil
end

--- Return the command line of the doctor.
---@param path? string a file whose project's index is reported
---@return string[]
function M.argv(python, path)
  return { python, "-I", "-X", "utf8", "-c", CODE, environment.plugin_root(), path }
end

--- Return the interpreter to ask: also that of an incomplete environment, which may report some
--- facts.
---@return string? python
---@return string? missing why nothing is installed
function M.interpreter()
  local is_needed, missing = environment.is_needed()
  if not is_needed then
    return environment.python()
  end
  local partial = vim.fs.joinpath(environment.venv(), "bin", "python")
  local python = vim.fn.executable(partial) == 1 and partial or nil
  return python, missing or "there is no Python environment"
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

--- Start the doctor, and call functions with each fact, and at the end. Returns at once.
---@param path? string see argv
---@param on_fact? fun(fact: lcursor.Fact)
---@param on_exit? fun() called once, also if it cannot be started
---@return lcursor.Probe
function M.follow(python, path, on_fact, on_exit)
  local probe = { facts = {}, is_running = true, ms = 0 } ---@type lcursor.Probe
  local began, rest, loading = vim.uv.hrtime(), "", ""
  local handle = vim.schedule_wrap(notify.guarded(function(line)
    local fact = parse(line)
    if fact then
      loading = fact.section == "trying" and (" while it loaded " .. fact.name) or ""
      probe.facts[fact.section] = vim.list_extend(probe.facts[fact.section] or {}, { fact })
      if on_fact then
        on_fact(fact)
      end
    end
  end))
  local finish = vim.schedule_wrap(notify.guarded(function(failure)
    probe.is_running, probe.ms = false, (vim.uv.hrtime() - began) / 1e6
    probe.failure = not probe.facts["end"] and failure .. loading or nil
    if on_exit then
      on_exit()
    end
  end))
  -- Not in argv: an address may have a password in it.
  local env = { LCURSOR_SETTINGS = vim.json.encode(config.for_host()) }
  local function read(_, data)
    local lines = vim.split(rest .. (data or ""), "\n", { plain = true })
    rest = table.remove(lines)
    vim.tbl_map(handle, lines)
  end
  local opts = { env = env, stdout = read, timeout = M.limit_ms }
  local ok, job = pcall(vim.system, M.argv(python, path), opts, function(result)
    finish(ending(result))
  end)
  if ok then
    probe.job = job
  else
    finish("cannot be run: " .. tostring(job):gsub("^.-: ", ""))
  end
  return probe
end

return M
