-- The Python process: one state machine that starts it, greets it, restarts it and gives up.
-- Owns the job, its state and the last lines of its stderr. Knows nothing of completions.
--
--   stopped -> starting -> loading_model -> ready
--                 |              |            |      the process ended: back to starting after a
--                 +--------------+------------+----> pause, at most 3 times a minute, then failed

local config = require("lcursor.config")
local install = require("lcursor.install")
local log = require("lcursor.log")
local notify = require("lcursor.notify")
local protocol = require("lcursor.protocol")
local rpc = require("lcursor.rpc")
local status = require("lcursor.status")

local M = {}

local PAUSES_MS = { 200, 1000, 4000 } -- before the first, second and third restart
local WINDOW_MS = 60 * 1000
local HELLO_MS = 15 * 1000
local EXIT_MS = 200 -- from a channel that is closed to what its process has to say, at most

---@class lcursor.HostInfo
---@field job? integer
---@field python? string
---@field pid? integer
---@field version? string of the Python half
---@field started_ms? integer vim.uv.now() at the start
---@field ready_ms? number from the start to the answer to hello
---@field model_ms? number from the start to a loaded model
---@field stderr string[] last lines
local host = { stderr = {} }

-- Signals of a crash: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
local CRASHES = { [4] = true, [6] = true, [7] = true, [8] = true, [11] = true }

---@type integer[] times of the last unexpected ends
local ends = {}
local crashes = 0 -- since the last start that the user asked for
---@type uv.uv_timer_t? runs while hello is unanswered, or before a restart
local timer

---@param ms integer
---@param fn fun()
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

local function calm()
  if timer then
    timer:close()
    timer = nil
  end
end

---@param code string
---@param message string
---@param hint string
local function complain(code, message, hint)
  notify.error({ code = code, message = message, hint = hint, level = protocol.levels[code] })
end

--- Let go of the process, whatever it does.
local function drop()
  local job = host.job
  host.job, host.pid = nil, nil
  rpc.connect(nil)
  calm()
  if job then
    pcall(vim.fn.jobstop, job) -- throws when the job is gone already
  end
end

---@param message string
---@param hint string
local function fail(message, hint)
  drop()
  status.set("failed", message)
  complain("host_failed", message, hint)
end

---@return string last line that the process wrote to stderr
local function last_words()
  for i = #host.stderr, 1, -1 do
    if host.stderr[i]:find("%S") then
      return vim.trim(host.stderr[i])
    end
  end
  return ""
end

--- Test the engine in a process of its own, after the host crashed twice. Returns at once.
---@param python string
---@param signal integer of the last crash
local function test_engine(python, signal)
  status.set("starting", "testing the engine")
  vim.system(M.selftest_argv(python), { cwd = install.plugin_root() }, function(result)
    local ok, outcome = pcall(vim.json.decode, result.stdout or "")
    vim.schedule(function()
      if status.get().state ~= "starting" or host.job then
        return -- stopped or started again meanwhile
      elseif not ok or type(outcome) ~= "table" then
        outcome = { kind = "error", text = "has no self-test that runs" }
      end
      if outcome.kind == "passed" then
        log.warn("host: crashed with signal %d; the engine %s", signal, outcome.text)
        M.start()
        return
      end
      fail(
        ("the engine %s (the host crashed with signal %d)"):format(outcome.text, signal),
        "Run :LCursor install, which finds an engine that works on this CPU"
      )
    end)
  end)
end

---@param why string
---@param signal? integer
local function ended(why, signal)
  local python = host.python
  drop()
  local now = vim.uv.now()
  ends = vim.tbl_filter(function(at)
    return now - at < WINDOW_MS
  end, ends)
  table.insert(ends, now)
  local words = last_words()
  log.warn("host: %s; stderr: %s", why, words)
  if #ends > #PAUSES_MS then
    fail(
      ("the Python host ended %d times in a minute (%s)"):format(#ends, why),
      "Look at :LCursor log and :checkhealth lcursor, then run :LCursor restart"
    )
    return
  end
  complain("host_died", "the Python host ended (" .. why .. ")", "It is started again")
  if signal and CRASHES[signal] and python then
    crashes = crashes + 1
    if crashes == 2 then
      test_engine(python, signal)
      return
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
---@param python string
---@return string[]
function M.argv(python)
  local script = vim.fs.joinpath(install.plugin_root(), "rplugin", "python3", "lcursor_host.py")
  return { python, "-I", "-X", "utf8", script }
end

--- The command line of the engine's self-test.
---@param python string
---@return string[]
function M.selftest_argv(python)
  return { python, "-X", "utf8", "-m", "lcursor.installer.selftest" }
end

--- Start the process unless it runs. Returns at once.
function M.start()
  if host.job or status.get().state == "failed" then
    return
  end
  local python = install.python()
  if not python then
    status.set("absent", "no Python environment")
    install.suggest()
    return
  end
  status.set("starting", "")
  host = { python = python, started_ms = vim.uv.now(), stderr = {} }
  local job
  local ok, result = pcall(vim.fn.jobstart, M.argv(python), {
    rpc = true,
    detach = true, -- or Neovim would end it, and wait for its end, on leaving
    cwd = install.plugin_root(),
    on_stderr = on_stderr,
    on_exit = function(id, code)
      if id == host.job then
        ended("exit code " .. code, code > 128 and code - 128 or nil)
      end
    end,
  })
  job = ok and result or 0
  if job <= 0 then
    fail("cannot run " .. python, "Run :LCursor install")
    return
  end
  host.job = job
  rpc.connect(job, function()
    after(EXIT_MS, function()
      if host.job == job then
        ended("its channel was closed")
      end
    end)
  end)
  after(HELLO_MS, function()
    if host.job == job then
      ended("no answer to hello in " .. HELLO_MS / 1000 .. " s")
    end
  end)
  rpc.notify("hello", {
    protocol = protocol.version,
    version = M.version(),
    config = config.for_host(),
  })
end

--- Stop the process and start it anew, forgetting earlier failures.
function M.restart()
  M.stop()
  ends, crashes = {}, 0
  notify.forget()
  M.start()
end

--- Stop the process; it stays down until start().
function M.stop()
  if host.job then
    rpc.notify("shutdown")
  end
  drop()
  status.set("stopped", "")
end

--- At the end of Neovim: ask the process to end, and wait for nothing. Neovim closes the channel
--- next, which ends the process as well.
function M.leave()
  rpc.notify("shutdown")
  host.job = nil
  calm()
end

---@return lcursor.HostInfo
function M.info()
  return host
end

---@return string version of the plugin, as lcursor/__init__.py says
function M.version()
  local path = vim.fs.joinpath(install.plugin_root(), "lcursor", "__init__.py")
  local file = io.open(path, "r")
  local text = file and file:read("*a") or ""
  if file then
    file:close()
  end
  return text:match('__version__ = "([^"]+)"') or "unknown"
end

rpc.on("ready", function(params)
  calm()
  host.ready_ms = vim.uv.now() - host.started_ms
  host.pid, host.version = params.pid, params.version
  if params.protocol ~= protocol.version then
    fail(
      ("the Python half speaks protocol %s, the plugin %d"):format(
        tostring(params.protocol),
        protocol.version
      ),
      "Update the plugin as a whole, then run :LCursor install"
    )
    return
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
    notify.error(params)
  end
end)

rpc.on("log", function(params)
  log.write(params.level, "host: %s", params.message)
end)

return M
