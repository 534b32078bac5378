-- The edits that run, one table each from the question to its end: follows them, stops them, and
-- hands what is proposed to the store. What is asked is in region.lua, many.lua, apply.lua and
-- commit.lua; the rest of the plugin comes in through reach.lua.

local colours = require("lcursor.edit.colours")
local direct = require("lcursor.edit.direct")
local free = require("lcursor.edit.free")
local keys = require("lcursor.edit.keys")
local look = require("lcursor.edit.look")
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")
local running = require("lcursor.edit.running")
local status = require("lcursor.status")
local store = require("lcursor.edit.store")
local trace = require("lcursor.edit.trace")
local words = require("lcursor.edit.words")

local M = {}

local api = vim.api
local PATIENCE_MS = 1500 -- after a stop, until `edit.done` is not waited for any more

---@type table<integer, lcursor.EditRun>
local runs = {}
local is_started = false

---@class lcursor.EditJoins what other features lend; each may be missing
---@field collect? fun(text: string): lcursor.ChatAttachment[] what only the editor can read
local joins = {}

--- Lend what belongs to other features.
---@param more lcursor.EditJoins
function M.join(more)
  joins = vim.tbl_extend("force", joins, more)
end

--- What of the editor goes along with an instruction that mentions it.
---@param text string
---@return lcursor.ChatAttachment[]
function M.collect(text)
  return joins.collect and joins.collect(text) or {}
end

local function tell_status()
  local count = 0
  for _ in pairs(runs) do
    count = count + 1
  end
  status.set_edit(count == 0 and "" or count == 1 and "editing" or ("%d edits"):format(count))
end

--- Hear what happens to the buffers whose text is sent, so that a change of them finds its place.
---@param texts lcursor.EditText[]
---@return { buf: integer, tick: integer }[]
local function remember_all(texts)
  local traces = {}
  for _, text in ipairs(texts) do
    local buf = direct.buffer(text.path)
    if buf then
      table.insert(traces, { buf = buf, tick = trace.remember(buf) })
    end
  end
  return traces
end

---@param traces { buf: integer, tick: integer }[]
local function forget(traces)
  for _, one in ipairs(traces) do
    trace.forget(one.buf, one.tick)
  end
end

---@param run lcursor.EditRun
---@param reason string
local function finish(run, reason)
  if runs[run.id] ~= run then
    return
  end
  runs[run.id] = nil
  requests.forget(run.id)
  look.stop(run.id)
  running.close(run.view)
  forget(run.traces)
  if run.window then
    run.window.close()
    run.window = nil
  end
  if run.buf then
    keys.sync(run.buf)
  end
  tell_status()
  status.emit("LCursorEditDone", { id = run.id, buf = run.buf, reason = reason })
end

--- End a stopped edit though the host does not confirm it.
---@param run lcursor.EditRun
local function finish_later(run)
  vim.defer_fn(
    notify.guarded(function()
      finish(run, "stopped")
    end),
    PATIENCE_MS
  )
end

--- Begin to hear what becomes of hunks. Starts nothing.
function M.start()
  if is_started then
    return
  end
  is_started = true
  store.on_decided(function(decided)
    requests.tell("edit.decided", decided)
    require("lcursor.edit.lsp").decided(decided)
  end)
  store.on_changed(notify.guarded(function(buf)
    if buf then
      keys.sync(buf)
    end
  end))
  keys.is_stoppable = function(buf)
    return #M.running(buf) > 0
  end
  local group = api.nvim_create_augroup("lcursor.edit", {})
  api.nvim_create_autocmd("BufUnload", {
    group = group,
    callback = notify.guarded(function(event)
      local found = M.running(event.buf)
      for _, run in ipairs(found) do
        M.stop_run(run)
      end
      if #found > 0 then
        local name = vim.fn.fnamemodify(api.nvim_buf_get_name(event.buf), ":t")
        notify.info(("the edit was stopped: %s was closed or read again"):format(name))
      end
    end),
  })
end

---@return boolean whether there may be edits; tells where not
function M.is_on()
  local is_on = requests.is_enabled("edit", "edits are")
  if is_on then
    M.start()
  end
  return is_on
end

--- The edits that run.
---@param buf? integer that are about this buffer; nil: all
---@return lcursor.EditRun[] the oldest first
function M.running(buf)
  local found = {}
  for _, run in pairs(runs) do
    if not buf or run.buf == buf then
      table.insert(found, run)
    end
  end
  table.sort(found, function(one, other)
    return one.id < other.id
  end)
  return found
end

---@param run lcursor.EditRun
function M.stop_run(run)
  if run.is_stopping then
    return
  end
  run.is_stopping = true
  look.stop(run.id)
  if requests.tell("edit.stop", { id = run.id }) then
    running.stopping(run.view)
    finish_later(run)
  else
    finish(run, "stopped")
  end
