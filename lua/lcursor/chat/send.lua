-- Sends questions: the draft, an edited earlier message as a branch, a question again.

local attachments = require("lcursor.editor.attachments")
local buffer = require("lcursor.chat.buffer")
local buffers = require("lcursor.editor.buffers")
local entries = require("lcursor.conversation.entries")
local load = require("lcursor.chat.load")
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local turns = require("lcursor.chat.turn")
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api

---@class (exact) lcursor.ChatAsk what goes with a question
---@field attachments? lcursor.ChatAttachment[] in addition to mentions in the text
---@field dropped? string[] keys of items to leave out
---@field model? string for this question only

--- Return the parameters of `chat.send` without the id; a preview of the context uses the same.
---@param session lcursor.ChatSession
---@param text string
---@param after integer number of the message before; 0 for none
---@param opts lcursor.ChatAsk
---@param old? lcursor.ChatMessage that it replaces, on another branch
---@return table
function M.params(session, text, after, opts, old)
  local all = vim.list_extend({}, session.attached)
  vim.list_extend(all, vim.tbl_map(attachments.with_defaults, opts.attachments or {}))
  vim.list_extend(all, attachments.collect(session.attached, text, old))
  return {
    chat = session.key,
    after = after,
    text = text,
    path = buffers.here(),
    attachments = attachments.with_screen(all, text, old),
    dropped = vim.list_extend(vim.list_slice(session.dropped), opts.dropped or {}),
    model = opts.model or "",
    again = old and old.number or 0,
    call = "",
    choice = "",
  }
end

--- Send a question or a call, and show its turn.
---@param index integer of the entry that becomes the question
---@param params table of `chat.send` without the id
---@param question lcursor.ChatMessage
---@param answer lcursor.ChatMessage
---@param draft string that stays at the end
---@param before lcursor.ChatMessage[] the messages before the question
local function begin(session, index, params, question, answer, draft, before)
  local turn ---@type lcursor.ChatTurn
  local id = requests.follow("chat.send", params, function(method, message)
    turns.handle(session, turn, method, message)
  end)
  if not id then
    return
  end
  local heading = entries.rows(session, session.entries[index], index)
  local following = vim.tbl_filter(function(win)
    return api.nvim_win_get_cursor(win)[1] > heading
  end, vim.fn.win_findbuf(session.buf))
  turn = {
    id = id,
    started_ms = vim.uv.now(),
    bytes = 0,
    texts = {},
    thoughts = {},
    question = question,
    answer = answer,
    is_known = false,
    is_stopping = false,
    is_followed = false,
    before = session.messages,
    text = params.call == "" and params.text or "",
    sent = {},
  }
  if turn.text ~= "" then
    vim.list_extend(vim.list_extend(turn.sent, session.attached), session.dropped)
  end
  session.failure = nil
  session.messages = vim.list_extend(before, { question, answer })
  if question.role == "result" then
    index = #session.entries
    entries.insert(session, buffer.entry(question), index)
  end
  turns.show(session, turn, index, draft)
  session.turn = turn
  for _, win in ipairs(following) do
    window.to_end(session, win)
  end
  entries.decorate_all(session)
  window.draw(session)
end

