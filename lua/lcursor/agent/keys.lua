-- What the keys of a run's buffer do.

local code_window = require("lcursor.editor.code_window")
local context = require("lcursor.editor.context")
local decide = require("lcursor.agent.decide")
local entries = require("lcursor.conversation.entries")
local follow = require("lcursor.agent.follow")
local list = require("lcursor.agent.list")
local notify = require("lcursor.ui.notify")
local sessions = require("lcursor.conversation.sessions")
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api

--- Approve the plan at the cursor, or send the draft.
---@param run lcursor.AgentRun
local function send(run)
  local entry = decide.here(run)
  if entry and not entry.ask then
    vim.cmd.stopinsert()
    return decide.approve_plan(run, entry)
  end
  local text = entries.is_loaded(run) and entries.text(run, entries.draft(run)) or ""
  if text == "" then
    return notify.info("nothing to send: write below the last heading")
  end
  vim.cmd.stopinsert()
  entries.set_draft(run, "")
  follow.say(run, text)
end

local function stop(run)
  if not follow.stop(run) and api.nvim_get_mode().mode:find("^i") then
    vim.cmd.stopinsert()
  end
end

-- stylua: ignore
---@type table<string, fun(run: lcursor.AgentRun)>
local ACTIONS = {
  send = send,
  send_insert = send,
  stop = stop,
  approve = function(run) decide.approve(run, "once") end,
  approve_run = function(run) decide.approve(run, "run") end,
  reject = decide.reject,
  change = decide.change,
  next_waiting = decide.next_waiting,
  jump = function(run)
    local root = context.repository(run.path)
    code_window.follow_name({ root or "", vim.fs.dirname(run.path) })
  end,
  list = list.open,
  close = window.close,
  help = window.help,
}

--- Do what a key stands for, in the current run.
---@param action string
function M.press(action)
  local run = sessions.current("agent")
  if not run then
    return notify.info("no agent runs; :LCursor agent {task} starts one")
  end
  ACTIONS[action](run)
end

return M
