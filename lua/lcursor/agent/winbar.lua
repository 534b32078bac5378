-- The winbar of a run: its task, the sandbox, how far it is, and what it is doing. What the
-- statusline says of all runs.

local attempts = require("lcursor.agent.attempts")
local buffer = require("lcursor.agent.buffer")
local numbers = require("lcursor.text.numbers")
local sessions = require("lcursor.conversation.sessions")
local short = require("lcursor.text").short
local status = require("lcursor.host.status")
local window = require("lcursor.conversation.window")

local M = {}

local uv = vim.uv
local BUSY_RANK = 9 -- of parts
local MAX_TITLE = 40
---@type fun()?
local on_drawn

---@return lcursor.AgentRun[] those that this Neovim follows
function M.running()
  return vim.tbl_filter(function(run)
    return run.id ~= nil
  end, sessions.all("agent"))
end

--- Return the seconds of work so far: the host sends them with each change of the status.
---@param run lcursor.AgentRun
---@return number
local function seconds_of(run)
  local is_working = run.id ~= nil and run.state ~= "waiting"
  return run.status.seconds + (is_working and (uv.now() - run.status_ms) / 1000 or 0)
end

---@param run lcursor.AgentRun
---@return string
function M.title(run)
  return attempts.name(run.attempt) .. short(run.task, MAX_TITLE)
end

--- Return what a run does, or how it ended.
---@param run lcursor.AgentRun
---@return string
---@return string? group of its highlight
function M.state_of(run)
  local waiting = #buffer.waiting(run)
  if waiting > 0 then
    return ("%d waiting"):format(waiting), "LCursorAgentAsks"
  elseif run.is_stopping then
    return "stopping"
  elseif run.state == "waiting" then
    return "waiting for the model" -- another run uses it
  elseif run.state == "checking" then
    return "looking for unneeded changes"
  end
  return run.state, run.state == "failed" and "LCursorAgentFailed" or nil
end

--- Return the parts of the winbar.
---@param run lcursor.AgentRun
---@return lcursor.WinbarPart[] in order; the lowest ranks are left out first
function M.parts(run)
  local parts, at = {}, run.status
  local function add(rank, text, group)
    table.insert(parts, { text = text, rank = rank, group = group, is_busy = rank == BUSY_RANK })
  end
  if run.policy == "full" then
    add(8, "full access", "LCursorAgentFull")
  elseif run.sandbox == "none" then
    add(8, "no sandbox", "LCursorAgentUnsafe")
  elseif run.sandbox ~= "" then
    add(2, run.sandbox)
  end
  if at and run.state ~= "preparing" then
    add(6, ("step %d/%d"):format(at.steps, at.max_steps))
    if at.context_tokens > 0 then
      local used, size = numbers.tokens(at.used_tokens), numbers.tokens(at.context_tokens)
      add(3, ("%s of %s"):format(used, size))
    end
    if at.added + at.removed > 0 then
      add(1, ("+%d −%d"):format(at.added, at.removed))
    end
  end
  if at then
    add(4, numbers.duration(seconds_of(run), true))
  end
  add(BUSY_RANK, M.state_of(run))
  return parts
end

--- Describe what is being done.
---@param run lcursor.AgentRun
---@return string? nil for nothing
function M.activity(run)
  local at, state = run.status, M.state_of(run)
  if not run.id then
    return nil
  end
  return at and ("%s, step %d/%d"):format(state, at.steps, at.max_steps) or run.state
end

---@return string for the statusline
local function status_text()
  local running, waiting = M.running(), 0
  for _, run in ipairs(running) do
    waiting = waiting + #buffer.waiting(run)
  end
  local name = #running > 1 and ("%d agents"):format(#running) or "agent"
  if #running == 0 then
    return ""
  elseif waiting > 0 then
    return name .. " waiting"
  end
  local at = #running == 1 and running[1].status
  return at and ("%s %d/%d"):format(name, at.steps, at.max_steps) or name
end

--- Draw the winbar of a run, and what the statusline says of all.
---@param run lcursor.AgentRun
function M.draw(run)
  window.draw(run)
  status.set_feature("agent", status_text())
  if on_drawn then
    on_drawn()
  end
end

--- Call a function whenever a run has changed.
---@param fn fun()
function M.on_drawn(fn)
  on_drawn = fn
end

return M
