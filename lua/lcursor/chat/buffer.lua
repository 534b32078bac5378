-- The Markdown buffer of a chat: a heading for each message, and a draft at the end. An extmark at
-- each heading says which message the lines below belong to. Writes complete messages; stream.lua
-- writes an answer while it comes.

local format = require("lcursor.chat.format")
local highlights = require("lcursor.ui.highlights")
local keymaps = require("lcursor.editor.keymaps")
local transcript = require("lcursor.ui.transcript")
local ui_notes = require("lcursor.ui.notes")
local wrap = require("lcursor.text.wrap")

local M = {}

local api = vim.api

M.namespace = api.nvim_create_namespace("lcursor.chat")
local notes = api.nvim_create_namespace("lcursor.chat.notes")

local HEADINGS = format.HEADINGS
local GROUPS = {
  user = "LCursorChatUser",
  assistant = "LCursorChatModel",
  summary = "LCursorChatSummary",
}

--- Highlight Markdown. The language is not registered for the filetype: plugins would take what a
--- model wrote for a document of the user, and fetch its images.
---@param buf integer
function M.set_filetype(buf)
  local is_highlighted = pcall(vim.treesitter.start, buf, "markdown")
  transcript.set_filetype(buf, "lcursor_chat")
  if not is_highlighted then
    vim.bo[buf].syntax = "markdown"
  end
end

---@param number integer of the session
---@return integer buf
function M.create(number)
  highlights.apply()
  local buf = transcript.create("chat/" .. number)
  M.set_filetype(buf)
  return buf
end

--- Change the buffer without undo: `u` neither reverts this nor anything before it.
---@param session lcursor.ChatSession
---@param change fun(buf: integer)
function M.without_undo(session, change)
  local ok, err = pcall(transcript.without_undo, session.buf, change)
  session.tick = api.nvim_buf_get_changedtick(session.buf)
  if not ok then
    error(err, 0)
  end
end

--- 'foldtext'.
---@return string
function M.foldtext()
  local line = vim.fn.getline(vim.v.foldstart)
  local info = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  return format.fold(line, vim.v.foldend - vim.v.foldstart + 1, info.width - info.textoff)
end

---@return integer?
local function row_of(session, mark)
  return api.nvim_buf_get_extmark_by_id(session.buf, M.namespace, mark, {})[1]
end

---@return "user"|"assistant"|"summary"
local function role_of(span)
  return span.message and span.message.role or "user"
end

--- Highlight a heading and show a note after it, or below it in a narrow window.
---@param session lcursor.ChatSession
---@param span lcursor.ChatSpan
---@param row? integer of the heading if it is known
---@param note? string instead of the usual one
function M.mark_heading(session, span, row, note)
  row = row or row_of(session, span.mark)
  if not row then
    return
  end
  local text = note or (span.message and format.heading_note(span.message)) or ""
  local role = role_of(span)
  local line = api.nvim_buf_get_lines(session.buf, row, row + 1, false)[1] or ""
  local is_heading = line == HEADINGS[role]
  local chunks, width = { { text, "LCursorChatNote" } }, ui_notes.width(session.buf)
  local fits = api.nvim_strwidth(line .. " " .. text) <= width
  span.note = note
  span.mark = api.nvim_buf_set_extmark(session.buf, M.namespace, row, 0, {
    id = span.mark ~= 0 and span.mark or nil,
    end_row = is_heading and row or nil,
    end_col = is_heading and #line or nil,
    hl_group = is_heading and GROUPS[role] or nil,
    priority = 200,
    virt_text = text ~= "" and fits and chunks or nil,
    virt_lines = not fits and wrap.rows(chunks, width) or nil,
  })
end

---@param row integer of the heading
---@return lcursor.ChatSpan
local function new_span(session, row, message)
  local span = { mark = 0, message = message }
  M.mark_heading(session, span, row)
  return span
end

---@param session lcursor.ChatSession
---@param span lcursor.ChatSpan
---@param index? integer of the span if it is known: a long chat has many
---@return integer first row below its heading
---@return integer last row after the last
---@return integer heading its row
function M.rows(session, span, index)
  local buf = session.buf
  for i, other in ipairs(index and {} or session.spans) do
    index = other == span and i or index
  end
  local row = row_of(session, span.mark) or 0
  local after = index and session.spans[index + 1]
  local last = after and row_of(session, after.mark) or api.nvim_buf_line_count(buf)
  local line = api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
  local first = line == HEADINGS[role_of(span)] and row + 1 or row
  return math.min(first, last), last, row
end

