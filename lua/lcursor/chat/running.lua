-- A turn that runs: what is heard of it, how it ends, and stopping it. Owns what a session knows of
-- its turn; who asks is turns.lua.

local buffer = require("lcursor.chat.buffer")
local many = require("lcursor.text").many
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")
local rpc = require("lcursor.rpc")
local state = require("lcursor.chat.state")
local status = require("lcursor.status")
local stream = require("lcursor.chat.stream")
local winbar = require("lcursor.chat.winbar")
local words = require("lcursor.chat.words")

local M = {}

local api = vim.api
local PATIENCE_MS = 1500 -- after an error or a stop, until `chat.done` is not waited for any more

---@param session lcursor.ChatSession
---@return boolean
local function is_alive(session)
  return api.nvim_buf_is_loaded(session.buf)
end

---@param session lcursor.ChatSession
---@param turn lcursor.ChatTurn
---@param done lcursor.ChatDone
local function finish(session, turn, done)
  if session.turn ~= turn then
    return
  end
  requests.forget(turn.id)
  session.turn = nil
  local answer = turn.answer
  answer.text, answer.reasoning = table.concat(turn.texts), table.concat(turn.thoughts)
  answer.is_partial = done.reason == "stopped" or done.reason == "failed"
  if done.reason == "failed" then
    answer.why = turn.failure and turn.failure.message or ""
    session.failure = turn.failure
      or {
        code = "chat_failed",
        message = "the answer broke off",
        hint = "See :LCursor log",
        level = "error",
      }
  end
  if done.title ~= "" then
    session.title = done.title
  end
  if done.prompt_tokens > 0 then
    session.last = done
    session.used_tokens = done.prompt_tokens + done.answer_tokens
  end
  if done.context_tokens > 0 then
    session.context_tokens = done.context_tokens
  end
  if is_alive(session) then
    if not turn.is_known then
      -- Nothing of it is kept anywhere: it is a draft again, before what was typed since.
      session.messages = turn.before
      stream.drop(turn.stream)
      local typed = buffer.text(session, buffer.draft(session))
      local between = turn.asked ~= "" and typed ~= "" and "\n\n" or ""
      buffer.render(session, turn.asked .. between .. typed)
    else
      stream.close(turn.stream)
      buffer.badge(session, turn.stream.span)
      buffer.placeholder(session)
    end
    winbar.draw(session)
  end
  status.emit("LCursorChatDone", { buf = session.buf, chat = session.chat, reason = done.reason })
  if turn.is_followed and (done.reason == "stop" or done.reason == "length") then
    vim.schedule(notify.guarded(function()
      require("lcursor.chat.turns").send(session, {}, buffer.draft(session))
    end))
  end
end

--- End a turn of which nothing more is heard.
---@param session lcursor.ChatSession
---@param turn lcursor.ChatTurn
---@param reason "stopped"|"failed"
local function abandon(session, turn, reason)
  finish(session, turn, {
    id = turn.id,
    chat = session.chat,
    reason = reason,
    title = "",
    prompt_tokens = 0,
    cached_tokens = 0,
    answer_tokens = 0,
    prompt_ms = 0,
    answer_ms = 0,
    first_ms = 0,
    context_tokens = 0,
    is_exact = false,
  })
end

---@param session lcursor.ChatSession
---@param turn lcursor.ChatTurn
---@param reason "stopped"|"failed"
local function abandon_later(session, turn, reason)
  vim.defer_fn(
    notify.guarded(function()
      abandon(session, turn, reason)
    end),
    PATIENCE_MS
  )
end

---@type table<string, fun(session: lcursor.ChatSession, turn: lcursor.ChatTurn, params: table)>
local HEAR = {}

HEAR["chat.started"] = function(session, turn, params)
  turn.is_known = true
  turn.question.number, turn.answer.number = params.question, params.answer
  turn.question.items = params.items
  turn.answer.model = params.model
  session.attached, session.dropped = {}, {}
  if is_alive(session) then
    stream.push(turn.stream, "items", table.concat(words.context(params.items), "\n"))
    buffer.placeholder(session)
  end
end

