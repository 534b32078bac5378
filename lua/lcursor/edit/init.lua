-- The edits that run: sends what is asked (ask.lua, apply_code.lua, commit.lua), follows each edit
-- to its end, stops it, and hands its proposals on.

local buffers = require("lcursor.editor.buffers")
local highlights = require("lcursor.ui.highlights")
local keys = require("lcursor.edit.keys")
local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")
local positions = require("lcursor.edit.positions")
local progress = require("lcursor.edit.progress")
local proposals = require("lcursor.edit.proposals")
local render = require("lcursor.edit.render")
local requests = require("lcursor.host.requests")
local status = require("lcursor.host.status")

local M = {}

local api = vim.api
-- After a stop, until `edit.done` is not waited for any more. Tests change it.
M.stop_ms = 1500

---@type table<integer, lcursor.EditRun>
local runs = {}
local is_started = false

--- Return the edits that run, the oldest first.
---@param buf? integer that are about this buffer; nil: all
---@return lcursor.EditRun[]
function M.running(buf)
  local found = vim.tbl_filter(function(run)
    return not buf or run.buf == buf
  end, vim.tbl_values(runs))
  table.sort(found, function(one, other)
    return one.id < other.id
  end)
  return found
end

--- Something began or ended: update the status line and the keys.
local function update(run)
  local count = vim.tbl_count(runs)
  local text = count == 0 and "" or count == 1 and "editing" or ("%d edits"):format(count)
  status.set_feature("edit", text)
  if run.buf then
    keys.sync(run.buf)
  end
end

local function release(run)
  progress.close(run)
  run.sent = {}
end

---@param reason string
local function finish(run, reason)
  if runs[run.id] ~= run then
    return
  end
  runs[run.id] = nil
  requests.forget(run.id)
  release(run)
  if run.window then
    buffers.after_command_window(run.window.close)
    run.window = nil
  end
  update(run)
  status.emit("LCursorEditDone", { id = run.id, buf = run.buf, reason = reason })
end

local function stop_run(run)
  if run.is_stopping then
    return
  end
  run.is_stopping = true
  if not requests.notify("edit.stop", { id = run.id }) then
    return finish(run, "stopped")
  end
  progress.draw(run)
  notify.later(M.stop_ms, function()
    finish(run, "stopped") -- though the host does not confirm it
  end)
end

--- Stop the edits of this buffer; where there are none, all.
---@return integer how many were stopped
function M.stop()
  local found = M.running(api.nvim_get_current_buf())
  found = #found > 0 and found or M.running()
  vim.iter(found):each(stop_run)
  return #found
end

local function on_unload(buf)
  local found = M.running(buf)
  vim.iter(found):each(stop_run)
  if #found > 0 then
    local name = vim.fn.fnamemodify(api.nvim_buf_get_name(buf), ":t")
    notify.info(("the edit was stopped: %s was closed or read again"):format(name))
  end
end

--- Say how an edit ended when its last hunk is decided.
---@param decided lcursor.EditDecided
local function report_end(decided)
  local proposal = proposals.get(decided.turn)
  if decided.is_undone or not proposal or proposal.is_hidden then
    return
  end
  local count = { accepted = 0, rejected = 0 }
  for _, part in ipairs(proposal.parts) do
    if proposals.is_pending(part) or proposals.open_in(part) > 0 then
      return
    elseif #part.hunks == 0 then -- the file was to be deleted or renamed
      count.rejected = count.rejected + 1
    end
    for _, hunk in ipairs(part.hunks) do
      count[hunk.state] = count[hunk.state] + 1
    end
  end
  local undo = "Undo: :LCursor edit undo"
  if count.accepted == 0 then
    notify.info(many(count.rejected, "hunk") .. " rejected")
  elseif count.rejected == 0 then
    notify.info(many(count.accepted, "hunk") .. " accepted", undo)
  else
    notify.info(("%d accepted, %d rejected"):format(count.accepted, count.rejected), undo)
  end
end

--- Begin to follow what becomes of hunks.
function M.start()
  if is_started then
    return
  end
  is_started = true
  highlights.apply()
  proposals.on_decided(function(decided)
    requests.notify("edit.decided", decided)
    require("lcursor.edit.error_count").on_decided(decided)
    report_end(decided)
  end)
  proposals.on_changed(notify.guarded(function(buf)
    if buf then
      keys.sync(buf)
    end
    keys.sync(api.nvim_get_current_buf())
  end))
  local on = notify.autocmds("edit")
  on("BufUnload", function(event)
    on_unload(event.buf)
  end)
  on("BufEnter", function(event)
    keys.sync(event.buf)
  end)
  on("BufFilePost", function(event)
    for _, renamed in ipairs(proposals.rename(event.buf)) do
      requests.notify("edit.renamed", renamed)
    end
  end)
end

--- Whether edits are enabled; warns where they are not.
---@return boolean
function M.is_on()
  local is_on = requests.is_enabled("edit", "edits are")
  if is_on then
    M.start()
  end
  return is_on
