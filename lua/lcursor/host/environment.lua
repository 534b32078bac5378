-- The Python environment: finds it, checks that it is complete, and runs lcursor/install.py, which
-- creates it. Nothing here waits.

local config = require("lcursor.config")
local lsp_progress = require("lcursor.ui.lsp_progress")
local notify = require("lcursor.ui.notify")
local status = require("lcursor.host.status")

local M = {}

M.small_model = "qwen2.5-coder-0.5b" -- what "auto" is until the recommended one is here

local STAMP = "lcursor-stamp.json"
local CANDIDATES = { "python3", "python3.13", "python3.12", "python3.11", "python3.10", "python" }
---@type (fun(err?: lcursor.Error))[]? callbacks of the installation that runs; nil if none does
local waiting
---@type lcursor.Status? the status before it; nil if a host runs, which has a state of its own
local before
local DAY_S = 24 * 60 * 60
---@type boolean whether this Neovim has suggested the installation
local has_suggested = false
---@type string? how far the installation is
local progress
---@type { python: string, server: string }? while the engine is compiled, the host completes by a
--- server, with the interpreter of the incomplete environment
local interim
local RUNNING = { starting = true, loading_model = true, ready = true } -- states of a host
-- The steps of install.py after the packages, which are all that the host needs besides the engine.
local AFTER_PACKAGES = { source = true, engine = true }

---@return string directory of the plugin's checkout
function M.plugin_root()
  local source = debug.getinfo(1, "S").source:sub(2)
  local file = vim.uv.fs_realpath(source) or vim.fn.fnamemodify(source, ":p")
  return vim.fn.fnamemodify(file, ":h:h:h:h")
end

---@return string directory of the user's environment; it may not exist
function M.venv()
  local root = vim.env.LCURSOR_DATA
  if not root or root == "" then
    local home = vim.env.XDG_DATA_HOME
    root = vim.fs.joinpath(home and home ~= "" and home or "~/.local/share", "lcursor")
  end
  return vim.fs.joinpath(vim.fs.normalize(root), "venv")
end

