-- `:LCursor agent`.

--- Return a command that calls a function of the agent.
---@return fun(command: lcursor.CommandCall)
local function call(name)
  return function(command)
    require("lcursor.agent")[name](command.text)
  end
end

---@param policy? string
---@return fun(command: lcursor.CommandCall)
local function start(policy)
  return function(command)
    local task, options = command.text, { policy = policy, range = command.range }
    while true do
      local name, value, rest = task:match("^(%l+)=(%S*)%s*(.*)$")
      if name ~= "policy" and name ~= "model" and name ~= "n" then
        break
      end
      options[name], task = name == "n" and (tonumber(value) or 0) or value, rest
    end
    options.task = task
    require("lcursor.agent").call(options)
  end
end

--- Choose a model; more than one word is a task that begins with "model".
local function model(command)
  if #command.args > 1 then
    return start()({ text = "model " .. command.text, range = command.range })
  end
  require("lcursor.agent").model(command.text)
end

local function fix(command)
  local range = command.range
  require("lcursor.agent").fix(command.text, range and { range[1] - 1, range[2] } or nil)
end

---@param lead string
---@param rest string
---@return string[]
local function options(lead, rest)
  local all = { "policy=plan", "policy=ask", "policy=auto", "policy=full", "n=4" }
  for _, name in ipairs(require("lcursor.agent").models()) do
    table.insert(all, "model=" .. name)
  end
  return vim.tbl_filter(function(word)
    return not rest:find("%S+%s") and lead ~= "" and vim.startswith(word, lead)
  end, all)
end

---@param lead string
---@param rest string
---@return string[]
local function models(lead, rest)
  return vim.tbl_filter(function(name)
    return rest == "" and vim.startswith(name, lead)
  end, require("lcursor.agent").models())
end

-- stylua: ignore
---@type lcursor.Noun
return {
  text = "Agents: |lcursor-agent|. `:LCursor agent {task}` starts one.",
  default = "start",
  is_free = true,
  is_enabled = function()
    return require("lcursor.agent").is_on()
  end,
  verbs = {
    { "start [task]", "Work on a task, on the lines of a range; `policy=ask` or `model=codex` "
      .. "before the task set those of this run, `n=4` makes four attempts at once.", start(),
      complete = options },
    { "plan [task]", "The same, but show a plan first.", start("plan") },
    { "fix [task]", "Fix the diagnostics of the current line or of a range, else the current "
      .. "entry of the quickfix list.", fix },
    { "say [text]", "Send a message to the agent.", call("say") },
    { "model [name]", "Choose the model, or the agent of someone else, that works on the next "
      .. "tasks.", model, complete = models },
    { "open", "Open the window of the agent.", call("open") },
    { "list", "List the runs of the project.", call("list") },
    { "compare", "Compare the attempts at a task, and show the hunks of one.", call("compare") },
    { "fork", "Begin another run after the step at the cursor.", call("fork") },
    { "queue", "Work on failing tests, diagnostics and comments with `TODO(agent)` while the "
      .. "machine is idle; then list the changes with which the tests pass.", call("queue") },
    { "resume", "Continue the run that was stopped or interrupted last.", call("resume") },
    { "escalate", "Give the task of the last run to `agent.escalate_model`.", call("escalate") },
    { "stop", "Stop the agent.", call("stop") },
  },
}
