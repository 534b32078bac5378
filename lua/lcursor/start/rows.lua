-- The rows of the start page: what is set up, and what is missing with the key that fixes it.
-- Reads what the rest of the plugin knows, and starts nothing but what a key stands for.

local config = require("lcursor.config")
local environment = require("lcursor.host.environment")
local fim = require("lcursor.complete.fim")
local host = require("lcursor.host")
local states = require("lcursor.index.states")
local status = require("lcursor.host.status")

local M = {}

---@class (exact) lcursor.StartFix
---@field key string
---@field label string what the key does
---@field run fun()

---@class (exact) lcursor.StartRow
---@field name string
---@field state "ready"|"missing"|"busy"|"none"
---@field text string
---@field fix? lcursor.StartFix

---@class (exact) lcursor.StartPage what the page knows
---@field path string the file that it was opened from, or a folder
---@field buf integer the buffer that it was opened from
---@field python? string
---@field missing? string why nothing is installed
---@field facts table<string, lcursor.Fact[]> by section, from the doctor
---@field probe? lcursor.Probe
---@field has_waited? boolean the doctor ran again for the measured speed
---@field server? lcursor.ServerStatus
---@field pull fun(model: string, is_used: boolean) download a model; the host uses it at once
---@field pulls table<string, string> progress of downloads, by model
---@field win integer
---@field page_buf integer
---@field fixes (lcursor.StartFix|false)[] by line

---@type lcursor.StartFix
local INSTALL = {
  key = "i",
  label = "install",
  run = function()
    require("lcursor.host.install").install()
  end,
}

---@return lcursor.StartRow
local function row(name, state, text, fix)
  return { name = name, state = state, text = text, fix = fix }
end

---@param page lcursor.StartPage
---@return lcursor.Fact?
local function first(page, section)
  return (page.facts[section] or {})[1]
end

local function short_path(path)
  return vim.fn.fnamemodify(path, ":~")
end

--- Return the row of a feature that the settings switch off, with what turns it on.
---@param name "host"|"index"|"chat"
---@return lcursor.StartRow?
local function off_row(name)
  local settings, switch = config.get(), nil
  local chat = settings.chat
  if not settings.enabled then
    switch = "enabled = true"
  elseif name == "index" and not settings.index.enabled then
    switch = "index.enabled = true"
  elseif name == "chat" and chat.server == "off" and not settings.models[chat.model] then
    switch = 'chat.server = "auto"'
  end
  return switch and row(name, "none", ("off; %s turns it on"):format(switch))
end

--- Return the row of a fact that has not arrived.
---@return lcursor.StartRow
local function without_fact(page, name)
  if page.probe and page.probe.is_running then
    return row(name, "busy", "checking …")
  elseif page.missing then
    return row(name, "none", "not known before the installation")
  end
  return row(name, "none", "not checked; h shows why")
end

--- Offer to download a model; while that runs, show its progress.
---@param page lcursor.StartPage
---@param state "missing"|"ready"
---@return lcursor.StartRow
local function with_download(page, name, state, text, key, model)
  local progress = page.pulls[model]
  if progress then
    return row(name, "busy", ("downloading %s"):format(progress))
  end
  local function run()
    page.pull(model, key == "m")
  end
  return row(name, state, text, { key = key, label = "download", run = run })
end

-- One function for each row: gets the fact of the doctor that ORDER names, once it has arrived.
---@type table<string, fun(page: lcursor.StartPage, fact?: lcursor.Fact): lcursor.StartRow?>
local make = {}

function make.install(page, fact)
  local progress = environment.progress()
  if progress then
    return row("install", "busy", progress)
  elseif page.missing then
    local home = vim.pesc(vim.uv.os_homedir() or "/")
    local text = page.missing:gsub(home .. "/", "~/") .. "; installing takes 2 to 3 minutes"
    return row("install", "missing", text, INSTALL)
  end
  local version = fact and (" " .. fact.version) or ""
  local where = short_path(page.python or ""):gsub("/bin/python$", "")
  return row("python", "ready", ("Python%s in %s"):format(version, where))
