-- What one asks in a chat: a question at the end, one that goes on from an earlier place, the same
-- again. Puts together what is sent; what comes of it is running.lua's.

local buffer = require("lcursor.chat.buffer")
local config = require("lcursor.config")
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")
local running = require("lcursor.chat.running")
local shown = require("lcursor.chat.shown")
local spelled = require("lcursor.chat.spelled")
local state = require("lcursor.chat.state")
local stream = require("lcursor.chat.stream")
local winbar = require("lcursor.chat.winbar")
local window = require("lcursor.chat.window")

local M = {}

local api = vim.api

M.stop, M.again, M.drop = running.stop, running.again, running.drop
M.show, M.change, M.step, M.greet = shown.show, shown.change, shown.step, shown.greet

---@class (exact) lcursor.ChatAsk what goes with a question
---@field attachments? lcursor.ChatAttachment[] besides what the text mentions
---@field dropped? string[] keys of items that are left out
---@field model? string for this question only

---@param session lcursor.ChatSession
---@return boolean
local function is_alive(session)
  return api.nvim_buf_is_loaded(session.buf)
end

--- All that the editor knows and the question needs; the one place where it is put together.
---@param session lcursor.ChatSession
---@param text string
---@param opts lcursor.ChatAsk
---@param before? lcursor.ChatMessage in whose place it is said
---@return lcursor.ChatAttachment[]
function M.collect(session, text, opts, before)
  local attach = require("lcursor.chat.attach")
  local all = vim.list_extend({}, session.attached)
  vim.list_extend(all, vim.tbl_map(attach.whole, opts.attachments or {}))
  vim.list_extend(all, attach.collect(session, text, before))
  local is_plain = not spelled.command(text) and #spelled.mentions(text) == 0
  local is_vague = #all == 0 and is_plain and #(before and before.items or {}) == 0
  local screen = is_vague and config.get().chat.screen and attach.screen()
  if screen then
    screen.is_offered = true
    table.insert(all, screen)
  end
  return all
end

--- What to send for a question; the bill asks with the same.
---@param session lcursor.ChatSession
---@param text string
---@param after integer
---@param opts lcursor.ChatAsk
---@param before? lcursor.ChatMessage in whose place it is said
---@return table params of `chat.send`, less the id
function M.params(session, text, after, opts, before)
  return {
    chat = session.chat,
    after = after,
    text = text,
    path = state.here(),
    attachments = M.collect(session, text, opts, before),
    dropped = vim.list_extend(vim.list_slice(session.dropped), opts.dropped or {}),
    model = opts.model or "",
    again = before and before.number or 0,
  }
end

---@param role "user"|"assistant"
---@param text string
---@param old? lcursor.ChatMessage that was said in its place
---@return lcursor.ChatMessage
local function message(role, text, old)
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
  }
end

---@class (exact) lcursor.ChatStart
---@field index integer of the span that has the question
---@field question lcursor.ChatMessage
---@field answer lcursor.ChatMessage
---@field after integer
---@field before? lcursor.ChatMessage that was asked in its place
---@field text string for the host
---@field draft string that stays at the end
---@field kept integer how many of the messages stay before the question

---@param session lcursor.ChatSession
---@param plan lcursor.ChatStart
---@param opts lcursor.ChatAsk
---@return boolean sent
local function start(session, plan, opts)
  local turn
  local asked = M.params(session, plan.text, plan.after, opts, plan.before)
  local id = requests.follow("chat.send", asked, function(method, params)
    running.hear(session, turn, method, params)
  end)
  if not id then
    return false
  end
  local followers = vim.tbl_filter(function(win)
    local _, _, heading = buffer.rows(session, session.spans[plan.index])
    return api.nvim_win_get_cursor(win)[1] > heading
  end, vim.fn.win_findbuf(session.buf))
  turn = {
    id = id,
    started_ms = vim.uv.now(),
    bytes = 0,
    texts = {},
    thoughts = {},
    question = plan.question,
    answer = plan.answer,
    is_known = false,
    is_stopping = false,
    is_followed = false,
    before = session.messages,
    asked = plan.text,
  }
  session.failure = nil
  session.messages = vim.list_slice(session.messages, 1, plan.kept)
  vim.list_extend(session.messages, { plan.question, plan.answer })
  local span, row = buffer.begin(session, plan.index, plan.question, plan.answer, plan.draft)
  turn.stream = stream.open(session, span, row)
  session.turn = turn
  for _, win in ipairs(followers) do
    window.to_end(session, win)
  end
  buffer.placeholder(session)
  winbar.watch(session)
  return true
end

