-- What lcursor is doing: the host's state, the text for a statusline, the User events.
-- Owns vim.g.lcursor_status.

local config = require("lcursor.config")
local lsp_progress = require("lcursor.ui.lsp_progress")

local M = {}

---@class (exact) lcursor.Status
---@field state lcursor.HostState
---@field detail string
---@field progress number 0 to 1, or -1 if unknown
local current = { state = "stopped", detail = "", progress = -1 }

---@type table<"install"|"index"|"edit"|"agent", string> what these are doing; "" for nothing
local features = { install = "", index = "", edit = "", agent = "" }
---@type table<fun(), boolean> called after each change
local listeners = {}

---@type table<lcursor.HostState, string>
local TEXT = {
  stopped = "",
  absent = "lc: not installed",
  installing = "lc: installing",
  starting = "lc: starting",
  loading_model = "lc: loading",
  ready = "lc",
  failed = "lc: failed",
}

-- stylua: ignore
local EVENTS = {
  { name = "LCursorHostState", text = "The state of the host changed: state, detail, progress" },
  { name = "LCursorIndexState", text = "An index changed: see |lcursor-index-state|" },
  { name = "LCursorChatDone", text = "An answer ended: buf, chat, reason" },
  { name = "LCursorEditProposed", text = "Hunks were proposed: turn, files" },
  { name = "LCursorEditDone", text = "An edit ended: id, buf, reason" },
  { name = "LCursorAgentAsks", text = "An agent waits for you: buf, run, command, why" },
  { name = "LCursorAgentDone", text = "An agent ended: buf, run, state, turn" },
  { name = "LCursorCompletionShow", text = "A suggestion is shown: buf, text" },
  { name = "LCursorCompletionAccept", text = "A suggestion was accepted: buf, text, kind" },
  { name = "LCursorCompletionDismiss", text = "A suggestion was dismissed: buf" },
  { name = "LCursorNextEditAccept", text = "Next edits were applied: buf, count" },
  { name = "LCursorNextEditDismiss", text = "A next edit was dismissed: buf" },
}

--- Fire a User event. Its handlers run later, never inside the caller.
---@param name string one of EVENTS
function M.emit(name, data)
  vim.schedule(function()
    vim.api.nvim_exec_autocmds("User", { pattern = name, modeline = false, data = data })
  end)
end

---@return string for a statusline; "" if there is nothing to report
function M.text()
  local text = TEXT[current.state]
  if config.switch() == false then
    text = "lc: off"
  elseif current.state == "loading_model" and current.progress >= 0 then
    text = ("%s %d%%"):format(text, math.floor(current.progress * 100))
  end
  local all = { features.install, features.edit, features.agent, features.index }
  for _, more in ipairs(text ~= "" and all or {}) do
    text = more ~= "" and (text .. " " .. more) or text
  end
  return text
end

---@return string the state and how far it is
function M.describe()
  local progress = current.progress >= 0 and (" %d%%"):format(current.progress * 100) or ""
  return current.state .. progress
end

--- Update vim.g.lcursor_status.
function M.draw()
  local text = M.text()
  if vim.g.lcursor_status ~= text then
    vim.g.lcursor_status = text
    vim.cmd.redrawstatus({ bang = true })
  end
  for listener in pairs(listeners) do
    listener()
  end
end

--- Call a function after each change, also of progress; it must be quick.
---@return fun() stop
function M.listen(listener)
  listeners[listener] = true
  return function()
    listeners[listener] = nil
  end
end

--- Show what a feature is doing, after the host's state.
---@param feature "install"|"edit"|"agent"|"index"
---@param text string "" for nothing
function M.set_feature(feature, text)
  features[feature] = text
  M.draw()
end

---@param state lcursor.HostState
---@param progress? number
function M.set(state, detail, progress)
  local changed = state ~= current.state
  current = { state = state, detail = detail, progress = progress or -1 }
  M.draw()
  if state == "loading_model" then
    local fraction = current.progress >= 0 and current.progress or nil
    local text = fraction and fraction >= 1 and "starting" or "loading"
    lsp_progress.report("model", "completion model", text, fraction)
  else
    lsp_progress.finish("model", state == "ready" and "loaded" or state)
  end
  if changed then
    M.emit("LCursorHostState", vim.deepcopy(current))
  end
end

---@return lcursor.Status
function M.get()
  return current
end

--- Return the events, for the help.
---@return { name: string, text: string }[]
function M.describe_events()
  return EVENTS
end

return M
