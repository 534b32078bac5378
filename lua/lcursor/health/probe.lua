-- Asks the Python half about itself, in a process of its own and within a few seconds. Must get
-- along with an interpreter that is missing, hangs, crashes or is something else altogether:
-- lcursor/cli/doctor.py tells its facts one by one, and those that came are kept.

local config = require("lcursor.config")

local M = {}

--- The most time that the process is given.
M.limit_ms = 10000

-- Readable to every Python there is, so that an old one can say how old it is.
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

---@class (exact) lcursor.Probe what became known
---@field facts table<string, lcursor.Fact> by section
---@field packages lcursor.Fact[]
---@field failure? string why there is not more
---@field ms number that it took

---@param probe lcursor.Probe
---@param line string
---@return string? what is being tried, "" for nothing any more
local function take(probe, line)
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

---@param result vim.SystemCompleted?
---@param stderr string
---@return string
local function ending(result, stderr)
  local words = vim.split(vim.trim(stderr), "\n")
  local last = words[#words] ~= "" and (": " .. words[#words]) or ""
  if not result then
    return ("gave no answer in %.1f s"):format(M.limit_ms / 1000)
  elseif result.signal ~= 0 then
    return ("crashed with signal %d%s"):format(result.signal, last)
  end
  return ("ended with exit code %d%s"):format(result.code, last)
end

--- Ask an interpreter. Waits, at most limit_ms.
---@param python string
---@param root string of the plugin
---@param settings table
---@param embedder string
---@return lcursor.Probe
function M.ask(python, root, settings, embedder)
  local probe = { facts = {}, packages = {}, ms = 0 } ---@type lcursor.Probe
  local began, chunks, errors = vim.uv.hrtime(), {}, {}
  local result ---@type vim.SystemCompleted?
  local function into(list)
    return function(_, data)
      table.insert(list, data)
    end
  end
  local argv = { python, "-I", "-X", "utf8", "-c", CODE, root, settings.model, embedder }
  local wire = config.for_host()
  -- Not in argv: an address may have a password in it.
  local env = { LCURSOR_CHAT = vim.json.encode(wire.chat) }
  if settings.backend == "endpoint" then
    env.LCURSOR_COMPLETION = vim.json.encode(wire.completion)
  end
  local options = { stdout = into(chunks), stderr = into(errors), env = env }
  local ok, job = pcall(vim.system, argv, options, function(completed)
    result = completed
  end)
  if not ok then -- it throws when there is no such program
    probe.failure = "cannot be run: " .. tostring(job):gsub("^.-: ", "")
    return probe
  end
  vim.wait(M.limit_ms, function()
    return result ~= nil
  end, 10)
  if not result then
    job:kill("sigkill")
  end
  probe.ms = (vim.uv.hrtime() - began) / 1e6
  local trying = ""
  for line in vim.gsplit(table.concat(chunks), "\n") do
    trying = take(probe, line) or trying
  end
  if not probe.facts["end"] and not (probe.facts.version and not M.is_new_enough(probe)) then
    local what = trying ~= "" and (" while it loaded " .. trying) or ""
    probe.failure = ending(result, table.concat(errors)) .. what
  end
  return probe
end

---@param probe lcursor.Probe
---@return boolean
function M.is_new_enough(probe)
  local version = probe.facts.version
  return version ~= nil and version.major == 3 and version.minor >= 10
end

return M