--- Ask a question: in place of the draft, or of an earlier question, on another branch.
---@param index integer of the entry that becomes the question
---@param text string "" to answer the question there again
---@param draft string that stays at the end
---@param opts lcursor.ChatAsk
local function start(session, index, text, draft, opts)
  local old, old_answer = session.messages[index], session.messages[index + 1]
  local before = vim.list_slice(session.messages, 1, index - 1)
  local question, answer, after
  if text == "" then
    local is_answer = old_answer and old_answer.role == "assistant"
    answer = turns.new_message("assistant", "", is_answer and old_answer or nil)
    question, after, old = old, old, nil
  else
    answer = turns.new_message("assistant", "")
    question, after = turns.new_message("user", text, old), before[#before]
  end
  local params = M.params(session, text, after and after.number or 0, opts, old)
  begin(session, index, params, question, answer, draft, before)
end

--- Send the user's decision about the call with which the last answer ends.
---@param session lcursor.ChatSession
---@param entry lcursor.ChatEntry of the answer
---@param call { call: string, choice: string, reason: string } its block in Markdown, the decision
function M.call(session, entry, call)
  if turns.is_busy(session) then
    return
  end
  local params = {
    chat = session.key,
    after = entry.message.number,
    text = call.reason,
    path = buffers.here(),
    attachments = {},
    dropped = {},
    model = "",
    again = 0,
    call = call.call,
    choice = call.choice,
  }
  local question = turns.new_message("result", "")
  local answer = turns.new_message("assistant", "")
  local draft, before = entries.draft_text(session), vim.list_slice(session.messages)
  begin(session, #session.entries, params, question, answer, draft, before)
end

local function can_send(session, text)
  if text == "" then
    notify.info("nothing to send: write below the last heading")
  end
  return text ~= "" and api.nvim_buf_is_loaded(session.buf)
end

local function leave_insert(session)
  if api.nvim_get_current_buf() == session.buf then
    vim.cmd.stopinsert()
  end
end

--- Ask a question that is not in the buffer; the draft stays.
---@param session lcursor.ChatSession
---@param text string
---@param opts lcursor.ChatAsk
function M.ask(session, text, opts)
  text = vim.trim(text)
  if not can_send(session, text) or turns.is_busy(session) then
    return
  end
  if session.key == "" and entries.draft_text(session) == "" then
    entries.set_draft(session, text) -- so that it is not lost if the chat cannot be opened
    return M.send(session, opts, entries.draft(session))
  end
  load.when_open(session, function()
    if not session.turn then
      start(session, #session.entries, text, entries.draft_text(session), opts)
    end
  end)
end

local function send_draft(session, opts)
  local text = entries.draft_text(session)
  local task = text:match("^/agent%s+(.*)$")
  if task then
    leave_insert(session)
    entries.set_draft(session, "")
    return require("lcursor.agent").call({ task = task })
  end
  if session.turn and text ~= "" then
    session.turn.is_followed = true
    leave_insert(session)
    return window.draw(session)
  elseif not can_send(session, text) or turns.is_busy(session) then
    return
  end
  leave_insert(session)
  load.when_open(session, function()
    local is_loaded = api.nvim_buf_is_loaded(session.buf)
    text = is_loaded and entries.draft_text(session) or ""
    if text == "" or session.turn then
      return
    end
    if not buffer.is_whole(session) then
      buffer.render(session, text) -- headings were deleted
    end
    start(session, #session.entries, text, "", opts)
  end)
end

--- Send the message at the cursor: an edited earlier question or answer becomes a branch; anywhere
--- else the draft is sent.
---@param session lcursor.ChatSession
---@param opts lcursor.ChatAsk
---@param entry? lcursor.ChatEntry instead of the one at the cursor
function M.send(session, opts, entry)
  entry = entry or entries.at_cursor(session)
  local text = buffer.edited(session, entry) or ""
  if text == "" then
    return send_draft(session, opts)
  elseif turns.is_busy(session) then
    return
  end
  leave_insert(session)
  load.when_open(session, function()
    local message = assert(entry.message)
    if message.role == "assistant" then
      return load.change(session, "chat.amend", { number = message.number, text = text })
    end
    local index = entries.index(session, entry)
    if index then
      start(session, index, text, entries.draft_text(session), opts)
    end
  end)
end

--- Answer the question at the cursor again; the old answer stays on its branch.
---@param session lcursor.ChatSession
---@param opts lcursor.ChatAsk
function M.regenerate(session, opts)
  local _, index = buffer.question_at_cursor(session)
  if not index then
    return notify.info("no question to answer again")
  elseif turns.is_busy(session) then
    return
  end
  start(session, index, "", entries.draft_text(session), opts)
end

return M