---@param session lcursor.ChatSession
---@param row integer
---@return lcursor.ChatSpan
---@return integer index
function M.span_at(session, row)
  local index = 1
  for i, span in ipairs(session.spans) do
    local heading = row_of(session, span.mark)
    index = heading and heading <= row and i or index
  end
  return session.spans[index], index
end

--- Return the span at the cursor; the draft if the cursor is in another buffer.
---@param session lcursor.ChatSession
---@return lcursor.ChatSpan
---@return integer index
function M.span_at_cursor(session)
  if api.nvim_get_current_buf() == session.buf then
    return M.span_at(session, api.nvim_win_get_cursor(0)[1] - 1)
  end
  return M.draft(session), #session.spans
end

--- Return the question that the cursor is in or below; the last one if it is in another buffer.
---@param session lcursor.ChatSession
---@return lcursor.ChatSpan?
---@return integer? index
function M.question_at_cursor(session)
  local _, index = M.span_at_cursor(session)
  for i = index, 1, -1 do
    local span = session.spans[i]
    if span.message and span.message.role == "user" then
      return span, i
    end
  end
end

--- Return the text below a heading, without surrounding blank lines.
---@param session lcursor.ChatSession
---@param span lcursor.ChatSpan
---@return string
function M.text(session, span)
  local first, last = M.rows(session, span)
  local lines = api.nvim_buf_get_lines(session.buf, first, last, false)
  return (table.concat(lines, "\n"):gsub("^%s*\n", ""):gsub("%s+$", ""))
end

--- Return the text of a message that the user has edited.
---@param session lcursor.ChatSession
---@param span lcursor.ChatSpan
---@return string? text nil if it is unchanged or still written
function M.edited(session, span)
  local message = span.message
  local turn = session.turn
  if not message or message.role == "summary" or (turn and turn.answer == message) then
    return nil
  end
  local text, original = M.text(session, span), message.text
  if message.role == "assistant" then
    text = format.answer(text)
    original = original:gsub("\r\n", "\n"):gsub("^%s*\n", ""):gsub("%s+$", "")
  end
  return text ~= original and text or nil
end

