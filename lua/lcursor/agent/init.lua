-- The agent: starts runs, and opens them. The rest of the plugin uses this module.

local attachments = require("lcursor.editor.attachments")
local attempts = require("lcursor.agent.attempts")
local buffers = require("lcursor.editor.buffers")
local config = require("lcursor.config")
local diagnostics = require("lcursor.editor.diagnostics")
local entries = require("lcursor.conversation.entries")
local follow = require("lcursor.agent.follow")
local input = require("lcursor.editor.input")
local list = require("lcursor.agent.list")
local models = require("lcursor.agent.models")
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local sessions = require("lcursor.conversation.sessions")
local winbar = require("lcursor.agent.winbar")
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api
local POLICIES = { "plan", "ask", "auto", "full" }
local CALL_OPTS = vim.split("task policy model n range context path window enter", " ")
local MAX_FOLLOWING = 20 -- lines of a quickfix list that belong to an entry

---@class (exact) lcursor.AgentCall: lcursor.ConversationOpts
---@field task? string nil asks for it
---@field policy? "plan"|"ask"|"auto"|"full" instead of the option agent.policy
---@field model? string
---@field n? integer how many attempts are made, at most 8
---@field range? integer[] first and last line of the current buffer to add, from 1
---@field context? string text to add
---@field path? string absolute: of a file or folder of the project

--- Whether agents may run; reports it if not.
---@return boolean
function M.is_on()
  return requests.is_enabled("agent", "the agent is")
end

---@param opts lcursor.AgentCall
---@return string? nil if something must not be sent, which was reported
local function context_of(opts)
  local range = opts.range
  if not range and not opts.task and api.nvim_get_mode().mode:find("^[vV\22]") then
    range = { vim.fn.line("v"), vim.fn.line(".") }
    table.sort(range)
    vim.cmd("normal! \27")
  end
  if not range then
    return opts.context or ""
  end
  local part = attachments.range(api.nvim_get_current_buf(), range[1] - 1, range[2])
  local texts = part and { opts.context, part.name .. "\n" .. part.text }
  return texts and vim.iter(texts):join("\n\n") or nil
end

--- `agent()` of the Lua API.
---@param opts lcursor.AgentCall
function M.call(opts)
  for name in pairs(opts) do
    if not vim.list_contains(CALL_OPTS, name) then
      local text = "agent(): unknown option %s; see :help lcursor.agent()"
      return notify.warn(text:format(tostring(name)))
    end
  end
  if opts.policy and not vim.list_contains(POLICIES, opts.policy) then
    local text = "there is no policy %s. Use one of %s"
    return notify.warn(text:format(opts.policy, table.concat(POLICIES, ", ")))
  end
  if opts.n and not (opts.n >= 1 and opts.n <= attempts.MAX and opts.n % 1 == 0) then
    return notify.warn(("n is a number from 1 to %d"):format(attempts.MAX))
  end
  local context, path = context_of(opts), opts.path or buffers.here()
  if not context or not M.is_on() then
    return
  end
  local function start(task)
    if not task or not task:find("%S") then
      return
    end
    local count = opts.n or 1
    local group = count > 1 and ("%d-%d"):format(os.time(), vim.uv.hrtime()) or ""
    local run
    for attempt = 1, count do
      run = follow.start({
        task = vim.trim(task),
        path = path,
        context = context,
        policy = opts.policy or "",
        model = opts.model or models.current(),
        group = group,
        attempt = count > 1 and attempt or 0,
      })
      if not run then
        return
      end
    end
    if count > 1 then
      return list.open()
    end
    window.open(run, { window = opts.window, enter = opts.enter })
  end
  if opts.task and opts.task:find("%S") then
    return start(opts.task)
  end
  input.open({ title = "task of the agent", path = path }, start)
end

