-- The Python host: starts its process, restarts it after a crash, gives up after several.
--
--   stopped -> starting -> loading_model -> ready
--                 |              |            |      the process ended: back to starting after a
--                 +--------------+------------+----> pause, at most 3 times a minute, then failed

local config = require("lcursor.config")
local environment = require("lcursor.host.environment")
local log = require("lcursor.ui.log")
local notify = require("lcursor.ui.notify")
local protocol = require("lcursor.host.protocol")
local rpc = require("lcursor.host.rpc")
local status = require("lcursor.host.status")

local M = {}

local PAUSES_MS = { 200, 1000, 4000 } -- before the first, second and third restart
local WINDOW_MS = 60 * 1000
local HELLO_MS = 15 * 1000
local EXIT_MS = 200 -- how long a process may take to exit after it closed its channel

---@class lcursor.HostInfo
---@field job? integer
---@field python? string
---@field pid? integer
---@field version? string of the process
---@field started_ms? integer vim.uv.now() at the start
---@field ready_ms? number from the start to the answer to hello
---@field model_ms? number from the start to a loaded model
---@field stderr string[] last lines
local host = { stderr = {} }

-- Signals of a crash: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
local CRASHES = { [4] = true, [6] = true, [7] = true, [8] = true, [11] = true }

---@type integer[] times of the last unexpected ends
local ends = {}
local crashes = 0 -- since the last :LCursor restart
---@type uv.uv_timer_t? running until hello is answered, or before a restart
local timer

local function after(ms, fn)
  if timer then
    timer:close()
  end
  timer = assert(vim.uv.new_timer())
  timer:start(ms, 0, function()
    timer:close()
    timer = nil
    vim.schedule(fn)
  end)
end

local function stop_timer()
  if timer then
    timer:close()
    timer = nil
  end
end

local function report(code, message, hint)
  notify.error({ code = code, message = message, hint = hint, level = protocol.levels[code] })
end

--- Disconnect and end the process.
local function drop()
  local job = host.job
  host.job, host.pid = nil, nil
  rpc.connect(nil)
  stop_timer()
  if job then
    pcall(vim.fn.jobstop, job) -- throws if the job has ended
  end
end

local function fail(message, hint)
  drop()
  status.set("failed", message)
  report("host_failed", message, hint)
end

---@return string last line of stderr
local function last_line()
  local line = vim.iter(host.stderr):rfind(function(each)
    return each:find("%S") ~= nil
  end)
  return vim.trim(line or "")
end

--- Test the engine in a separate process, after the host crashed twice. Returns at once.
---@param signal integer of the last crash
local function test_engine(python, signal)
  status.set("starting", "testing the engine")
  vim.system(M.selftest_argv(python), { cwd = environment.plugin_root() }, function(result)
    local ok, outcome = pcall(vim.json.decode, result.stdout or "")
    vim.schedule(function()
      if status.get().state ~= "starting" or host.job then
        return -- stopped or restarted meanwhile
      elseif not ok or type(outcome) ~= "table" then
        outcome = { kind = "error", text = "could not be tested" }
      end
      if outcome.kind == "passed" then
        log.warn("host: crashed with signal %d; the engine %s", signal, outcome.text)
        return M.start()
      end
      fail(
        ("the engine %s (the host crashed with signal %d)"):format(outcome.text, signal),
        "Run :LCursor install, which builds an engine that runs on this CPU"
      )
    end)
  end)
end

