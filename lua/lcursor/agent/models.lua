-- Which model, or which agent of someone else, works on the next tasks.

local buffers = require("lcursor.editor.buffers")
local config = require("lcursor.config")
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local window = require("lcursor.ui.window")

local M = {}

---@type string? instead of the option agent.model
local chosen

--- Return the name that was chosen in this Neovim.
---@return string "" for the option agent.model
function M.current()
  return chosen or ""
end

--- Return the names that the user may type.
---@return string[]
function M.names()
  local settings = config.get()
  local names = vim.list_extend(vim.tbl_keys(settings.models), vim.tbl_keys(settings.agents))
  vim.list_extend(names, require("lcursor.config.servers").agents)
  table.sort(names)
  return vim.fn.uniq(names)
end

--- Use a model or an agent for the next tasks.
---@param name string
function M.use(name)
  chosen = name
  notify.info(("the next tasks are for %s"):format(name))
end

---@param row table fields of `AgentModel`
---@return lcursor.Item
local function item_of(row)
  local about = row.is_agent and row.title or "model"
  local note = row.missing ~= "" and ("not installed: %s"):format(row.missing) or ""
  ---@type lcursor.Item
  return {
    cells = {
      { ("%-14s"):format(row.name) },
      { ("%-13s"):format(about), "LCursorChatNote" },
      { note, "LCursorAgentAsks" },
    },
    confirm = function()
      if row.missing ~= "" then
        return notify.warn(("%s is not installed"):format(row.name), row.missing)
      end
      M.use(row.name)
    end,
  }
end

--- Let the user choose what works on the next tasks.
function M.choose()
  requests.ask("agent.models", {}, function(offered)
    buffers.when_normal("the choice of a model", function()
      local items = vim.tbl_map(item_of, offered.models)
      window.choose(items, "Model or agent", "lcursor.models")
    end)
  end)
end

return M
