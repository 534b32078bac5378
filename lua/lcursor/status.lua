-- What lcursor is doing, for people: the host's state, the statusline's text, the User events.
-- Owns vim.g.lcursor_status. Anyone may set; nobody is asked.

local M = {}

---@class (exact) lcursor.Status
---@field state lcursor.HostState
---@field detail string
---@field progress number 0 to 1, or -1 where unknown
local current = { state = "stopped", detail = "", progress = -1 }

---@type string what the index is doing; "" when there is nothing to say
local aside = ""
---@type string what edits run; "" for none
local edits = ""

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

local EVENTS = {
  { name = "LCursorHostState", text = "The host's state changed; data: state, detail, progress." },
  {
    name = "LCursorIndexState",
    text = "An index does something else; data: the fields of its state, see |lcursor-index|.",
  },
  { name = "LCursorChatDone", text = "A turn of a chat ended; data: buf, chat, reason." },
  { name = "LCursorEditProposed", text = "Changes were proposed; data: turn, files." },
  {
    name = "LCursorEditDone",
    text = "An edit ended; data: id, buf, reason (proposed, same, nothing, stopped, refused or"
      .. " failed).",
  },
  { name = "LCursorCompletionShow", text = "A ghost became visible; data: buf, text." },
  { name = "LCursorCompletionAccept", text = "It was accepted; data: buf, text, kind." },
  { name = "LCursorCompletionDismiss", text = "It was dismissed by key; data: buf." },
}

--- Fire a User event; listeners run later, never inside the caller.
---@param name string one of the events above
---@param data table
function M.emit(name, data)
  vim.schedule(function()
    vim.api.nvim_exec_autocmds("User", { pattern = name, modeline = false, data = data })
  end)
end

---@return string for a statusline, "" when there is nothing to say
function M.text()
  local text = TEXT[current.state]
  if current.state == "loading_model" and current.progress >= 0 then
    text = ("lc: loading %d%%"):format(math.floor(current.progress * 100))
  end
  for _, more in ipairs(text ~= "" and { edits, aside } or {}) do
    text = more ~= "" and (text .. " " .. more) or text
  end
  return text
end

local function draw()
  local text = M.text()
  if vim.g.lcursor_status ~= text then
    vim.g.lcursor_status = text
    vim.cmd.redrawstatus({ bang = true })
  end
end

--- Say what the index is doing, behind the host's state.
---@param text string "" for nothing
function M.set_index(text)
  aside = text
  draw()
end

--- Say which edits run, behind the host's state.
---@param text string "" for none
function M.set_edit(text)
  edits = text
  draw()
end

---@param state lcursor.HostState
---@param detail string
---@param progress? number
function M.set(state, detail, progress)
  local changed = state ~= current.state
  current = { state = state, detail = detail, progress = progress or -1 }
  draw()
  if changed then
    M.emit("LCursorHostState", vim.deepcopy(current))
  end
end

---@return lcursor.Status
function M.get()
  return current
end

--- The events, for the help.
---@return { name: string, text: string }[]
function M.describe_events()
  return EVENTS
end

return M
