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
    local text = command.text
    local typed, task = text:match("^policy=(%S*)%s*(.*)$")
    require("lcursor.agent").call({
      task = typed and task or text,
      policy = typed or policy,
      range = command.range,
    })
  end
end

local function fix(command)
  local range = command.range
  require("lcursor.agent").fix(command.text, range and { range[1] - 1, range[2] } or nil)
end

---@param lead string
---@param rest string
---@return string[]
local function policies(lead, rest)
  local all = { "policy=plan", "policy=ask", "policy=auto", "policy=full" }
  return vim.tbl_filter(function(word)
    return rest == "" and lead ~= "" and vim.startswith(word, lead)
  end, all)
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
    { "start [task]", "Work on a task, on the lines of a range; `policy=ask` before the task sets "
      .. "the policy of this run.", start(), complete = policies },
    { "plan [task]", "The same, but show a plan first.", start("plan") },
    { "fix [task]", "Fix the diagnostics of the current line or of a range, else the current "
      .. "entry of the quickfix list.", fix },
    { "say [text]", "Send a message to the agent.", call("say") },
    { "open", "Open the window of the agent.", call("open") },
    { "list", "List the runs of the project.", call("list") },
    { "resume", "Continue the run that was stopped or interrupted last.", call("resume") },
    { "stop", "Stop the agent.", call("stop") },
  },
}
