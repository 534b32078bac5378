-- The list of a project's runs, those of other Neovims too. What a run of this Neovim does, what it
-- has changed, and what it waits for is shown while the list is open.

local ago = require("lcursor.text").ago
local attempts = require("lcursor.agent.attempts")
local buffers = require("lcursor.editor.buffers")
local follow = require("lcursor.agent.follow")
local format = require("lcursor.agent.format")
local list = require("lcursor.ui.list")
local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local sessions = require("lcursor.conversation.sessions")
local short = require("lcursor.text").short
local winbar = require("lcursor.agent.winbar")
local window = require("lcursor.conversation.window")

local M = {}

local MAX_TASK = 60
local MAX_STEP = 40
local REDRAW_MS = 50
local GROUPS = {
  done = "LCursorAgentDone",
  failed = "LCursorAgentFailed",
  waiting = "LCursorAgentAsks",
  running = "LCursorAgentBusy",
}

---@type lcursor.List? the one that was opened last
local shown
local is_due = false

--- Return what a run of this Neovim does now, and what it has reached.
---@param run lcursor.AgentRun
---@return string
local function now_of(run)
  local words, at = {}, run.status
  local step = vim.iter(run.entries):rfind(function(entry)
    return entry.step ~= nil
  end)
  if step then
    table.insert(words, short(format.step_line(step.step), MAX_STEP))
  end
  if at and at.added + at.removed > 0 then
    table.insert(words, ("+%d −%d"):format(at.added, at.removed))
  end
  table.insert(words, run.tests)
  return table.concat(words, " · ")
end

---@param row table fields of `AgentRow`
---@return lcursor.Cells
local function cells_of(row)
  local run = sessions.of_key("agent", row.run)
  local state, group = row.state, nil
  if run and run.state ~= "preparing" then
    state, group = winbar.state_of(run)
  end
  group = group or GROUPS[state]
  local steps = run and run.status and run.status.steps or row.steps
  local now = run and now_of(run) or ""
  return {
    { run and run.id and "* " or "  ", "LCursorChatTokens" },
    { ("%-10s  "):format(state), group or "LCursorChatNote" },
    { ("%-10s"):format(ago(os.time() - row.at_s)), "LCursorChatNote" },
    { ("%3d  "):format(steps), "LCursorChatNote" },
    { now ~= "" and now .. "  " or "", "LCursorChatNote" },
    { attempts.name(row.attempt) .. short(row.task, MAX_TASK), "LCursorChatTitle" },
  }
end

--- Show soon how the runs are now, if the list is open.
local function refresh()
  if is_due or not list.is_open(shown) then
    return
  end
  is_due = true
  notify.later(REDRAW_MS, function()
    is_due = false
    local is_known = vim.iter(winbar.running()):all(function(run)
      return run.key == ""
        or vim.iter(shown.items or {}):any(function(row)
          return row.run == run.key
        end)
    end)
    if is_known then
      list.draw(shown)
    else
      list.load(shown)
    end
  end)
end

--- Show a run, as it is here or as the host knows it.
---@param key string "last" for the newest one of the project
---@param path string absolute
---@param continues boolean whether it is continued
function M.show(key, path, continues)
  local run = sessions.of_key("agent", key)
  if not run or (continues and not run.id) then
    if not run then
      run = follow.new("", path)
      run.key = key ~= "last" and key or ""
      table.insert(run.entries, 1, { kind = "task", text = "", mark = 0 })
    end
    if not follow.resume(run, continues) then
      return
    end
  end
  window.open(run, {})
end

--- List the runs of the current project.
function M.open()
  local path = buffers.here()
  local function show(continues)
    return function(row)
      M.show(row.run, path, continues)
    end
  end
  shown = list.open({
    name = "agents",
    cells = cells_of,
    head = function(rows)
      return many(#rows, "run") .. " of this project"
    end,
    load = function(done)
      requests.ask("agent.list", { path = path }, function(listed)
        done(listed.runs)
      end)
    end,
    empty = "no runs yet; :LCursor agent {task} starts one",
    keys = {
      { "<CR>", "show", show(false), closes = true },
      { "r", "resume", show(true), closes = true },
      { "R", "refresh", list.load, on = "list" },
    },
  })
end

winbar.on_drawn(refresh)

return M