end

function make.host(page)
  local current = status.get()
  local detail = current.detail ~= "" and (": " .. current.detail) or ""
  local again = { key = "r", label = "restart", run = host.restart }
  local texts = {
    stopped = { "none", "starts when you enter Insert mode" },
    absent = { "none", "not installed" },
    installing = { "none", "not installed yet" },
    starting = { "busy", "starting" .. detail },
    loading_model = { "busy", (status.describe():gsub("loading_model", "loading the model")) },
    ready = { "ready", "ready" },
    failed = { "missing", "failed" .. detail, again },
    no_server = { "missing", "waits for the server, which typing asks again" },
  }
  local state, text, fix = unpack(texts[fim.server_is_away() and "no_server" or current.state])
  if current.state == "stopped" and page.missing then
    text = texts.absent[2]
  elseif current.state == "absent" and not page.missing then
    text = texts.stopped[2]
  end
  return row("host", state, text, fix)
end

function make.engine(page, fact)
  local server = environment.interim()
  if server then
    local detail = status.get().detail
    local format = "being compiled; until then %s on this machine completes: %s"
    return row("engine", "busy", format:format(server, detail ~= "" and detail or "connecting"))
  elseif environment.progress() then
    return row("engine", "busy", "being compiled for this machine")
  end
  for _, package in ipairs(page.facts.package or {}) do
    if package.name == "llama-cpp-python" and package.problem then
      local missing = not page.missing and INSTALL or nil -- else the first row has this key
      return row("engine", "missing", package.problem.message, missing)
    end
  end
  if not fact then
    return without_fact(page, "engine")
  elseif fact.problem then
    return row("engine", "missing", fact.problem.message, INSTALL)
  end
  local build = fact.step and ("the %s build of llama.cpp"):format(fact.step) or "llama.cpp"
  local where = fact.has_gpu and "on the GPU" or "on the CPU"
  return row("engine", "ready", ("%s, %s"):format(build, where))
end

--- Return why a completion model is in use.
---@param page lcursor.StartPage
---@return string
---@return string? better the recommended model, which is used as soon as it is downloaded
local function reason(page, model)
  local is_auto = config.get().completion.model == "auto"
  local why = is_auto and "the default" or "set in completion.model"
  local hardware = first(page, "hardware")
  local best = hardware and hardware.recommended and hardware.recommended.completion
  if not best then
    return why
  elseif best.model == model then
    return ("%s, and recommended here (%s)"):format(why, best.why)
  elseif not is_auto then
    return ("%s; recommended here: %s (%s)"):format(why, best.model, best.why)
  elseif best.placement == "on the CPU" then
    return ("%s; better here: %s (%s)"):format(why, best.model, best.why), best.model
  end
  local format = "%s; set completion.model to %s, recommended here (%s)"
  return format:format(why, best.model, best.why)
end

function make.model(page)
  local settings = config.get().completion
  if config.completion_server() then
    local fact = first(page, "endpoint")
    if not fact then
      return without_fact(page, "model")
    elseif fact.problem then
      local text = ("%s. %s"):format(fact.problem.message, fact.problem.hint)
      return row("model", "missing", text)
    end
    return row("model", "ready", fact.text)
  end
  local fact = first(page, "model")
  local name = fact and fact.name or settings.model
  name = name == "auto" and environment.small_model or name
  local why, better = reason(page, name)
  local text = ("%s: %s"):format(vim.fs.basename(name), why)
  if not fact then
    return row("model", page.probe and page.probe.is_running and "busy" or "none", text)
  elseif fact.problem then
    local pull = fact.problem.hint:match("models pull (%S+)")
    if pull then
      text = ("%s (not downloaded): %s"):format(name, why)
      return with_download(page, "model", "missing", text, "m", pull)
    end
    return row("model", "missing", fact.problem.message .. "; see completion.model")
  elseif better then
    return with_download(page, "model", "ready", text, "m", better)
  end
  return row("model", "ready", text)
