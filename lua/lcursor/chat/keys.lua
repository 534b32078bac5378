-- What the keys of a chat's buffer do.

local buffer = require("lcursor.chat.buffer")
local calls = require("lcursor.chat.calls")
local code_blocks = require("lcursor.chat.code_blocks")
local code_window = require("lcursor.editor.code_window")
local entries = require("lcursor.conversation.entries")
local list = require("lcursor.chat.list")
local load = require("lcursor.chat.load")
local notify = require("lcursor.ui.notify")
local send = require("lcursor.chat.send")
local usage = require("lcursor.chat.usage")
local verbs = require("lcursor.chat.verbs")
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api

local function jump(session, by)
  local entry, index = entries.at_cursor(session)
  local heading = entries.rows(session, entry)
  local is_below = by < 0 and api.nvim_win_get_cursor(0)[1] - 1 > heading
  local target = session.entries[is_below and index or index + by]
  if target then
    heading = entries.rows(session, target)
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { heading + 1, 0 })
    vim.cmd("normal! zt")
  end
end

local function go_to_question(session)
  local entry = buffer.question_at_cursor(session)
  if entry then
    local first, last = entries.content(session, entry)
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { math.min(first + 2, last), 0 })
  end
end

--- Return the item of a question's context that a line shows.
---@return lcursor.ChatItem?
local function item_of(session, line)
  local entry = buffer.question_at_cursor(session)
  local text = line:match("^> %- (.*)$")
  for _, item in ipairs(entry and text and entry.message.items or {}) do
    if vim.startswith(text, item.kind .. " " .. item.name) then
      return item
    end
  end
end

--- Go to the file under the cursor: an item of a question's context, or a name in the text.
---@param session lcursor.ChatSession
local function follow(session)
  local line, col = api.nvim_get_current_line(), api.nvim_win_get_cursor(0)[2] + 1
  local item = item_of(session, line)
  if item and item.path ~= "" then
    return code_window.jump(item.path, item.first_row)
  end
  for first, argument, last in line:gmatch("()@%l+:(%S+)()") do
    if col >= first and col < last then
      line, col = argument:gsub('"', ""), 1
      break
    end
  end
  code_window.follow_name({ session.root, vim.fs.dirname(session.path) }, line, col)
end

local function send_at_cursor(session)
  send.send(session, {})
end

--- Run the call that waits if the cursor is on its answer or below it, else propose the block as an
--- edit.
---@param session lcursor.ChatSession
local function apply(session)
  local _, index = entries.at_cursor(session)
  local is_here = index >= #session.entries - 1
  if not (is_here and calls.approve(session, "once")) then
    code_blocks.apply(session)
  end
end

---@param session lcursor.ChatSession
local function allow(session)
  if not calls.approve(session, "chat") then
    notify.info("no call waits for approval")
  end
end

-- stylua: ignore
---@type table<string, fun(session: lcursor.ChatSession)>
local ACTIONS = {
  send = send_at_cursor,
  send_insert = send_at_cursor,
  regenerate = function(session) send.regenerate(session, {}) end,
  edit = go_to_question,
  next_branch = function(session) load.step(session, vim.v.count1) end,
  prev_branch = function(session) load.step(session, -vim.v.count1) end,
  next = function(session) jump(session, 1) end,
  prev = function(session) jump(session, -1) end,
  context = usage.preview,
  sources = usage.sources,
  jump = follow,
  yank_block = code_blocks.yank,
  insert_block = code_blocks.insert,
  open_block = code_blocks.open,
  apply_block = apply,
  allow = allow,
  reject = calls.reject,
  model = verbs.choose_model,
  list = function() list.open() end,
}

--- Do what a key stands for, in the current chat.
M.press = window.presser("chat", ACTIONS, "no chat is open; :LCChat opens one")

return M