--- Ask behind all that was said.
---@param session lcursor.ChatSession
---@param text string
---@param draft string
---@param opts lcursor.ChatAsk
local function start_last(session, text, draft, opts)
  local last = session.messages[#session.messages]
  start(session, {
    index = #session.spans,
    question = message("user", text),
    answer = message("assistant", ""),
    after = last and last.number or 0,
    text = text,
    draft = draft,
    kept = #session.messages,
  }, opts)
end

--- Have something done once the host knows the chat.
---@param session lcursor.ChatSession
---@param fn fun()
local function when_open(session, fn)
  if session.chat ~= "" then
    return fn()
  end
  table.insert(session.waiting, fn)
  if session.failure then
    shown.greet(session, "")
  end
end

---@param session lcursor.ChatSession
---@param text string
---@return boolean
local function is_sendable(session, text)
  if text == "" then
    notify.info("there is nothing to send: write below the last heading")
  end
  return text ~= "" and is_alive(session)
end

--- Ask something that stands nowhere yet; what is in the draft stays there.
---@param session lcursor.ChatSession
---@param text string
---@param opts lcursor.ChatAsk
function M.ask(session, text, opts)
  text = vim.trim(text)
  if not is_sendable(session, text) or running.is_told(session) then
    return
  end
  local draft = buffer.draft(session)
  if session.chat == "" and buffer.text(session, draft) == "" then
    -- It may not come to be asked: then it stands there, and is not lost.
    buffer.set_draft(session, text)
    return M.send(session, opts, draft)
  end
  when_open(session, function()
    if not session.turn then
      start_last(session, text, buffer.text(session, buffer.draft(session)), opts)
    end
  end)
end

---@param session lcursor.ChatSession
---@param span lcursor.ChatSpan of a question that was changed
---@param index integer
---@param text string
---@param opts lcursor.ChatAsk
local function send_branch(session, span, index, text, opts)
  local _, at = state.message(session, span.message.number)
  local before = at and session.messages[at - 1]
  start(session, {
    index = index,
    question = message("user", text, span.message),
    answer = message("assistant", ""),
    after = before and before.number or 0,
    before = span.message,
    text = text,
    draft = buffer.text(session, buffer.draft(session)),
    kept = (at or 1) - 1,
  }, opts)
end

--- What was written is sent; who types elsewhere goes on typing.
---@param session lcursor.ChatSession
local function leave_insert(session)
  if api.nvim_get_current_buf() == session.buf then
    vim.cmd.stopinsert()
  end
end

--- Send what the cursor is in: an earlier question that was changed begins a branch, and so does an
--- answer that was, which the model then reads as its own; the old one is kept. Anywhere else it is
--- the draft.
---@param session lcursor.ChatSession
---@param opts lcursor.ChatAsk
---@param span? lcursor.ChatSpan in place of the one at the cursor
function M.send(session, opts, span)
  local index = #session.spans
  if not span and api.nvim_get_current_buf() == session.buf then
    span, index = buffer.at(session, api.nvim_win_get_cursor(0)[1] - 1)
  end
  for i, other in ipairs(session.spans) do
    index = other == span and i or index
  end
  local changed = span and buffer.changed(session, span)
  if span and changed and changed ~= "" then
    if not running.is_told(session) then
      leave_insert(session)
      when_open(session, function()
        if span.message.role == "assistant" then
          local amended = { number = span.message.number, text = changed }
          return M.change(session, "chat.amend", amended)
        end
        send_branch(session, span, index, changed, opts)
      end)
    end
    return
  end
  local text = buffer.text(session, buffer.draft(session))
  if session.turn and text ~= "" then
    session.turn.is_followed = true
    leave_insert(session)
    return winbar.draw(session)
  end
  if not is_sendable(session, text) then
    return
  end
  leave_insert(session)
  when_open(session, function()
    text = is_alive(session) and buffer.text(session, buffer.draft(session)) or ""
    if text == "" or session.turn then
      return
    end
    if not buffer.is_whole(session) then
      buffer.render(session, text) -- headings were deleted: as it was, before it grows
    end
    start_last(session, text, "", opts)
  end)
end

--- Have the question at the cursor, or the last one, answered again; the old answer is kept.
---@param session lcursor.ChatSession
---@param opts lcursor.ChatAsk
function M.regenerate(session, opts)
  local index = buffer.question_at(session)
  if not index then
    return notify.info("there is no question to answer again")
  elseif running.is_told(session) then
    return
  end
  local asked = assert(session.spans[index].message)
  local _, at = state.message(session, asked.number)
  local old = session.messages[(at or 0) + 1]
  start(session, {
    index = index,
    question = asked,
    answer = message("assistant", "", old and old.role == "assistant" and old or nil),
    after = asked.number,
    text = "",
    draft = buffer.text(session, buffer.draft(session)),
    kept = (at or 1) - 1,
  }, opts)
end

return M
