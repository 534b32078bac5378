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
  }
end

---@class (exact) lcursor.ChatStart
---@field index integer of the entry that holds the question
---@field text string "" to answer an earlier question again
---@field old? lcursor.ChatMessage an earlier question that is replaced, or answered again
---@field draft string that stays at the end

--- Return the question and the answer that begin, and the messages that stay before them.
---@param plan lcursor.ChatStart
---@return lcursor.ChatMessage question
---@return lcursor.ChatMessage answer
---@return lcursor.ChatMessage[] before
local function new_messages(session, plan)
  local all, old = session.messages, plan.old
  local at = not old and #all + 1 or buffer.find(session, old.number) or 1
  local before = vim.list_slice(all, 1, at - 1)
  if plan.text ~= "" then
    local question = turns.new_message("user", plan.text, old)
    return question, turns.new_message("assistant", ""), before
  end
  local answer = all[at + 1]
  answer = answer and answer.role == "assistant" and answer or nil
  return assert(old), turns.new_message("assistant", "", answer), before
end

--- Ask a question: after the last message, or in place of an earlier one, on another branch.
---@param plan lcursor.ChatStart
---@param opts lcursor.ChatAsk
local function start(session, plan, opts)
  local turn ---@type lcursor.ChatTurn
  local question, answer, before = new_messages(session, plan)
  local is_again = question == plan.old
  local last = is_again and question or before[#before]
  local old = not is_again and plan.old or nil
  local params = M.params(session, plan.text, last and last.number or 0, opts, old)
  local id = requests.follow("chat.send", params, function(method, message)
    turns.handle(session, turn, method, message)
  end)
  if not id then
    return
  end
  local heading = entries.rows(session, session.entries[plan.index], plan.index)
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
    text = plan.text,
  }
  session.failure = nil
  session.messages = vim.list_extend(before, { question, answer })
  turns.show(session, turn, plan.index, plan.draft)
  session.turn = turn
  for _, win in ipairs(following) do
    window.to_end(session, win)
  end
  entries.decorate_all(session)
  window.draw(session)
end

--- Call a function once the host has opened the chat.
local function when_open(session, fn)
  if session.key ~= "" then
    return fn()
  end
  table.insert(session.waiting, fn)
  if session.failure then
    load.open(session, "")
  end
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
  if session.key == "" and buffer.draft(session) == "" then
    entries.set_draft(session, text) -- so that it is not lost if the chat cannot be opened
    return M.send(session, opts, entries.draft(session))
  end
  when_open(session, function()
    if not session.turn then
      local index, draft = #session.entries, buffer.draft(session)
      start(session, { index = index, text = text, draft = draft }, opts)
    end
  end)
end

local function send_draft(session, opts)
  local text = buffer.draft(session)
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
  elseif not can_send(session, text) then
    return
  end
  leave_insert(session)
  when_open(session, function()
    local is_loaded = api.nvim_buf_is_loaded(session.buf)
    text = is_loaded and buffer.draft(session) or ""
    if text == "" or session.turn then
      return
    end
    if not buffer.is_whole(session) then
      buffer.render(session, text) -- headings were deleted
    end
    start(session, { index = #session.entries, text = text, draft = "" }, opts)
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
  when_open(session, function()
    local message = assert(entry.message)
    if message.role == "assistant" then
      return load.change(session, "chat.amend", { number = message.number, text = text })
    end
    local index = entries.index(session, entry)
    if index then
      local plan = { index = index, text = text, old = message, draft = buffer.draft(session) }
      start(session, plan, opts)
    end
  end)
end

--- Answer the question at the cursor again; the old answer stays on its branch.
---@param session lcursor.ChatSession
---@param opts lcursor.ChatAsk
function M.regenerate(session, opts)
  local entry, index = buffer.question_at_cursor(session)
  if not entry or not index then
    return notify.info("no question to answer again")
  elseif turns.is_busy(session) then
    return
  end
  local draft = buffer.draft(session)
  start(session, { index = index, text = "", old = entry.message, draft = draft }, opts)
end

return M