---@return string? text nil if there is no such file
function M.read(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("*a")
  file:close()
  return text
end

--- Return why an environment cannot be used.
---@return string? problem nil if it is complete
local function problem_of(venv)
  if vim.fn.executable(vim.fs.joinpath(venv, "bin", "python")) == 0 then
    return "there is no environment in " .. venv
  end
  local ok, stamp = pcall(vim.json.decode, M.read(vim.fs.joinpath(venv, STAMP)) or "")
  local parts = ok and type(stamp) == "table" and stamp.format == 1 and stamp.parts or {}
  if type(parts) ~= "table" or not parts.runtime or not parts.engine then
    return "the environment in " .. venv .. " is incomplete"
  end
  local lock = M.read(vim.fs.joinpath(M.plugin_root(), "requirements.lock"))
  if not lock or parts.runtime ~= vim.fn.sha256(lock) then
    return "the environment in " .. venv .. " was made for another version of lcursor"
  end
  if not require("lcursor.host.system").has_features(stamp.cpu or {}) then
    return "the engine in " .. venv .. " was compiled for another CPU"
  end
end

--- Return the interpreter: from the setting, the user's environment or the checkout's own.
---@return string? python nil if none is complete
function M.python()
  local own = config.get().python
  if own ~= "" then
    return vim.fs.normalize(own)
  end
  for _, venv in ipairs({ M.venv(), vim.fs.joinpath(M.plugin_root(), ".venv") }) do
    if not problem_of(venv) then
      return vim.fs.joinpath(venv, "bin", "python")
    end
  end
  return interim and interim.python
end

--- Let the host run before the engine is compiled, or no longer.
---@param python? string of the incomplete environment
---@param server? string what completes meanwhile, for the statusline
function M.set_interim(python, server)
  interim = python and { python = python, server = server or "" } or nil
  status.set_feature("install", interim and ("via %s, installing"):format(interim.server) or "")
end

--- Return what completes until the engine is compiled.
---@return string? server
function M.interim()
  return interim and interim.server
end

--- Return how far the installation is; nil if none runs.
---@return string?
function M.progress()
  return waiting and (progress or "starting")
end

---@return boolean needed
---@return string? reason
function M.is_needed()
  if M.python() then
    return false
  end
  return true, problem_of(M.venv())
end

---@param fraction? number 0 to 1
local function show_progress(text, fraction)
  if not lsp_progress.report("install", "installation", text, fraction) then
    notify.progress(text)
  end
end

local function show_end(text)
  if not lsp_progress.finish("install", text) then
    notify.progress(text, true)
  end
end

---@return string file whose age shows when the installation was last suggested
local function suggested_path()
  return vim.fs.joinpath(vim.fn.stdpath("state") --[[@as string]], "lcursor", "install-suggested")
end

--- Show in the statusline how far the installation is.
---@param fraction? number 0 to 1, or -1 if unknown
local function show_state(fraction)
  local percent = fraction and fraction >= 0 and (" %d%%"):format(fraction * 100) or ""
  if interim then
    status.set_feature("install", ("via %s, installing%s"):format(interim.server, percent))
  elseif before then
    status.set("installing", progress or "", fraction)
  else
    status.set_feature("install", "installing" .. percent)
  end
end

--- Set the state after the installation, or leave that to the host that runs.
---@param state lcursor.HostState
local function restore_state(state, detail)
  if before then
    status.set(state, detail)
  else
    status.set_feature("install", "")
  end
end

---@param message? string what failed; nil if nothing did
---@param hint? string what to do; without a message, which optional part is missing
local function done(message, hint)
  local err ---@type lcursor.Error?
  if message then
    err = { code = "install_failed", level = "error", message = message, hint = hint or "" }
    restore_state(before and before.state or "absent", message)
    show_end("the installation failed")
    notify.error(err)
  else
    restore_state("stopped", "")
    vim.uv.fs_unlink(suggested_path())
    show_end("the Python environment is ready")
    if hint ~= "" then
      notify.warn(hint)
    end
  end
  local callbacks = waiting or {}
  waiting, progress = nil, nil
  for _, callback in ipairs(callbacks) do
    callback(err)
  end
end

---@return string[] options that name the models to download, from the settings
local function models()
  local settings, options = config.get(), {}
  local model = settings.completion.model
  model = model == "auto" and M.small_model or model
  -- A local file or a model on a server is not downloaded.
  local is_named = not model:find("[/\\]") and not vim.endswith(model, ".gguf")
  if is_named and not config.completion_server() then
    vim.list_extend(options, { "--model", model })
  end
  if settings.index.enabled and settings.index.embedder ~= "" then
    vim.list_extend(options, { "--embedder", settings.index.embedder })
  end
  return options
end

---@param report { step: string, fraction: number, text: string, elapsed_s: number }
local function show(report)
  local percent = report.fraction >= 0 and ("%d%% "):format(report.fraction * 100) or ""
  progress = ("%s: %s%s (%d s)"):format(report.step, percent, report.text, report.elapsed_s)
  show_progress(progress, report.fraction >= 0 and report.fraction or nil)
  show_state(report.fraction)
end

--- Run install.py and show its progress, one JSON object per line.
---@param on_packages fun(venv_python: string) called once all but the engine is installed
local function start(python, on_packages)
  local script = vim.fs.joinpath(M.plugin_root(), "lcursor", "install.py")
  local command = { python, "-X", "utf8", script, "--venv", M.venv(), "--verify" }
  vim.list_extend(command, models())
  vim.list_extend(command, { "--progress", "json" })
  local rest, last = "", {}
  local function on_line(line)
    local ok, report = pcall(vim.json.decode, line)
    if not ok or type(report) ~= "table" then
      return
    end
    last = report
    if AFTER_PACKAGES[report.step] and on_packages then
      on_packages(vim.fs.joinpath(M.venv(), "bin", "python"))
      on_packages = nil
    end
    if report.step ~= "failed" and report.step ~= "done" then
      show(report)
    end
  end
  vim.fn.jobstart(command, {
    cwd = M.plugin_root(),
    on_stdout = function(_, data)
      data[1] = rest .. data[1]
      rest = table.remove(data)
      vim.tbl_map(on_line, data)
    end,
    on_exit = function(_, code)
      if code == 0 then
        done(nil, last.step == "done" and last.hint or "")
      elseif last.step == "failed" then
        done(last.text, last.hint)
      else
        local hint = "Run it in a shell to see why: " .. table.concat(command, " ", 1, #command - 2)
        done(("the installation ended with exit code %d"):format(code), hint)
      end
    end,
  })
end

--- Run with the first Python on PATH that is new enough.
---@param at integer index of the candidate to try
---@param on_packages fun(venv_python: string)
local function start_with(at, on_packages)
  local name = CANDIDATES[at]
  if not name then
    local packages = "Debian or Ubuntu: sudo apt install python3 python3-venv"
    return done("no Python 3.10 or newer on PATH", packages .. ". Then run :LCursor install")
  end
  local path = vim.fn.exepath(name)
  if path == "" then
    return start_with(at + 1, on_packages)
  end
  local code = "import sys; sys.exit(sys.version_info < (3, 10))"
  vim.system({ path, "-I", "-c", code }, { timeout = 5000 }, function(result)
    vim.schedule(function()
      if result.code == 0 then
        start(path, on_packages)
      else
        start_with(at + 1, on_packages)
      end
    end)
  end)
end

--- Create the environment, or complete it. Returns at once; a second call joins the first.
---@param on_done? fun(err?: lcursor.Error)
---@param on_packages? fun(venv_python: string) called once all but the engine is installed
function M.run(on_done, on_packages)
  local is_running = waiting ~= nil
  waiting = waiting or {}
  table.insert(waiting, on_done)
  if not is_running then
    before = not RUNNING[status.get().state] and status.get() or nil
    show_state()
    show_progress("creating the Python environment, which takes some minutes")
    start_with(1, on_packages or function() end)
  end
end

--- Download a model. Returns at once.
---@param name string of `models list`
---@param on_line fun(line: string) called with each line of progress
---@param on_done fun(err?: string) called once
function M.pull(python, name, on_line, on_done)
  local last, warning = "", nil
  local function on_output(_, data)
    for line in vim.gsplit(data or "", "\n", { trimempty = true }) do
      last = vim.trim(line)
      warning = last:match("^lcursor: (.*)") or warning
      vim.schedule_wrap(notify.guarded(on_line))(last)
    end
  end
  local finish = vim.schedule_wrap(function(result)
    if result.code == 0 and warning then
      notify.warn(warning)
    end
    on_done(result.code ~= 0 and last:gsub("^lcursor: ", "") or nil)
  end)
  local command = { python, "-X", "utf8", "-m", "lcursor", "models", "pull", name }
  local opts = { cwd = M.plugin_root(), stdout = on_output, stderr = on_output }
  local ok, err = pcall(vim.system, command, opts, finish)
  if not ok then
    on_done(tostring(err))
  end
end

--- Suggest :LCursor install: at most once a day, and never as a prompt, because the user may be
--- typing.
function M.suggest()
  if has_suggested or waiting then
    return
  end
  has_suggested = true
  local path = suggested_path()
  local stat = vim.uv.fs_stat(path)
  if stat and math.abs(os.time() - stat.mtime.sec) < DAY_S then
    return
  end
  vim.fn.mkdir(vim.fs.dirname(path), "p")
  local file = io.open(path, "w")
  if file then
    file:close()
  end
  local _, reason = M.is_needed()
  vim.schedule(function()
    notify.info("not set up: " .. (reason or "there is no environment"), "Run :LCursor install")
  end)
end

return M