--- Return the span in which the next question is written.
---@param session lcursor.ChatSession
---@return lcursor.ChatSpan
function M.draft(session)
  return session.spans[#session.spans]
end

---@param session lcursor.ChatSession
---@return boolean whether all headings are in place
function M.is_whole(session)
  for i, span in ipairs(session.spans) do
    local first, last, row = M.rows(session, span, i)
    if first ~= row + 1 or last < first then
      return false
    end
  end
  return #session.spans > 0
end

--- Write the whole chat again.
---@param session lcursor.ChatSession
---@param draft string
function M.render(session, draft)
  local lines, starts, folded, items = {}, {}, {}, {}
  for i, message in ipairs(session.messages) do
    starts[i] = #lines
    local body, body_folds = format.body(message, message.role == "assistant" and items or {})
    items = message.role == "user" and message.items or {}
    vim.list_extend(lines, { HEADINGS[message.role], "" })
    for _, fold in ipairs(body_folds) do
      table.insert(folded, { #lines + fold[1], #lines + fold[2] })
    end
    vim.list_extend(lines, body)
  end
  table.insert(starts, #lines)
  vim.list_extend(lines, { HEADINGS.user, "" })
  vim.list_extend(lines, vim.split(draft, "\n", { plain = true }))
  transcript.unfold(session.buf)
  M.without_undo(session, function(buf)
    for _, namespace in ipairs({ M.namespace, notes }) do
      api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    end
    api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  end)
  session.spans = {}
  for i, row in ipairs(starts) do
    session.spans[i] = new_span(session, row, session.messages[i])
  end
  for _, fold in ipairs(folded) do
    transcript.fold(session.buf, fold[1], fold[2])
  end
  M.annotate(session)
end

--- Begin an answer: it replaces what is below its question; the draft stays.
---@param session lcursor.ChatSession
---@param index integer of the span that holds the question
---@param question lcursor.ChatMessage
---@param answer lcursor.ChatMessage
---@param draft string
---@return lcursor.ChatSpan span of the answer
---@return integer row where the answer begins
function M.begin_answer(session, index, question, answer, draft)
  local span = session.spans[index]
  local first, last = M.rows(session, span)
  local row
  M.without_undo(session, function(buf)
    local is_same = M.text(session, span) == question.text
    span.message = question
    if is_same then
      while last > first and not api.nvim_buf_get_lines(buf, last - 1, last, false)[1]:find("%S") do
        last = last - 1
      end
    else
      local lines = vim.split("\n" .. question.text, "\n", { plain = true })
      api.nvim_buf_set_lines(buf, first, last, false, lines)
      last = first + #lines
    end
    local lines = { "", HEADINGS.assistant, "", "", "", HEADINGS.user, "" }
    vim.list_extend(lines, vim.split(draft, "\n", { plain = true }))
    for i = index + 1, #session.spans do
      api.nvim_buf_del_extmark(buf, M.namespace, session.spans[i].mark)
    end
    api.nvim_buf_clear_namespace(buf, notes, 0, -1)
    api.nvim_buf_set_lines(buf, last, -1, false, lines)
    row = last + 1
  end)
  session.spans = vim.list_slice(session.spans, 1, index)
  M.mark_heading(session, span)
  local below = new_span(session, row, answer)
  vim.list_extend(session.spans, { below, new_span(session, row + 4) })
  return below, row + 2
end

--- Insert a message before another one.
---@param session lcursor.ChatSession
---@param index integer of the span that it comes before
---@param message lcursor.ChatMessage
function M.insert(session, index, message)
  local _, _, row = M.rows(session, session.spans[index])
  local body, body_folds = format.body(message, {})
  M.without_undo(session, function(buf)
    local lines = vim.list_extend({ HEADINGS[message.role], "" }, body)
    api.nvim_buf_set_lines(buf, row, row, false, lines)
  end)
  table.insert(session.spans, index, new_span(session, row, message))
  for _, fold in ipairs(body_folds) do
    transcript.fold(session.buf, row + 2 + fold[1], row + 2 + fold[2])
  end
end

--- Replace the draft, as if it were typed: `u` reverts it.
---@param session lcursor.ChatSession
---@param text string
function M.set_draft(session, text)
  local first, last = M.rows(session, M.draft(session))
  local lines = vim.split("\n" .. text, "\n", { plain = true })
  api.nvim_buf_set_lines(session.buf, first, last, false, lines)
  M.annotate(session)
end

--- Wrap an error for the narrowest window of the chat: virtual lines do not wrap by themselves.
---@return lcursor.Chunk[][]
local function error_lines(buf, text)
  return wrap.rows({ { "✗ " .. text, "LCursorChatFailed" } }, ui_notes.width(buf))
end

--- Show why earlier answers are incomplete.
local function annotate_answers(session)
  local count = session.failure and #session.spans - 2 or #session.spans - 1
  for i = 1, count do
    local message = session.spans[i].message
    if message and message.is_partial and message.why ~= "" then
      local _, last = M.rows(session, session.spans[i], i)
      api.nvim_buf_set_extmark(session.buf, notes, last, 0, {
        virt_lines = vim.list_extend(error_lines(session.buf, message.why), { { { "" } } }),
        virt_lines_above = true,
      })
    end
  end
end

--- Show what the text does not say: attachments, errors, and a hint in an empty chat.
---@param session lcursor.ChatSession
function M.annotate(session)
  local buf, draft = session.buf, M.draft(session)
  api.nvim_buf_clear_namespace(buf, notes, 0, -1)
  if not draft then
    return
  end
  annotate_answers(session)
  local _, last, heading = M.rows(session, draft, #session.spans)
  local names = {}
  for _, attachment in ipairs(session.attached) do
    table.insert(names, "+ " .. attachment.name)
  end
  for _, key in ipairs(session.dropped) do
    table.insert(names, "− " .. key)
  end
  if #names > 0 then
    local chunks = { { table.concat(names, "  "), "LCursorChatNote" } }
    ui_notes.set(buf, notes, heading, chunks, { virt_lines_above = false })
  end
  local failure = session.failure
  if failure then
    local hint = failure.hint ~= "" and (". " .. failure.hint) or ""
    local lines = error_lines(buf, failure.message .. hint)
    api.nvim_buf_set_extmark(buf, notes, heading, 0, {
      virt_lines = heading > 0 and vim.list_extend(lines, { { { "" } } }) or lines,
      virt_lines_above = heading > 0, -- not visible above the first line
    })
  end
  if #session.messages == 0 and M.text(session, draft) == "" then
    local send, help = keymaps.shown("chat", "send", buf), keymaps.shown("chat", "help", buf)
    local text = send and ("Ask here; %s sends"):format(send) or "Ask here"
    text = help and ("%s, %s lists the keys"):format(text, help) or text
    local rows = wrap.rows({ { text, "LCursorChatNote" } }, ui_notes.width(buf))
    api.nvim_buf_set_extmark(buf, notes, last - 1, 0, {
      virt_text = rows[1],
      virt_text_pos = "overlay",
      virt_lines = vim.list_slice(rows, 2),
    })
  end
end

return M
