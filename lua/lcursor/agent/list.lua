-- The list of a project's runs, those of other Neovims too.

local ago = require("lcursor.text").ago
local buffers = require("lcursor.editor.buffers")
local follow = require("lcursor.agent.follow")
local many = require("lcursor.text").many
local requests = require("lcursor.host.requests")
local sessions = require("lcursor.conversation.sessions")
local short = require("lcursor.text").short
local ui_list = require("lcursor.ui.list")
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
  local opened = ui_list.open("agents")
  local function load()
    requests.ask("agent.list", { path = path }, function(listed)
      local cells = vim.tbl_map(cells_of, listed.runs)
      local head = many(#cells, "run") .. " of this project"
      if #cells == 0 then
        cells = { { { "  no runs yet; :LCursor agent {task} starts one", "LCursorChatNote" } } }
      end
      ui_list.fill(opened, cells, listed.runs, head, "<CR> show, r resume, R refresh, q close")
    end)
  end
  local function on_row(continues)
    return function()
      local row = ui_list.here(opened)
      if row then
        ui_list.close(opened)
        M.show(row.run, path, continues)
      end
    end
  end
  ui_list.map(opened, { ["<CR>"] = on_row(false), r = on_row(true), R = load })
  ui_list.fill(opened, { { { "  asking …", "LCursorChatNote" } } }, {}, "runs", nil)
  load()
end

return M