--- Return the entry of the quickfix list that is current, with the lines around it that belong to
--- no file.
---@return string? name and line
---@return string? text
local function failure()
  local in_list = vim.bo.buftype == "quickfix"
  local found = vim.fn.getqflist({ idx = 0, items = 0 })
  local at = in_list and api.nvim_win_get_cursor(0)[1] or found.idx
  while found.items[at] and found.items[at].valid == 0 do
    at = at + 1
  end
  local item = found.items[at]
  if not item then
    return nil
  end
  local lines = { item.text }
  for by = -1, 1, 2 do
    for i = at + by, at + by * MAX_FOLLOWING, by do
      local other = found.items[i]
      if not other or other.valid == 1 then
        break
      end
      table.insert(lines, by < 0 and 1 or #lines + 1, other.text)
    end
  end
  local name = vim.fn.fnamemodify(api.nvim_buf_get_name(item.bufnr), ":.")
  return ("%s:%d"):format(name, item.lnum), table.concat(lines, "\n")
end

--- Start a run that fixes the diagnostics of the current line or of a range, else the current entry
--- of the quickfix list.
---@param task string what follows "fix"; "" for a task that names them
---@param range? integer[] first row and the one after the last
function M.fix(task, range)
  local is_list = vim.bo.buftype == "quickfix"
  local context = not is_list and diagnostics.problems(range) or nil
  local where
  if context then
    local row = range and range[1] + 1 or api.nvim_win_get_cursor(0)[1]
    where = ("%s:%d"):format(vim.fn.fnamemodify(api.nvim_buf_get_name(0), ":."), row)
  else
    where, context = failure()
  end
  if not context and task == "" then
    return notify.info("this line has no diagnostics, and the quickfix list has no entry")
  end
  M.call({
    task = task ~= "" and "fix " .. task or ("Fix the problem at %s"):format(where),
    context = context and ("%s\n%s"):format(where, context) or nil,
  })
end

--- Return the run of the current buffer, else the one used last.
---@return lcursor.AgentRun?
function M.current()
  return sessions.current("agent")
end

--- Open the window of the run that was used last, or of the newest one of the project.
function M.open()
  local run = M.current()
  if run then
    return window.open(run, {})
  end
  list.show("last", buffers.here(), false)
end

--- Continue the run that was used last, or the newest one of the project.
function M.resume()
  local run = M.current()
  list.show(run and run.key ~= "" and run.key or "last", buffers.here(), true)
end

--- Give the task of the run that was used last to the model for tasks that others do not solve.
function M.escalate()
  local name, run = config.get().agent.escalate_model, M.current()
  if name == "" then
    return notify.info("no model is named in agent.escalate_model")
  elseif not run or run.id or run.task == "" then
    return notify.info(run and run.id and "the agent still runs" or "no run has ended here")
  end
  M.call({ task = run.task, context = run.entries[1].context, path = run.path, model = name })
end

--- Compare the attempts of the group that was used last.
function M.compare()
  attempts.compare(M.current())
end

--- Start the queue of tasks, or list what it has reached.
function M.queue()
  if M.is_on() then
    require("lcursor.agent.queue").open()
  end
end

--- Fork the current run after the step at the cursor, by default after its last one. A message
--- continues the new run.
function M.fork()
  local run = M.current()
  if not run or run.key == "" then
    return notify.info("no run to fork; :LCursor agent list shows them")
  end
  local is_here = run.buf == vim.api.nvim_get_current_buf()
  local entry = is_here and entries.at_cursor(run) or nil
  if not (entry and entry.step) then
    entry = vim.iter(run.entries):rfind(function(other)
      return other.step ~= nil
    end)
  end
  if not entry then
    return notify.info("this run has no step yet")
  end
  local asked = { run = run.key, step = entry.step.number, path = run.path }
  requests.ask("agent.fork", asked, function(answer)
    list.show(answer.run, run.path, false)
  end)
end

--- Send a message to the current run.
---@param text string
function M.say(text)
  local run = M.current()
  if not run then
    return notify.info("no agent runs; :LCursor agent {task} starts one")
  end
  follow.say(run, text)
end

--- Stop the current run, or the only one.
function M.stop()
  local running = winbar.running()
  local run = M.current()
  run = run and run.id and run or running[1]
  if not run then
    return notify.info("no agent runs")
  end
  follow.stop(run)
end

--- Choose the model or the agent of someone else that works on the next tasks.
---@param name string "" asks for it
function M.model(name)
  if name ~= "" then
    return models.use(name)
  end
  models.choose()
end

--- Return the names of models and agents that may be typed.
---@return string[]
function M.models()
  return models.names()
end

--- List the runs of the project.
function M.list()
  list.open()
end

return M