HEAR["chat.progress"] = function(session, turn, params)
  local before = turn.progress and turn.progress.phase
  turn.progress = params
  if before ~= params.phase then
    winbar.draw(session)
  end
end

HEAR["chat.delta"] = function(_, turn, params)
  turn.first_ms = turn.first_ms or vim.uv.now()
  turn.bytes = turn.bytes + #params.text + #params.reasoning
  if params.reasoning ~= "" then
    table.insert(turn.thoughts, params.reasoning)
    stream.push(turn.stream, "reasoning", params.reasoning)
  end
  if params.text ~= "" then
    table.insert(turn.texts, params.text)
    stream.push(turn.stream, "text", params.text)
  end
end

HEAR["chat.summed"] = function(session, turn, params)
  ---@type lcursor.ChatMessage
  local message = {
    number = params.number,
    role = "summary",
    text = params.text,
    reasoning = "",
    branch = 1,
    branches = 1,
    is_partial = false,
    model = "",
    why = "",
    items = {},
  }
  local at
  for i, span in ipairs(session.spans) do
    local here = span.message
    if here and here.role ~= "summary" and here.number == params.last then
      at = i + 1 -- behind what it stands for, as it is shown ever after
    elseif here == turn.question then
      at = at or i
    end
  end
  if at and is_alive(session) then
    buffer.insert(session, at, message)
    table.insert(session.messages, at, message)
  end
  notify.info(
    ("%s summarized: %s tokens are now %s"):format(
      many(params.messages, "message was", "messages were"),
      words.short(params.tokens_before),
      words.short(params.tokens_after)
    )
  )
end

HEAR["chat.done"] = finish

HEAR["error"] = function(session, turn, params)
  turn.failure = params
  winbar.draw(session)
  if params.code == "host_died" or params.code == "command_unknown" then -- no end follows
    abandon(session, turn, "failed")
  else
    abandon_later(session, turn, "failed")
  end
end

--- Hear something of a turn.
---@param session lcursor.ChatSession
---@param turn lcursor.ChatTurn
---@param method string
---@param params table
function M.hear(session, turn, method, params)
  if turn and session.turn == turn then
    HEAR[method](session, turn, params)
  end
end

---@param session lcursor.ChatSession
---@return boolean whether an answer is being written; tells
function M.is_told(session)
  if session.turn then
    local key = require("lcursor.config").get().chat.mappings.stop
    local how = key ~= "" and ("; %s stops it"):format(key) or ""
    notify.info("an answer is being written" .. how)
  end
  return session.turn ~= nil
end

--- Stop the answer that is being written; what is there stays.
---@param session lcursor.ChatSession
---@return boolean whether one was
function M.stop(session)
  local turn = session.turn
  if not turn then
    return false
  end
  turn.is_followed = false
  if not turn.is_stopping then
    turn.is_stopping = true
    if rpc.notify("chat.stop", { id = turn.id }) then
      abandon_later(session, turn, "stopped")
    else
      abandon(session, turn, "stopped")
    end
    winbar.draw(session)
  end
  return true
end

--- Write all of it again, after the buffer was read anew; an answer that is coming goes on.
---@param session lcursor.ChatSession
function M.again(session)
  local turn = session.turn
  if not turn then
    return buffer.render(session, "")
  end
  stream.drop(turn.stream)
  local kept = #session.messages - 2
  session.messages = vim.list_slice(session.messages, 1, kept)
  buffer.render(session, turn.question.text)
  local span, row = buffer.begin(session, #session.spans, turn.question, turn.answer, "")
  vim.list_extend(session.messages, { turn.question, turn.answer })
  turn.stream = stream.open(session, span, row)
  stream.push(turn.stream, "items", table.concat(words.context(turn.question.items), "\n"))
  stream.push(turn.stream, "reasoning", table.concat(turn.thoughts))
  stream.push(turn.stream, "text", table.concat(turn.texts))
end

--- The buffer is gone: nobody reads the answer.
---@param session lcursor.ChatSession
function M.drop(session)
  local turn = session.turn
  if turn then
    session.turn = nil
    rpc.notify("chat.stop", { id = turn.id })
    requests.forget(turn.id)
    stream.drop(turn.stream)
  end
  state.remove(session)
end

return M