end

--- Stop the edits of this buffer; where there is none, all.
---@return integer how many were stopped
function M.stop()
  local found = M.running(api.nvim_get_current_buf())
  found = #found > 0 and found or M.running()
  for _, run in ipairs(found) do
    M.stop_run(run)
  end
  return #found
end

---@param msg lcursor.EditProposed
---@return boolean whether a hunk of it is on the screen
local function is_seen(msg)
  for _, file in ipairs(msg.files) do
    local buf = vim.fn.bufnr("^" .. vim.fn.escape(file.path, "\\*?[{") .. "$")
    local win = buf > 0 and vim.fn.bufwinid(buf) or -1
    if win > 0 and #file.changes > 0 then
      local row = file.changes[1].first_row + 1
      if row >= vim.fn.line("w0", win) and row <= vim.fn.line("w$", win) then
        return true
      end
    end
  end
  return false
end

--- Take a proposal, and say what it is.
---@param msg lcursor.EditProposed
---@param instead? string key of a turn for the same edit
---@return lcursor.EditTurn
function M.take(msg, instead)
  M.start()
  local turn = store.propose(msg, instead)
  local text = words.proposal(msg)
  if not is_seen(msg) then
    text = text .. "; :LCursor hunks lists them"
  end
  notify.info(text)
  status.emit("LCursorEditProposed", { turn = msg.turn, files = #msg.files })
  return turn
end

---@param run lcursor.EditRun
---@return fun(): boolean
local function runs_still(run)
  return function()
    return runs[run.id] == run
  end
end

---@type table<string, fun(run: lcursor.EditRun, params: table)>
local HEAR = {}

HEAR["edit.started"] = function(run, params)
  running.started(run.view, params)
end

HEAR["edit.progress"] = function(run, params)
  running.progress(run.view, params)
end

HEAR["edit.delta"] = function(run, params)
  running.delta(run.view, params)
end

HEAR["edit.proposed"] = function(run, params)
  run.instead = M.take(params, run.instead).key
end

HEAR["edit.planned"] = function(run, params)
  free.when("the plan", runs_still(run), function()
    run.window = require("lcursor.edit.plan").open(params, function(dropped)
      run.window = nil
      if not dropped then
        return M.stop_run(run)
      end
      requests.tell("edit.carry_out", { id = run.id, dropped = dropped })
    end)
  end)
end

HEAR["edit.question"] = function(run, params)
  free.when("a question", runs_still(run), function()
    run.window = require("lcursor.edit.choose").open(params, function(choice)
      run.window = nil
      requests.tell("edit.choose", { id = run.id, choice = choice })
    end)
  end)
end

HEAR["edit.look"] = function(run, params)
  if not run.is_stopping then
    look.look(params, function(servers)
      requests.tell("edit.looked", { id = run.id, look = params.look, servers = servers })
    end)
  end
end

HEAR["edit.message"] = function(run, params)
  if run.answered then
    run.answered(params)
  end
end

HEAR["edit.done"] = function(run, params)
  local message = params.message
  finish(run, params.reason)
  if message == "" or params.reason == "failed" then
    return -- an error was told
  elseif params.reason == "refused" then
    notify.warn("nothing was changed: " .. message)
  else
    notify.info(message)
  end
end

HEAR["error"] = function(run)
  finish(run, "failed")
end

---@class (exact) lcursor.EditStart
---@field what lcursor.EditWhat
---@field buf? integer that it is about, where it is one
---@field first? integer
---@field last? integer
---@field instruction? string
---@field model? string
---@field instead? string
---@field answered? fun(params: table)

--- Ask for an edit of any kind, and follow it to its end.
---@param method string
---@param params table its fields but the id
---@param how lcursor.EditStart
---@return lcursor.EditRun? nil where nothing could be sent
function M.begin(method, params, how)
  ---@type lcursor.EditRun
  local run = {
    id = 0,
    what = how.what,
    buf = how.buf,
    view = running.open(how.buf, how.first or 0, how.last or 0, how.instruction),
    instruction = how.instruction or "",
    model = how.model or "",
    instead = how.instead,
    answered = how.answered,
    is_stopping = false,
    traces = remember_all(params.buffers or {}),
  }
  local id = requests.follow(method, params, function(name, answer)
    if runs[run.id] == run and HEAR[name] then
      HEAR[name](run, answer)
    end
  end)
  if not id then
    running.close(run.view)
    forget(run.traces)
    return nil
  end
  run.id = id
  runs[id] = run
  if run.buf then
    keys.sync(run.buf)
    colours.prepare(run.buf)
  end
  tell_status()
  return run
end

return M
