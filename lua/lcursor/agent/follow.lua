-- Follows runs: starts, resumes and stops them, sends messages to them, shows what the host sends.

local attempts = require("lcursor.agent.attempts")
local buffer = require("lcursor.agent.buffer")
local buffers = require("lcursor.editor.buffers")
local config = require("lcursor.config")
local entries = require("lcursor.conversation.entries")
local format = require("lcursor.agent.format")
local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")
local numbers = require("lcursor.text.numbers")
local requests = require("lcursor.host.requests")
local sessions = require("lcursor.conversation.sessions")
local short = require("lcursor.text").short
local status = require("lcursor.host.status")
local ui = require("lcursor.ui.window")
local winbar = require("lcursor.agent.winbar")
local window = require("lcursor.conversation.window")

local M = {}

local uv = vim.uv
local MAX_TITLE = 40

---@alias lcursor.AgentState
---| "preparing"|"running"|"waiting"|"checking"|"done"|"stuck"|"failed"|"stopped"

---@class (exact) lcursor.AgentRun: lcursor.Conversation
---@field id? integer of the request that is followed; nil if the run does not run here
---@field task string
---@field policy string
---@field sandbox string "" until the host has opened it
---@field dialect string of the model's calls
---@field state lcursor.AgentState
---@field is_stopping boolean
---@field tests? string how its tests ended, if they ran
---@field model string "" until the host has opened it
---@field group string of the runs that attempt the same task; "" for a run of its own
---@field attempt integer its number in the group, from 1; 0 for a run of its own
---@field ended? fun(done: table) as in lcursor.AgentStart
---@field status? table fields of `agent.status`
---@field status_ms integer vim.uv.now() when that came
---@field plan_number? integer of the step that is a plan
---@field thought? string the last one of the model
---@field said? string the message with which it is continued, until the host has stored it
---@field is_replayed boolean the host is about to send what is not shown yet
---@field is_shown boolean it is only shown, not continued

--- Tell the user about a run, unless its last lines are on the screen.
---@param run lcursor.AgentRun
---@param row integer
---@param show fun(text: string, hint?: string)
---@param text string
---@param hint string
local function report(run, row, show, text, hint)
  if not run.buf or not window.is_visible(run, row) then
    show(text, hint)
  end
end

---@param number integer
---@return lcursor.AgentEntry?
local function step_of(run, number)
  for i = #run.entries, 1, -1 do
    local step = run.entries[i].step
    if step and step.number == number then
      return run.entries[i]
    end
  end
end

--- Close a run of which nothing is known.
local function discard(run)
  local buf = run.buf
  sessions.remove(run)
  run.buf = nil
  if buf then
    ui.close_all(buf)
    vim.api.nvim_buf_delete(buf, { force = true })
  end
  winbar.draw(run)
end

--- End what is not finished: steps, questions, a plan.
local function end_entries(run)
  for _, entry in ipairs(run.entries) do
    local step = entry.step
    local is_text = entry.kind == "plan" or entry.kind == "form"
    local is_waiting = entry.ask or (is_text and entry.is_open)
    if is_waiting or (step and step.state == "running") then
      entry.ask, entry.is_open = nil, false
      if step then
        step.state, step.result = "rejected", is_waiting and "" or "stopped"
      end
      entries.show(run, entry)
    end
  end
end

--- Return how another model is asked if a task was not solved; none if the user named none.
---@param run lcursor.AgentRun
---@param done table fields of `agent.done`
---@return string[]
local function escalation(run, done)
  local name = config.get().agent.escalate_model
  local has_failed = run.tests == "tests failed" or done.state == "stuck" or done.state == "failed"
  if name == "" or name == run.model or done.is_checked or not has_failed then
    return {}
  end
  return { "", (":LCursor agent escalate gives the task to %s"):format(name) }
end

--- Put the message with which a run was to be continued back into the draft.
---@param run lcursor.AgentRun
local function return_said(run)
  if run.said and entries.is_loaded(run) then
    entries.set_draft(run, vim.trim(run.said .. "\n\n" .. entries.draft_text(run)))
  end
  run.said = nil
end

