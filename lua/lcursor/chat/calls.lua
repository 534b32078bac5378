-- The call of a tool of an MCP server with which an answer ends: it waits until the user approves
-- or rejects it, as it is in the buffer then.

local code_blocks = require("lcursor.chat.code_blocks")
local input = require("lcursor.editor.input")
local keymaps = require("lcursor.editor.keymaps")
local notify = require("lcursor.ui.notify")
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api
local ACTIONS = { "mcp_call", "mcp_find" }

--- Return the answer whose call has not been decided on.
---@param session lcursor.ChatSession
---@return lcursor.ChatEntry?
function M.waiting(session)
  local entry = session.entries[#session.entries - 1]
  local message = not session.turn and entry and entry.message
  return message and message.call == "asks" and entry or nil
end

--- Return the block of the call, as it is in the buffer.
---@param session lcursor.ChatSession
---@param entry lcursor.ChatEntry
---@return lcursor.ChatBlock?
local function block_of(session, entry)
  return vim.iter(code_blocks.blocks_of(session, entry)):rfind(function(block)
    return vim.list_contains(ACTIONS, block.language)
  end)
end

---@param choice ""|"once"|"chat"|"reject"
---@param reason string of a rejection, for the model
local function send(session, entry, choice, reason)
  local block = block_of(session, entry)
  if not block then
    return notify.warn("the block of the call is damaged; undo your change")
  end
  local lines = api.nvim_buf_get_lines(session.buf, block.first, block.last + 1, false)
  local call = { call = table.concat(lines, "\n"), choice = choice, reason = reason }
  require("lcursor.chat.send").call(session, entry, call)
end

--- Approve the call that waits, once or for its tool in this chat.
---@param session lcursor.ChatSession
---@param choice "once"|"chat"
---@return boolean whether one waits
function M.approve(session, choice)
  local entry = M.waiting(session)
  if entry then
    send(session, entry, choice, "")
  end
  return entry ~= nil
end

--- Reject the call that waits, for a reason that is asked for.
---@param session lcursor.ChatSession
function M.reject(session)
  local entry = M.waiting(session)
  if not entry then
    return notify.info("no call waits for approval")
  end
  local opts = { title = "reason, for the model", path = session.path, may_be_empty = true }
  input.open(opts, function(text)
    if text and M.waiting(session) == entry then
      send(session, entry, "reject", text)
    end
  end)
end

--- Go on after an answer that ends with a call: run it if it needs no approval.
---@param session lcursor.ChatSession
---@param entry lcursor.ChatEntry of the answer
function M.follow(session, entry)
  local state = entry.message.call
  if state == "runs" then
    send(session, entry, "", "")
  elseif state == "asks" and not window.find(session) then
    notify.info("the chat waits for your approval of a call")
  end
end

--- Return how to decide on a call, for the line below it.
---@param session lcursor.ChatSession
---@return string
function M.hint(session)
  local words = { { "apply_block", "runs it" }, { "allow", "also in future in this chat" } }
  table.insert(words, { "reject", "rejects it" })
  local parts = {}
  for _, each in ipairs(words) do
    local key = keymaps.shown("chat", each[1], session.buf)
    table.insert(parts, key and ("%s %s"):format(key, each[2]) or nil)
  end
  return "? waits for approval" .. (#parts > 0 and ": " or "") .. table.concat(parts, ", ")
end

return M