--- Restart the process after a pause, or give up.
---@param signal? integer
local function on_end(why, signal)
  local python = host.python
  drop()
  local now = vim.uv.now()
  ends = vim.tbl_filter(function(at)
    return now - at < WINDOW_MS
  end, ends)
  table.insert(ends, now)
  local line = last_line()
  log.warn("host: %s; stderr: %s", why, line)
  if #ends > #PAUSES_MS then
    return fail(
      ("the Python host ended %d times in a minute (%s)"):format(#ends, why),
      "See :LCursor log and :checkhealth lcursor, then run :LCursor restart"
    )
  end
  report("host_died", "the Python host ended (" .. why .. ")", "It is being restarted")
  if signal and CRASHES[signal] and python then
    crashes = crashes + 1
    if crashes == 2 then
      return test_engine(python, signal)
    end
  end
  status.set("starting", "restart " .. #ends)
  after(PAUSES_MS[#ends], M.start)
end

---@param data string[]
local function on_stderr(_, data)
  for _, line in ipairs(data) do
    if line ~= "" then
      log.debug("host: %s", line)
      table.insert(host.stderr, line)
      if #host.stderr > 50 then
        table.remove(host.stderr, 1)
      end
    end
  end
end

--- The command line of the host.
---@return string[]
function M.argv(python)
  local script = vim.fs.joinpath(environment.plugin_root(), "rplugin", "python3", "lcursor_host.py")
  return { python, "-I", "-X", "utf8", script }
end

--- The command line of the engine's self-test.
---@return string[]
function M.selftest_argv(python)
  return { python, "-X", "utf8", "-m", "lcursor.installer.selftest" }
end

--- Start the process unless it runs. Returns at once.
function M.start()
  if host.job or status.get().state == "failed" then
    return
  end
  local python = environment.python()
  if not python then
    status.set("absent", "no Python environment")
    return environment.suggest()
  end
  status.set("starting", "")
  host = { python = python, started_ms = vim.uv.now(), stderr = {} }
  local ok, result = pcall(vim.fn.jobstart, M.argv(python), {
    rpc = true,
    detach = true, -- otherwise Neovim kills it on exit and waits for its end
    cwd = environment.plugin_root(),
    on_stderr = on_stderr,
    on_exit = function(id, code)
      if id == host.job then
        on_end("exit code " .. code, code > 128 and code - 128 or nil)
      end
    end,
  })
  local job = ok and result or 0
  if job <= 0 then
    return fail("cannot run " .. python, "Run :LCursor install")
  end
  host.job = job
  rpc.connect(job, function()
    after(EXIT_MS, function()
      if host.job == job then
        on_end("its channel was closed")
      end
    end)
  end)
  after(HELLO_MS, function()
    if host.job == job then
      on_end("no answer to hello in " .. HELLO_MS / 1000 .. " s")
    end
  end)
  rpc.notify("hello", {
    protocol = protocol.version,
    version = M.version(),
    config = config.for_host(),
  })
end

--- Restart the process and forget earlier failures.
function M.restart()
  M.stop()
  ends, crashes = {}, 0
  notify.forget()
  M.start()
end

--- Stop the process until start() is called.
function M.stop()
  if host.job then
    rpc.notify("shutdown")
  end
  drop()
  status.set("stopped", "")
end

--- Ask the process to end when Neovim exits, without waiting. Neovim closes the channel next, which
--- ends the process too.
function M.leave()
  rpc.notify("shutdown")
  host.job = nil
  stop_timer()
end

---@return lcursor.HostInfo
function M.info()
  return host
end

---@return string version of the plugin, as lcursor/__init__.py says
function M.version()
  local path = vim.fs.joinpath(environment.plugin_root(), "lcursor", "__init__.py")
  return (environment.read(path) or ""):match('__version__ = "([^"]+)"') or "unknown"
end

-- When the modules are loaded again, the host that the earlier ones started ends.
pcall(vim.api.nvim_exec_autocmds, "VimLeavePre", { group = "lcursor.host" })
notify.autocmds("host")("VimLeavePre", function()
  if vim.v.exiting == vim.NIL then
    return M.stop()
  end
  M.leave()
end)

rpc.on("ready", function(params)
  stop_timer()
  host.ready_ms = vim.uv.now() - host.started_ms
  host.pid, host.version = params.pid, params.version
  if params.protocol ~= protocol.version then
    local format = "the Python host uses protocol %s, the plugin %d"
    local text = format:format(tostring(params.protocol), protocol.version)
    return fail(text, "Update the whole plugin, then run :LCursor install")
  end
  log.info("host %s, pid %d, ready after %d ms", params.version, params.pid, host.ready_ms)
  status.set("loading_model", "")
end)

rpc.on("state", function(params)
  if params.state == "ready" and not host.model_ms then
    host.model_ms = vim.uv.now() - host.started_ms
  end
  status.set(params.state, params.detail, params.progress)
end)

rpc.on("error", function(params)
  if params.code == "protocol_mismatch" then
    fail(params.message, params.hint)
  else
    notify.error(params, require("lcursor.host.requests").is_awaited(params.id))
  end
end)

rpc.on("log", function(params)
  log.write(params.level, "host: %s", params.message)
end)

return M