end

--- Return a row if suggestions are switched off.
function make.switch(page)
  local buf = vim.api.nvim_buf_is_valid(page.buf) and page.buf or nil
  local off = config.switched_off("completion", buf)
  if off and not config.get().enabled then
    return row("enabled", "missing", "everything is switched off by the option enabled")
  elseif off then
    local where = off == "disabled_buffer" and " in this buffer" or ""
    local function run()
      require("lcursor").toggle(off == "disabled_buffer" and buf or nil)
    end
    local fix = { key = "o", label = "switch on", run = run }
    return row("enabled", "missing", "suggestions are switched off" .. where, fix)
  end
end

function make.index(page, fact)
  local function fix(label)
    local function run()
      require("lcursor.index.report").start(page.path, { rebuild = label == "rebuild" })
    end
    return { key = "x", label = label, run = run }
  end
  local state = states.of(page.path)
  if state and states.is_alive(state) then
    if state.phase == "failed" then
      return row("index", "missing", states.sentence(state), fix("rebuild"))
    end
    return row("index", state.phase == "ready" and "ready" or "busy", states.sentence(state))
  elseif not fact then
    return without_fact(page, "index")
  elseif fact.is_begun then
    return row("index", "ready", "exists; searchable while the host runs")
  end
  local text = ("%s is not indexed"):format(short_path(fact.root or page.path))
  return row("index", "missing", text, fix("start"))
end

function make.embedder(page, fact)
  if not off_row("index") and fact and fact.embedder ~= "" and not fact.is_embedder_here then
    local text = "not downloaded, so search finds words and names, not meaning"
    return with_download(page, "embedder", "missing", text, "e", fact.embedder)
  end
end

local SERVER = {
  running = "running",
  sleeping = "asleep until the next question",
  starting = "starting",
  foreign = "running, started by another program",
}

function make.chat(page, fact)
  local model = config.get().chat.model
  for _, own in ipairs(page.facts.chat_model or {}) do
    if vim.startswith(own.text, model .. ":") and model ~= "" then
      local text = own.problem and own.problem.message or own.text
      return row("chat", own.problem and "missing" or "ready", text)
    end
  end
  if not fact then
    return without_fact(page, "chat")
  elseif fact.model then
    local state = page.server and SERVER[page.server.state] or "starts with the first question"
    local text = ("%s with %s, %s"):format(fact.model, fact.program, state)
    if fact.pull then
      local more = ("%s; a better one fits: %s"):format(text, fact.pull)
      return with_download(page, "chat", "ready", more, "c", fact.pull)
    end
    return row("chat", "ready", text)
  elseif fact.pull then
    local text = ("no model for chat and edits here; %s fits"):format(fact.pull)
    return with_download(page, "chat", "missing", text, "c", fact.pull)
  end
  return row("chat", "missing", fact.problem and fact.problem.message or fact.text)
end

function make.gpu(page, fact)
  if not fact then
    return without_fact(page, "GPU")
  end
  return row("GPU", fact.gpu and "ready" or "none", fact.text)
end

-- The order of the rows, the section of the doctor's fact that each gets, and the feature that may
-- be off.
local ORDER = {
  { "install", section = "python" },
  { "host", feature = "host" },
  { "switch" },
  { "engine", section = "engine" },
  { "model" },
  { "index", section = "index", feature = "index" },
  { "embedder", section = "index" },
  { "chat", section = "chat", feature = "chat" },
  { "gpu", section = "hardware" },
}

--- Return the rows.
---@param page lcursor.StartPage
---@return lcursor.StartRow[]
function M.rows(page)
  local rows = {}
  for _, it in ipairs(ORDER) do
    local off = it.feature and off_row(it.feature)
    table.insert(rows, off or make[it[1]](page, it.section and first(page, it.section)))
  end
  return rows
end

return M