---@param run lcursor.AgentRun
---@param done table fields of `agent.done`
local function finish(run, done)
  requests.forget(run.id)
  run.id, run.state, run.is_stopping = nil, done.state, false
  if run.is_replayed and run.task == "" then
    return discard(run) -- there is no such run, or another Neovim executes it
  end
  end_entries(run)
  buffer.end_thought(run)
  return_said(run)
  local last = run.entries[#run.entries - 1]
  if last and last.kind == "thought" and vim.startswith(vim.trim(done.message), last.text) then
    entries.remove(run, last) -- a foreign agent has written its message already
  end
  local tests = done.is_checked and "tests passed" or run.tests
  local at, facts = run.status, {}
  if at then
    facts[1] = at.added + at.removed > 0 and ("+%d −%d lines"):format(at.added, at.removed) or nil
    table.insert(facts, many(at.steps, "step"))
    table.insert(facts, numbers.duration(at.seconds, true))
  end
  local lines = format.done(done, facts, tests or "tests not run")
  vim.list_extend(lines, escalation(run, done))
  local entry = buffer.add(run, { kind = "end", lines = lines })
  winbar.draw(run)
  local text = ("agent %s: %s"):format(done.state, short(run.task, MAX_TITLE))
  local row = run.buf and select(2, entries.rows(run, entry)) - 1 or 0
  if run.is_shown or not (run.ended or run.group ~= "") then
    report(run, row, notify.info, text, ":LCursor agent open shows it")
  end
  status.emit("LCursorAgentDone", {
    buf = run.buf,
    run = run.key,
    state = done.state,
    turn = done.turn,
  })
  local ended = run.ended
  run.ended = nil -- a continued run is one like any other
  if ended and not run.is_shown then
    ended(done)
  elseif run.group ~= "" and not run.is_shown then
    attempts.update(run.group, run.path)
  elseif done.turn ~= "" and not run.is_shown then
    local turn = { turn = done.turn, paths = done.paths }
    require("lcursor.edit.edits").resume(turn, done.root, function(msg)
      vim.list_extend(entry.lines, format.files(msg.files))
      entry.has_files = #msg.files > 0
      entries.show(run, entry)
    end)
  end
end

--- End a run without `agent.done`.
local function fail(run, message)
  finish(run, {
    state = "failed",
    message = message,
    turn = "",
    paths = {},
    is_checked = false,
  })
end

--- Say that a run waits for the user.
local function announce(run, entry, text)
  run.state = "waiting"
  winbar.draw(run)
  local row = run.buf and entries.rows(run, entry) or 0
  local title = ("the agent asks: %s"):format(short(text, MAX_TITLE))
  report(run, row, notify.info, title, ":LCursor agent open shows it")
  local ask = entry.ask or { command = "", why = entry.kind == "form" and "question" or "plan" }
  status.emit("LCursorAgentAsks", {
    buf = run.buf,
    run = run.key,
    command = ask.command,
    why = ask.why,
  })
end

---@type table<string, fun(run: lcursor.AgentRun, params: table)>
local HANDLERS = {}

HANDLERS["agent.started"] = function(run, params)
  run.key, run.task, run.policy = params.run, params.task, params.policy
  run.sandbox, run.dialect, run.model = params.sandbox, params.dialect, params.model
  run.group, run.attempt = params.group, params.attempt
  local said = run.said
  if run.is_replayed then -- steps follow, and then another such message
    run.is_replayed, said = false, nil
    if run.entries[1].text ~= params.task then
      run.entries[1].text = params.task
      if entries.is_loaded(run) then
        entries.render(run, entries.draft_text(run))
      end
    end
  end
  local words = { params.model, params.sandbox == "none" and "no sandbox" or params.sandbox }
  table.insert(words, params.policy ~= "auto" and params.policy or nil)
  table.insert(words, params.note ~= "" and params.note or nil)
  run.entries[1].note = table.concat(words, " · ")
  entries.show(run, run.entries[1])
  winbar.draw(run)
  if said then
    run.said = nil
    buffer.add(run, { kind = "user", text = said })
  end
end

--- Note how the user's tests ended, in a step of their own or at the end of the run.
---@param step table fields of `agent.step`
local function note_tests(run, step)
  local command = config.get().edit.test
  local is_test = step.kind == "command" and command ~= "" and command == step.target
  if is_test and step.state == "done" then
    run.tests = "tests passed earlier" -- files may have changed since
  elseif (is_test or step.kind == "finish") and step.state == "failed" then
    run.tests = "tests failed"
  elseif step.kind == "edit" and run.tests == "tests failed" and step.state == "done" then
    run.tests = "tests failed earlier"
  end
end

HANDLERS["agent.step"] = function(run, params)
  local entry = step_of(run, params.number)
  note_tests(run, params)
  if params.kind == "finish" then
    run.plan_number = params.state == "waiting" and params.number or run.plan_number
    if run.plan_number == params.number then
      return -- the plan is shown
    end
  end
  if not entry then
    buffer.add(run, { kind = "step", step = params })
    return winbar.draw(run)
  end
  entry.step = params
  if params.state ~= "waiting" then
    entry.ask = nil
  end
  entries.show(run, entry)
  winbar.draw(run)
end

HANDLERS["agent.asks"] = function(run, params)
  local entry = step_of(run, params.number)
  if not entry then
    local step = { number = params.number, kind = "command", target = params.command, text = "" }
    step.state, step.result, step.seconds = "waiting", "", 0
    entry = buffer.add(run, { kind = "step", step = step, ask = params })
  else
    entry.ask = params
    entries.show(run, entry)
  end
  announce(run, entry, params.command)
end

HANDLERS["agent.planned"] = function(run, params)
  local kind = params.is_question and "form" or "plan"
  local entry = buffer.add(run, { kind = kind, text = params.text, is_open = true })
  announce(run, entry, params.is_question and params.text or "approve the plan?")
end

HANDLERS["agent.delta"] = function(run, params)
  buffer.think(run, params.text, params.is_new)
end

HANDLERS["agent.said"] = function(run, params)
  buffer.add(run, { kind = "user", text = params.text })
end

HANDLERS["agent.status"] = function(run, params)
  run.status, run.status_ms, run.state = params, uv.now(), params.state
  winbar.draw(run)
end

HANDLERS["agent.done"] = finish

HANDLERS["error"] = function(run, params)
  if params.code == "host_died" or params.code == "command_unknown" then
    fail(run, params.message) -- after others comes `agent.done`
  end
end

---@param run lcursor.AgentRun
---@param method string
---@param params table its fields but the id
---@return boolean whether it was sent
local function follow(run, method, params)
  run.state, run.is_stopping, run.tests = "preparing", false, nil
  run.id = requests.follow(method, params, function(name, answer)
    local handler = HANDLERS[name]
    if run.id and handler then
      handler(run, answer)
    end
  end)
  winbar.draw(run)
  return run.id ~= nil
end

---@type lcursor.ConversationKind
local KIND = {
  name = "agent",
  is_parsed = false, -- longer than a chat: syntax/lcursor_agent.vim highlights it
  interval_ms = 1000,
  press = function(action)
    require("lcursor.agent.keys").press(action)
  end,
  stop = function(run)
    return M.stop(run)
  end,
  heading = buffer.heading,
  body = buffer.body,
  decorate = buffer.decorate,
  fold = format.fold,
  title = winbar.title,
  parts = winbar.parts,
  activity = winbar.activity,
  reloaded = function(run)
    entries.render(run, "")
  end,
  unloaded = function(run)
    run.buf = nil -- the run continues
  end,
}

--- Return a run without a buffer, which is current now.
---@param task string
---@param path string absolute
---@return lcursor.AgentRun
function M.new(task, path)
  ---@type lcursor.AgentRun
  local run = vim.tbl_extend("error", sessions.new(KIND, path), {
    task = task,
    policy = "",
    sandbox = "",
    dialect = "",
    model = "",
    group = "",
    attempt = 0,
    state = "preparing",
    is_stopping = false,
    status_ms = 0,
    is_replayed = false,
    is_shown = false,
  })
  sessions.add(run)
  return run
end

---@class (exact) lcursor.AgentStart
---@field task string
---@field path string absolute
---@field context string "" for none
---@field policy string "" for that of the settings
---@field model string "" for that of the settings
---@field group? string as in lcursor.AgentRun
---@field attempt? integer
---@field test? string the only failing test that it has to correct
---@field when_idle? boolean it begins on an idle machine
---@field ended? fun(done: table) called at the end, with the fields of `agent.done`, in place of a
--- message and hunks

--- Start a run.
---@param start lcursor.AgentStart
---@return lcursor.AgentRun? nil if nothing could be sent
function M.start(start)
  local run = M.new(start.task, start.path)
  run.policy, run.group, run.attempt = start.policy, start.group or "", start.attempt or 0
  run.ended = start.ended
  buffer.add(run, { kind = "task", text = start.task, context = start.context })
  local params = {
    task = start.task,
    path = start.path,
    context = start.context,
    policy = start.policy,
    model = start.model,
    group = run.group,
    attempt = run.attempt,
    test = start.test or "",
    when_idle = start.when_idle or false,
    buffers = start.when_idle and {} or buffers.unsaved(), -- they would be old by then
  }
  if not follow(run, "agent.start", params) then
    sessions.remove(run)
    return nil
  end
  return run
end

--- Continue a run, or only show it.
---@param run lcursor.AgentRun
---@param continues boolean
---@param said? string message for it
---@return boolean whether that was sent
function M.resume(run, continues, said)
  run.is_replayed, run.is_shown, run.said = true, not continues, said
  local seen = 0
  for _, entry in ipairs(run.entries) do
    local step = entry.step
    local is_over = step and (step.state == "done" or step.state == "failed")
    seen = is_over and math.max(seen, step.number) or seen
  end
  return follow(run, "agent.resume", {
    run = run.key ~= "" and run.key or "last",
    path = run.path,
    continues = continues,
    text = said or "",
    seen = seen,
  })
end

--- Send a message to a run, which is continued if it has ended.
---@param run lcursor.AgentRun
---@param text string
function M.say(run, text)
  if not run.id and run.key == "" then
    notify.info("this run never began; :LCursor agent {task} starts another one")
  elseif not run.id then
    if not M.resume(run, true, text) then
      return_said(run)
    end
  elseif requests.notify("agent.say", { id = run.id, text = text }) then
    buffer.add(run, { kind = "user", text = text })
  end
end

--- Stop a run.
---@param run lcursor.AgentRun
---@return boolean whether it was running
function M.stop(run)
  if run.id and not run.is_stopping then
    run.is_stopping = true
    if not requests.notify("agent.stop", { id = run.id }) then
      fail(run, "the Python host is not running")
    end
    winbar.draw(run)
  end
  return run.id ~= nil
end

return M
