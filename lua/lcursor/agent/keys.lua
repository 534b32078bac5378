-- What the keys of a run's buffer do. Those that decide about a question or a plan act only with
-- the cursor on its block.

local buffer = require("lcursor.agent.buffer")
local code_window = require("lcursor.editor.code_window")
local context = require("lcursor.editor.context")
local entries = require("lcursor.conversation.entries")
local follow = require("lcursor.agent.follow")
local format = require("lcursor.agent.format")
local input = require("lcursor.editor.input")
local keymaps = require("lcursor.editor.keymaps")
local list = require("lcursor.agent.list")
local models = require("lcursor.agent.models")
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local sessions = require("lcursor.conversation.sessions")
local winbar = require("lcursor.agent.winbar")
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api

--- Return what waits at the cursor.
---@param run lcursor.AgentRun
---@return lcursor.AgentEntry?
local function here(run)
  if api.nvim_get_current_buf() ~= run.buf then
    return nil
  end
  local entry = entries.at_cursor(run)
  return vim.list_contains(buffer.waiting(run), entry) and entry or nil
end

--- Return what waits at the cursor; reports it if there is nothing.
---@return lcursor.AgentEntry?
local function question(run)
  local entry = here(run)
  if not entry then
    local key = keymaps.shown("agent", "next_waiting", run.buf or 0)
    local hint = key and ("; %s goes to the next one"):format(key) or ""
    notify.info("nothing at the cursor waits for a decision" .. hint)
  end
  return entry
end

--- Send a decision, and show the step again.
---@param choice "once"|"run"|"reject"
---@param text string
local function decide(run, entry, choice, text)
  local ask = entry.ask
  if not ask then
    return -- the host decided it meanwhile, or the run ended
  end
  requests.notify("agent.decide", { id = run.id, ask = ask.ask, choice = choice, text = text })
  entry.ask = nil
  entry.step.state = choice == "reject" and "rejected" or "running"
  entry.step.target = choice ~= "reject" and text ~= "" and text or entry.step.target
  run.state = "running"
  entries.show(run, entry)
  winbar.draw(run)
end

--- Approve a plan as it is in the buffer now.
---@param run lcursor.AgentRun
---@param entry lcursor.AgentEntry
local function approve_plan(run, entry)
  local text = entries.text(run, entry)
  if text == "" then
    return notify.warn("the text is empty; reject it, or undo your change")
  end
  requests.notify("agent.approve_plan", { id = run.id, text = text })
  entry.is_open, entry.text, run.state = false, text, "running"
  entries.show(run, entry)
  winbar.draw(run)
end

--- Approve the command at the cursor, as it is in the buffer now.
---@param run lcursor.AgentRun
---@param choice "once"|"run"
local function approve(run, choice)
  local entry = question(run)
  if not entry then
    return
  elseif not entry.ask then
    return approve_plan(run, entry)
  end
  local command = format.command(buffer.lines(run, entry))
  if not command or not command:find("%S") then
    return notify.warn("the block of the command is damaged; undo your change")
  end
  local is_changed = command ~= format.command(format.ask(entry.step, entry.ask))
  decide(run, entry, choice, is_changed and command or "")
end

--- Reject what waits at the cursor, with the draft as the reason, or one that is asked for.
---@param run lcursor.AgentRun
local function reject(run)
  local entry = question(run)
  if not entry then
    return
  elseif not entry.ask then
    requests.notify("agent.approve_plan", { id = run.id, text = "" })
    entry.is_open = false
    entries.show(run, entry)
    return winbar.draw(run)
  end
  local draft = entries.draft_text(run)
  if draft ~= "" then
    entries.set_draft(run, "")
    return decide(run, entry, "reject", draft)
  end
  local opts = { title = "reason, for the model", path = run.path, may_be_empty = true }
  input.open(opts, function(text)
    if text then
      decide(run, entry, "reject", text)
    end
  end)
end

--- Edit the command at the cursor in its block.
---@param run lcursor.AgentRun
local function change(run)
  local entry = question(run)
  if not entry then
    return
  end
  local first, last = entries.rows(run, entry)
  local row = entry.ask and first + (entry.lead or 0) + 2 or math.min(first + 3, last - 1)
  local line = api.nvim_buf_get_lines(run.buf, row, row + 1, false)[1] or ""
  api.nvim_win_set_cursor(0, { row + 1, #line })
  vim.cmd("startinsert!")
end

--- Go to the next thing that waits, also in another run.
---@param run lcursor.AgentRun
local function next_waiting(run)
  local found = buffer.waiting(run)
  if #found == 0 then
    run = vim.iter(sessions.all("agent")):find(function(other)
      return #buffer.waiting(other) > 0
    end)
    found = run and buffer.waiting(run) or {}
  end
  if #found == 0 then
    return notify.info("nothing waits for a decision")
  end
  window.open(run, {})
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local target = vim.iter(found):find(function(entry)
    return entries.rows(run, entry) > row
  end) or found[1]
  vim.cmd("normal! m'")
  local first = entries.rows(run, target) + (target.ask and target.lead or 1) -- after a blank line
  api.nvim_win_set_cursor(0, { first + 1, 0 })
end

--- Approve the plan at the cursor, or send the draft.
---@param run lcursor.AgentRun
local function send(run)
  local entry = here(run)
  if entry and not entry.ask then
    vim.cmd.stopinsert()
    return approve_plan(run, entry)
  end
  local text = entries.is_loaded(run) and entries.draft_text(run) or ""
  if text == "" then
    return notify.info("nothing to send: write below the last heading")
  end
  vim.cmd.stopinsert()
  entries.set_draft(run, "")
  follow.say(run, text)
end

-- stylua: ignore
---@type table<string, fun(run: lcursor.AgentRun)>
local ACTIONS = {
  send = send,
  send_insert = send,
  approve = function(run) approve(run, "once") end,
  approve_run = function(run) approve(run, "run") end,
  reject = reject,
  change = change,
  next_waiting = next_waiting,
  jump = function(run)
    local root = context.repository(run.path)
    code_window.follow_name({ root or "", vim.fs.dirname(run.path) })
  end,
  model = models.choose,
  list = list.open,
}

--- Do what a key stands for, in the current run.
M.press = window.presser("agent", ACTIONS, "no agent runs; :LCursor agent {task} starts one")

return M
