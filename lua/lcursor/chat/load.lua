-- Opens a chat at the host and shows what the host has stored: messages, branches, the model.

local buffer = require("lcursor.chat.buffer")
local code_window = require("lcursor.editor.code_window")
local config = require("lcursor.config")
local entries = require("lcursor.conversation.entries")
local host = require("lcursor.host")
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local turn = require("lcursor.chat.turn")
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api

--- Write the messages again; each cursor stays in its message.
local function render(session)
  local indexes = {}
  local wins = vim.fn.win_findbuf(session.buf)
  for _, win in ipairs(wins) do
    local _, index = entries.at(session, api.nvim_win_get_cursor(win)[1] - 1)
    indexes[win] = index < #session.entries and index or nil
  end
  buffer.render(session, entries.draft_text(session))
  for _, win in ipairs(wins) do
    local entry = indexes[win] and session.entries[indexes[win]]
    if entry and entry.message then
      local row = entries.rows(session, entry)
      api.nvim_win_set_cursor(win, { row + 1, 0 })
    else
      window.to_end(session, win)
    end
  end
end

--- Show a chat as the host has it; the draft stays.
---@param session lcursor.ChatSession
---@param opened lcursor.ChatOpened
function M.show(session, opened)
  session.key, session.title, session.root = opened.chat, opened.title, opened.root
  session.host, session.settings = host.info(), config.get()
  code_window.add_root(session.root)
  session.model, session.models = opened.model, opened.models
  session.context_tokens = opened.context_tokens
  session.used_tokens = opened.used_tokens
  session.failure = nil
  if not api.nvim_buf_is_loaded(session.buf) then
    return
  end
  local is_same = vim.deep_equal(session.messages, opened.messages)
  session.messages = opened.messages
  if not is_same then
    render(session)
  end
  entries.decorate_all(session)
  window.draw(session)
end

--- Show a chat again as the host has it now.
---@param session lcursor.ChatSession
function M.reload(session)
  requests.ask("chat.open", { chat = session.key, path = session.path }, function(opened)
    if not session.turn then
      M.show(session, opened)
    end
  end)
end

--- Open a chat at the host.
---@param session lcursor.ChatSession
---@param key string "" for a new chat
function M.open(session, key)
  session.failure = nil
  local function fail(err)
    session.failure, session.waiting = err, {}
    if api.nvim_buf_is_loaded(session.buf) then
      entries.decorate_all(session)
      window.draw(session)
    end
  end
  local id = requests.ask("chat.open", { chat = key, path = session.path }, function(opened)
    M.show(session, opened)
    local waiting = session.waiting
    session.waiting = {}
    for _, fn in ipairs(waiting) do
      fn()
    end
  end, fail)
  if not id then
    fail({
      code = "host_failed",
      message = "the host is not available",
      hint = "See :LCursor status",
      level = "silent",
    })
  end
end

--- Whether the host does not have a chat any more: it has no file before its first message.
---@param session lcursor.ChatSession
---@return boolean
local function is_lost(session)
  local is_new = #session.messages == 0 and session.title == ""
  local is_default = session.model == (session.models[1] or "")
  local is_same = session.host == host.info() and session.settings == config.get()
  return is_new and is_default and not is_same
end

--- Call a function once the host has opened the chat.
---@param session lcursor.ChatSession
---@param fn fun()
function M.when_open(session, fn)
  local has_lost = session.key ~= "" and is_lost(session)
  if session.key ~= "" and not has_lost then
    return fn()
  end
  table.insert(session.waiting, fn)
  if session.failure or has_lost then
    session.key = ""
    M.open(session, "")
  end
end

--- Send a request that changes a chat, and show the result.
---@param session lcursor.ChatSession
---@param method string
---@param params table
function M.change(session, method, params)
  if session.key == "" or turn.is_busy(session) then
    return
  end
  M.when_open(session, function()
    params.chat = session.key
    requests.ask(method, params, function(opened)
      if not session.turn then
        return M.show(session, opened)
      end -- else a question was sent meanwhile, which these messages do not contain
      session.title, session.model, session.models = opened.title, opened.model, opened.models
      window.draw(session)
    end)
  end)
end

--- Show another branch at the cursor.
---@param session lcursor.ChatSession
---@param step integer
function M.step(session, step)
  local _, index = entries.at_cursor(session)
  for _, i in ipairs({ index, index - 1, index + 1 }) do
    local message = session.entries[i] and session.entries[i].message
    if message and message.branches > 1 then
      return M.change(session, "chat.branch", { number = message.number, step = step })
    end
  end
  notify.info("no other branch here")
end

return M