end

--- Describe a proposal in one line.
---@param msg lcursor.EditProposed
---@return string
function M.describe(msg)
  local hunks, failed = 0, {}
  for _, file in ipairs(msg.files) do
    hunks = hunks + math.max(#file.changes, 1)
    for _, check in ipairs(file.checks) do
      if not check.is_ok and not vim.list_contains(failed, check.name) then
        table.insert(failed, check.name)
      end
    end
  end
  local text = many(hunks, "hunk") .. " proposed"
  if #msg.files > 1 then
    text = ("%s in %d files"):format(text, #msg.files)
  end
  if msg.attempts > 1 then
    text = ("%s after %d attempts"):format(text, msg.attempts)
  end
  if msg.alternative > 1 then
    text = ("%s (alternative %d)"):format(text, msg.alternative)
  end
  if #failed > 0 then
    text = ("%s; not passed: %s"):format(text, table.concat(failed, ", "))
  end
  local note = msg.note:gsub("%s+", " ")
  return note ~= "" and ("%s. %s"):format(text, note) or text
end

---@param msg lcursor.EditProposed
---@return boolean whether the first hunk of a file is on the screen
local function is_visible(msg)
  return vim.iter(msg.files):any(function(file)
    local buf = buffers.find(file.path)
    local win = buf and vim.fn.bufwinid(buf) or -1
    local row = win > 0 and #file.changes > 0 and file.changes[1].first_row + 1
    return row and row >= vim.fn.line("w0", win) and row <= vim.fn.line("w$", win)
  end)
end

--- Show a proposal, and say what it is.
---@param msg lcursor.EditProposed
---@param instead? string key of a proposal for the same edit
---@param hint? string
---@return lcursor.EditProposal
function M.receive(msg, instead, hint)
  M.start()
  local proposal = proposals.propose(msg, instead)
  hint = hint or (not is_visible(msg) and ":LCursor hunk list shows them") or nil
  notify.info(M.describe(msg), hint)
  if api.nvim_get_mode().mode == "n" then
    require("lcursor.edit.hunks").reveal_first()
  end
  status.emit("LCursorEditProposed", { turn = msg.turn, files = #msg.files })
  return proposal
end

--- Open a window of an edit as soon as the user is in Normal mode.
---@param what string
---@param open fun(): { close: fun() }
local function open_window(run, what, open)
  buffers.when_normal(what, function()
    run.window = open()
  end, function()
    return runs[run.id] == run
  end)
end

---@type table<string, fun(run: lcursor.EditRun, params: table)>
local HANDLERS = {
  ["edit.proposed"] = function(run, params)
    local proposal = M.receive(params, run.instead, run.hint)
    run.instead = proposal.key
    if run.answered then
      run.answered(proposal)
    end
  end,
  ["edit.question"] = function(run, params)
    open_window(run, "a question", function()
      return require("lcursor.edit.pick_location").open(params, function(choice)
        run.window = nil
        requests.notify("edit.choose", { id = run.id, choice = choice })
      end)
    end)
  end,
  ["edit.message"] = function(run, params)
    if run.answered then
      run.answered(params)
    end
  end,
  ["edit.done"] = function(run, params)
    local message, reason = params.message, params.reason
    finish(run, reason)
    if message == "" or reason == "failed" then
      return -- an error was reported
    elseif reason == "rejected" then
      notify.warn("nothing was changed: " .. message)
    else
      notify.info(message)
    end
  end,
  error = function(run, err)
    finish(run, "failed")
    if err.code == "host_died" and not run.is_stopping then -- that report does not mention the edit
      notify.warn("the edit that was running is lost, request it again")
    end
  end,
}

for _, name in ipairs({ "started", "progress", "delta" }) do
  HANDLERS["edit." .. name] = progress[name]
end

--- Ask for an edit of any kind, and follow it to its end.
---@param method string
---@param params table its fields but the id
---@param start table fields of lcursor.EditRun
---@return lcursor.EditRun? nil where nothing could be sent
function M.begin(method, params, start)
  local defaults = { id = 0, instruction = "", model = "", is_stopping = false, sent = {} }
  local run = vim.tbl_extend("keep", start, defaults) --[[@as lcursor.EditRun]]
  progress.open(run)
  local bufs = { run.buf }
  for _, text in ipairs(params.buffers or {}) do
    bufs[#bufs + 1] = buffers.find(text.path)
  end
  run.sent = vim.tbl_map(positions.snapshot, bufs) -- a change of these texts finds its place later
  local id = requests.follow(method, params, function(name, answer)
    if runs[run.id] == run and HANDLERS[name] then
      HANDLERS[name](run, answer)
    end
  end)
  if not id then
    release(run)
    return nil
  end
  run.id = id
  runs[id] = run
  if run.buf then
    render.prepare(run.buf)
  end
  update(run)
  return run
end

return M
