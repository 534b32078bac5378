-- The runs of this Neovim, and which one is current.

local M = {}

local api = vim.api

---@class (exact) lcursor.AgentRun
---@field number integer in this Neovim
---@field id? integer of the request that is followed; nil if the run does not run here
---@field key string "" until the host has created it
---@field task string
---@field path string absolute: of a file or folder of the project
---@field policy string
---@field sandbox string "" until the host has opened it
---@field dialect string of the model's calls
---@field state lcursor.AgentState
---@field is_stopping boolean
---@field tests? string how its tests ended, if they ran
---@field status? table fields of `agent.status`
---@field status_ms integer vim.uv.now() when that came
---@field plan_number? integer of the step that is a plan
---@field thought? string the last one of the model
---@field entries lcursor.AgentEntry[] oldest first
---@field buf? integer
---@field draft integer extmark of the draft
---@field is_waiting boolean entries are written later
---@field said? string that is sent once the run has been resumed
---@field is_replayed boolean the host is about to send all of it again
---@field is_shown boolean it is only shown, not continued

---@alias lcursor.AgentState "preparing"|"running"|"waiting"|"done"|"stuck"|"failed"|"stopped"

---@type lcursor.AgentRun[] oldest first
local runs = {}
---@type lcursor.AgentRun? the one used last
local current
local count = 0

---@param task string
---@param path string
---@return lcursor.AgentRun without a buffer
function M.new(task, path)
  count = count + 1
  ---@type lcursor.AgentRun
  local run = {
    number = count,
    key = "",
    task = task,
    path = path,
    policy = "",
    sandbox = "",
    dialect = "",
    state = "preparing",
    is_stopping = false,
    status_ms = 0,
    entries = {},
    draft = 0,
    is_waiting = false,
    is_replayed = false,
    is_shown = false,
  }
  table.insert(runs, run)
  current = run
  return run
end

---@param run lcursor.AgentRun
function M.remove(run)
  runs = vim.tbl_filter(function(other)
    return other ~= run
  end, runs)
  current = current ~= run and current or nil
end

---@return lcursor.AgentRun[] oldest first
function M.all()
  return runs
end

---@return lcursor.AgentRun[] those that this Neovim follows
function M.running()
  return vim.tbl_filter(function(run)
    return run.id ~= nil
  end, runs)
end

---@param key string
---@return lcursor.AgentRun?
function M.of_key(key)
  return vim.iter(runs):find(function(run)
    return run.key == key and key ~= ""
  end)
end

---@param buf integer
---@return lcursor.AgentRun?
function M.of_buffer(buf)
  return vim.iter(runs):find(function(run)
    return run.buf == buf
  end)
end

--- Return the run of the current buffer, else the one used last.
---@return lcursor.AgentRun?
function M.current()
  current = M.of_buffer(api.nvim_get_current_buf()) or current
  return current
end

---@param run lcursor.AgentRun
function M.use(run)
  current = run
end

--- Return the entries of a run that wait for the user.
---@param run lcursor.AgentRun
---@return lcursor.AgentEntry[]
function M.waiting(run)
  return vim.tbl_filter(function(entry)
    return entry.ask ~= nil or (entry.kind == "plan" and entry.is_open == true)
  end, run.entries)
end

return M
