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

---@return lcursor.Fact? nil for other output, such as that of a library
function M.parse(line)
  local ok, fact = pcall(vim.json.decode, line, { luanil = { object = true } })
  return ok and type(fact) == "table" and type(fact.section) == "string" and fact or nil
end

--- Return the command line of the doctor.
---@param path? string a file whose project's index is reported
---@return string[]
function M.argv(python, path)
  return { python, "-I", "-X", "utf8", "-c", CODE, environment.plugin_root(), path }
end

--- Start the doctor.
---@param opts? vim.SystemOpts
---@param on_exit? fun(result: vim.SystemCompleted)
---@param path? string
---@return vim.SystemObj? job
---@return string problem why it cannot be run
function M.start(python, opts, on_exit, path)
  -- Not in argv: an address may have a password in it.
  local env = { LCURSOR_SETTINGS = vim.json.encode(config.for_host()) }
  opts = vim.tbl_extend("keep", opts or {}, { env = env })
  local ok, job = pcall(vim.system, M.argv(python, path), opts, on_exit)
  if ok then
    return job, ""
  end
  return nil, "cannot be run: " .. tostring(job):gsub("^.-: ", "")
end

--- Start the doctor, and call a function with each fact. Returns at once.
---@param path string see argv
---@param on_fact fun(fact: lcursor.Fact)
---@param on_exit fun() called once, also if it cannot be started
---@return vim.SystemObj?
function M.follow(python, path, on_fact, on_exit)
  local rest = ""
  local handle = vim.schedule_wrap(notify.guarded(function(line)
    local fact = M.parse(line)
    if fact then
      on_fact(fact)
    end
  end))
  local function read(_, data)
    local lines = vim.split(rest .. (data or ""), "\n", { plain = true })
    rest = table.remove(lines)
    vim.tbl_map(handle, lines)
  end
  local finish = vim.schedule_wrap(notify.guarded(on_exit))
  local job = M.start(python, { stdout = read, timeout = M.limit_ms }, finish, path)
  if not job then
    finish()
  end
  return job
end

return M
