-- The list of a project's runs, those of other Neovims too.

local ago = require("lcursor.text").ago
local buffers = require("lcursor.editor.buffers")
local follow = require("lcursor.agent.follow")
local list = require("lcursor.ui.list")
local many = require("lcursor.text").many
local requests = require("lcursor.host.requests")
local sessions = require("lcursor.conversation.sessions")
local short = require("lcursor.text").short
local window = require("lcursor.conversation.window")

local M = {}

local MAX_TASK = 60
local GROUPS = {
  done = "LCursorAgentDone",
  failed = "LCursorAgentFailed",
  waiting = "LCursorAgentAsks",
  running = "LCursorAgentBusy",
}

---@param row table fields of `AgentRow`
---@return lcursor.Cells
local function cells_of(row)
  local run = sessions.of_key("agent", row.run)
  local state = run and run.id and run.state or row.state
  return {
    { run and run.id and "* " or "  ", "LCursorChatTokens" },
    { ("%-10s"):format(state), GROUPS[state] or "LCursorChatNote" },
    { ("%-10s"):format(ago(os.time() - row.at_s)), "LCursorChatNote" },
    { ("%3d  "):format(row.steps), "LCursorChatNote" },
    { short(row.task, MAX_TASK), "LCursorChatTitle" },
  }
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
  list.open({
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

return M
