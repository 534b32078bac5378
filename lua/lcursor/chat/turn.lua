-- A turn: one question that is being answered. Handles its messages, its end, and stopping it;
-- send.lua starts it.

local buffer = require("lcursor.chat.buffer")
local buffers = require("lcursor.editor.buffers")
local calls = require("lcursor.chat.calls")
local entries = require("lcursor.conversation.entries")
local format = require("lcursor.chat.format")
local keymaps = require("lcursor.editor.keymaps")
local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")
local numbers = require("lcursor.text.numbers")
local requests = require("lcursor.host.requests")
local sessions = require("lcursor.conversation.sessions")
local status = require("lcursor.host.status")
local stream = require("lcursor.chat.stream")
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api
-- Maximum wait for `chat.done` after an error or a stop. Tests change it.
M.max_wait_ms = 1500
-- After this time, plugins such as render-markdown.nvim react to a change again.
local DEBOUNCE_MS = 150

---@class (exact) lcursor.ChatTurn a question that is being answered
---@field id integer of its `chat.send`
---@field started_ms integer vim.uv.now() when it was asked
---@field first_ms? integer vim.uv.now() when the answer began
---@field bytes integer of the answer so far
---@field progress? lcursor.ChatProgress
---@field question lcursor.ChatMessage
---@field answer lcursor.ChatMessage
---@field is_known boolean the host has stored the question
---@field is_stopping boolean the user has stopped it
---@field is_followed boolean the draft is sent when it has ended well
---@field texts string[] pieces of the answer
---@field thoughts string[] pieces of the reasoning
---@field before lcursor.ChatMessage[] what was shown before it was asked
---@field text string that was sent
---@field sent (lcursor.ChatAttachment|string)[] what it takes of the session's attached and dropped
---@field entry lcursor.ChatEntry of the answer
---@field stream lcursor.ChatStream
---@field failure? lcursor.Error

---@type lcursor.Error
local INTERRUPTED = {
  code = "chat_failed",
  message = "the answer was interrupted",
  hint = "See :LCursor log",
  level = "error",
}

-- As the host says it when the chat is opened again.
local CUT_OFF = "it reached the limit of its length"

--- Return a message that the host has not numbered yet.
---@param role "user"|"assistant"|"result"
---@param text string
---@param old? lcursor.ChatMessage that it replaces, on another branch
---@return lcursor.ChatMessage
function M.new_message(role, text, old)
  local branches = old and old.branches + 1 or 1
  return {
    number = 0,
    role = role,
    text = text,
    reasoning = "",
    branch = branches,
    branches = branches,
    is_partial = false,
    model = "",
    why = "",
    items = {},
    call = "",
  }
end

--- Tell plugins that render a buffer at TextChanged that the answer is complete. Neovim tells it
--- only in the current buffer, and they miss the last of several changes in a short time.
---@param buf integer
local function announce(buf)
  notify.later(DEBOUNCE_MS, function()
    if api.nvim_buf_is_loaded(buf) then
      api.nvim_buf_call(buf, function()
        api.nvim_exec_autocmds("TextChanged", { buffer = buf, modeline = false })
      end)
    end
  end)
end

--- Send the draft, unless the user is writing it: then in Normal mode.
---@param session lcursor.ChatSession
local function follow(session)
  local function send()
    require("lcursor.chat.send").send(session, {}, entries.draft(session))
  end
  if api.nvim_get_current_buf() ~= session.buf then
    return send()
  end
  buffers.when_normal("your question", send, function()
    return api.nvim_buf_is_loaded(session.buf) and not session.turn
  end)
end

local function show_end(session, turn, done)
  if turn.is_known then
    stream.close(turn.stream)
    turn.entry.note, turn.entry.is_open = nil, false
    entries.decorate_all(session)
  else -- nothing of it is stored: the question becomes a draft again, before what was typed since
    session.messages = turn.before
    stream.drop(turn.stream)
    local typed = entries.draft_text(session)
    local separator = turn.text ~= "" and typed ~= "" and "\n\n" or ""
    buffer.render(session, turn.text .. separator .. typed)
  end
  window.draw(session)
  announce(session.buf)
  if turn.is_followed and (done.reason == "stop" or done.reason == "length") then
    vim.schedule(notify.guarded(function()
      follow(session)
    end))
  elseif turn.answer.call ~= "" then
    vim.schedule(notify.guarded(function()
      if entries.index(session, turn.entry) == #session.entries - 1 and not session.turn then
        calls.follow(session, turn.entry)
      end
    end))
  end
end

local function finish(session, turn, done)
  if session.turn ~= turn then
    return
  end
  requests.forget(turn.id)
  session.turn = nil
  local answer = turn.answer
  answer.text, answer.reasoning = table.concat(turn.texts), table.concat(turn.thoughts)
  answer.call = done.call or ""
  answer.is_partial = done.reason == "stopped" or done.reason == "failed"
  if done.reason == "failed" then
    answer.why = turn.failure and turn.failure.message or ""
    session.failure = turn.failure or INTERRUPTED
  elseif done.reason == "length" then
    answer.why = CUT_OFF
  end
  session.title = done.title ~= "" and done.title or session.title
  if done.prompt_tokens > 0 then
    session.last = done
    session.used_tokens = done.prompt_tokens + done.answer_tokens
  end
  session.context_tokens = done.context_tokens > 0 and done.context_tokens or session.context_tokens
  if api.nvim_buf_is_loaded(session.buf) then
    show_end(session, turn, done)
  end
  status.emit("LCursorChatDone", { buf = session.buf, chat = session.key, reason = done.reason })
end

--- End a turn without `chat.done`.
---@param reason "stopped"|"failed"
local function abandon(session, turn, reason, wait_ms)
  local done = { reason = reason, title = "", prompt_tokens = 0, context_tokens = 0 }
  if wait_ms == 0 then
    return finish(session, turn, done)
  end
  notify.later(wait_ms, function()
    finish(session, turn, done)
  end)
end

---@type table<string, fun(session: lcursor.ChatSession, turn: lcursor.ChatTurn, params: table)>
local handlers = {}

local function push_context(turn)
  stream.push(turn.stream, "items", table.concat(format.context(turn.question.items), "\n"))
end

handlers["chat.started"] = function(session, turn, params)
  turn.is_known = true
  turn.question.number, turn.answer.number = params.question, params.answer
  turn.question.items = params.items
  turn.answer.model = params.model
  local function is_left(each)
    return not vim.list_contains(turn.sent, each)
  end
  session.attached = vim.tbl_filter(is_left, session.attached)
  session.dropped = vim.tbl_filter(is_left, session.dropped)
  turn.question.text = params.result ~= "" and params.result or turn.question.text
  if api.nvim_buf_is_loaded(session.buf) then
    if turn.question.role == "result" then
      entries.show(session, session.entries[entries.index(session, turn.entry) - 1])
    end
    push_context(turn)
    entries.decorate_all(session)
  end
end

handlers["chat.progress"] = function(session, turn, params)
  local is_same = turn.progress and turn.progress.phase == params.phase
  turn.progress = params
  if not is_same then
    window.draw(session)
  end
end

handlers["chat.delta"] = function(_, turn, params)
  turn.first_ms = turn.first_ms or vim.uv.now()
  turn.bytes = turn.bytes + #params.text + #params.reasoning
  table.insert(turn.thoughts, params.reasoning)
  table.insert(turn.texts, params.text)
  stream.push(turn.stream, "reasoning", params.reasoning)
  stream.push(turn.stream, "text", params.text)
end

--- Report that messages were summarized.
---@param params table of `chat.summed`
function M.report_summary(params)
  local before, after = numbers.short(params.tokens_before), numbers.short(params.tokens_after)
  local text = "summarized %s: %s tokens are now %s"
  notify.info(text:format(many(params.messages, "message"), before, after))
end

handlers["chat.summed"] = function(session, turn, params)
  local at -- after the last message that is summarized
  for i, entry in ipairs(session.entries) do
    local here = entry.message
    if here and here.role ~= "summary" and here.number == params.last then
      at = i + 1
    elseif here == turn.question then
      at = at or i
    end
  end
  if at and api.nvim_buf_is_loaded(session.buf) then
    local message = M.new_message("assistant", params.text)
    message.role, message.number = "summary", params.number
    entries.insert(session, buffer.entry(message), at)
    table.insert(session.messages, at, message)
  end
  M.report_summary(params)
end

handlers["chat.done"] = finish

handlers["error"] = function(session, turn, params)
  turn.failure = params
  window.draw(session)
  local is_last = params.code == "host_died" or params.code == "command_unknown"
  abandon(session, turn, "failed", is_last and 0 or M.max_wait_ms)
end

--- Handle a message of a turn.
---@param session lcursor.ChatSession
---@param turn lcursor.ChatTurn
---@param method string
---@param params table
function M.handle(session, turn, method, params)
  if turn and session.turn == turn then
    handlers[method](session, turn, params)
  end
end

--- Return whether an answer or a summary is being written, and report it.
---@param session lcursor.ChatSession
---@return boolean
function M.is_busy(session)
  local what = session.turn and "an answer is being written"
    or session.compacting and "the chat is being summarized"
  if what then
    local key = keymaps.shown("chat", "stop", session.buf)
    local hint = key and ("; %s stops it"):format(key) or ""
    notify.info(what .. hint)
  end
  return what ~= nil
end

--- Stop the answer that is being written, whose text so far stays, or the summary.
---@param session lcursor.ChatSession
---@return boolean whether there was one
function M.stop(session)
  local turn = session.turn
  if session.compacting then
    return requests.notify("chat.stop", { id = session.compacting })
  elseif not turn then
    return false
  end
  turn.is_followed = false
  if not turn.is_stopping then
    turn.is_stopping = true
    local is_sent = requests.notify("chat.stop", { id = turn.id })
    abandon(session, turn, "stopped", is_sent and M.max_wait_ms or 0)
    window.draw(session)
  end
  return true
end

--- Show a turn in the buffer.
---@param session lcursor.ChatSession
---@param turn lcursor.ChatTurn
---@param index integer of the entry that holds the question
---@param draft string
function M.show(session, turn, index, draft)
  turn.entry = buffer.begin_answer(session, index, turn.question, turn.answer, draft)
  turn.stream = stream.open(session, turn.entry)
end

--- Write the chat again after its buffer was reloaded; a running answer continues.
---@param session lcursor.ChatSession
function M.render_again(session)
  local turn = session.turn
  if not turn then
    return buffer.render(session, "")
  end
  stream.drop(turn.stream)
  local messages = session.messages
  session.messages = vim.list_slice(messages, 1, #messages - 2)
  buffer.render(session, turn.question.text)
  M.show(session, turn, #session.entries, "")
  session.messages = messages
  push_context(turn)
  stream.push(turn.stream, "reasoning", table.concat(turn.thoughts))
  stream.push(turn.stream, "text", table.concat(turn.texts))
end

--- Forget a chat whose buffer is gone.
---@param session lcursor.ChatSession
function M.drop(session)
  local turn = session.turn
  if turn then
    session.turn = nil
    requests.notify("chat.stop", { id = turn.id })
    requests.forget(turn.id)
    stream.drop(turn.stream)
  end
  sessions.remove(session)
end

return M
