-- What the buffer of a chat shows: its messages, which the user may edit, and the draft.

local calls = require("lcursor.chat.calls")
local entries = require("lcursor.conversation.entries")
local format = require("lcursor.chat.format")
local keymaps = require("lcursor.editor.keymaps")
local mentions = require("lcursor.editor.mentions")
local ui_notes = require("lcursor.ui.notes")
local wrap = require("lcursor.text.wrap")

local M = {}

local api = vim.api

local GROUPS = {
  user = "LCursorChatUser",
  draft = "LCursorChatUser",
  assistant = "LCursorChatModel",
  summary = "LCursorChatSummary",
  result = "LCursorChatSummary",
}

---@class (exact) lcursor.ChatEntry: lcursor.Entry
---@field kind "user"|"assistant"|"summary"|"result"|"draft"
---@field message? lcursor.ChatMessage nil for the draft
---@field is_open? boolean of an answer: it is streamed
---@field note? string after its heading, if the user has edited the message

--- Return the first line of an entry.
---@param entry lcursor.ChatEntry
---@return string
function M.heading(entry)
  return format.HEADINGS[entry.kind]
end

--- Return the lines of an entry and which of them are folded.
---@param entry lcursor.ChatEntry
---@param before? lcursor.ChatEntry
---@return string[]
---@return integer[][] folds first and last row, from 0
function M.body(entry, before)
  local message, lines = entry.message, { M.heading(entry), "" }
  if not message then
    return vim.list_extend(lines, vim.split(entry.text, "\n", { plain = true })), {}
  elseif entry.is_open then
    return vim.list_extend(lines, { "", "" }), {}
  end
  local is_answer = entry.kind == "assistant"
  local question = is_answer and before and before.kind == "user" and before.message
  local body, folds = format.body(message, question and question.items or {})
  folds = vim.tbl_map(function(fold)
    return { #lines + fold[1], #lines + fold[2] }
  end, folds)
  return vim.list_extend(lines, body), folds
end

--- Highlight a heading and show a note after it, or below it in a narrow window.
local function decorate_heading(session, entry, row)
  local line = api.nvim_buf_get_lines(session.buf, row, row + 1, false)[1] or ""
  local is_heading = line == M.heading(entry)
  local text = entry.note or (entry.message and format.heading_note(entry.message)) or ""
  local chunks, width = { { text, "LCursorChatNote" } }, ui_notes.width(session.buf)
  local fits = api.nvim_strwidth(line .. " " .. text) <= width
  api.nvim_buf_set_extmark(session.buf, entries.notes, row, 0, {
    end_row = is_heading and row or nil,
    end_col = is_heading and #line or nil,
    hl_group = is_heading and GROUPS[entry.kind] or nil,
    priority = 200,
    virt_text = text ~= "" and fits and chunks or nil,
    virt_lines = not fits and wrap.rows(chunks, width) or nil,
  })
end

--- Wrap an error for the narrowest window of the chat: virtual lines do not wrap by themselves.
---@return lcursor.Chunk[][]
local function error_lines(buf, text)
  return wrap.rows({ { "✗ " .. text, "LCursorChatFailed" } }, ui_notes.width(buf))
end

--- Show what the next question leaves out or has with it, why the last one failed, and a hint in an
--- empty chat.
local function decorate_draft(session, draft, heading, last)
  local buf, names = session.buf, {}
  for _, attachment in ipairs(session.attached) do
    table.insert(names, "+ " .. attachment.name)
  end
  for _, key in ipairs(session.dropped) do
    table.insert(names, "− " .. key)
  end
  if #names > 0 then
    local chunks = { { table.concat(names, "  "), "LCursorChatNote" } }
    ui_notes.set(buf, entries.notes, heading, chunks, { virt_lines_above = false })
  end
  local failure = session.failure
  if failure then
    local hint = failure.hint ~= "" and (". " .. failure.hint) or ""
    local lines = error_lines(buf, failure.message .. hint)
    api.nvim_buf_set_extmark(buf, entries.notes, heading, 0, {
      virt_lines = heading > 0 and vim.list_extend(lines, { { { "" } } }) or lines,
      virt_lines_above = heading > 0, -- not visible above the first line
    })
  end
  if #session.messages == 0 and entries.text(session, draft) == "" then
    local send, help = keymaps.shown("chat", "send", buf), keymaps.shown("chat", "help", buf)
    local text = send and ("Ask here; %s sends"):format(send) or "Ask here"
    text = help and ("%s, %s lists the keys"):format(text, help) or text
    local rows = wrap.rows({ { text, "LCursorChatNote" } }, ui_notes.width(buf))
    api.nvim_buf_set_extmark(buf, entries.notes, last - 1, 0, {
      virt_text = rows[1],
      virt_text_pos = "overlay",
      virt_lines = vim.list_slice(rows, 2),
    })
  end
end

--- Show what the text of an entry does not say.
---@param session lcursor.ChatSession
---@param entry lcursor.ChatEntry
---@param first integer row
---@param last integer row after it
function M.decorate(session, entry, first, last)
  local message = entry.message
  decorate_heading(session, entry, first)
  if not message then
    return decorate_draft(session, entry, first, last)
  end
  if calls.waiting(session) == entry then
    local rows =
      wrap.rows({ { calls.hint(session), "LCursorAgentAsks" } }, ui_notes.width(session.buf))
    api.nvim_buf_set_extmark(session.buf, entries.notes, math.max(last - 1, first), 0, {
      virt_lines = vim.list_extend(rows, { { { "" } } }),
    })
  end
  local is_newest = session.entries[#session.entries - 1] == entry
  local is_explained = session.failure and is_newest -- at the draft
  if message.why ~= "" and not is_explained then
    local lines = vim.list_extend(error_lines(session.buf, message.why), { { { "" } } })
    api.nvim_buf_set_extmark(session.buf, entries.notes, math.max(last - 1, first), 0, {
      virt_lines = lines,
    })
  end
end

--- Return the question that the cursor is in or below; the last one if it is in another buffer.
---@param session lcursor.ChatSession
---@return lcursor.ChatEntry?
---@return integer? index
function M.question_at_cursor(session)
  local _, index = entries.at_cursor(session)
  for i = index, 1, -1 do
    if session.entries[i].kind == "user" then
      return session.entries[i], i
    end
  end
end

--- Return the text of a message that the user has edited.
---@param session lcursor.ChatSession
---@param entry lcursor.ChatEntry
---@return string? text nil if it is unchanged or still written
function M.edited(session, entry)
  local message = entry.message
  local turn = session.turn
  local is_fixed = message and (message.role == "summary" or message.role == "result")
  if not message or is_fixed or (turn and turn.answer == message) then
    return nil
  end
  local text, original = entries.text(session, entry), message.text
  if message.role == "assistant" then
    text = format.answer(text)
    original = original:gsub("\r\n", "\n"):gsub("^%s*\n", ""):gsub("%s+$", "")
  end
  return text ~= original and text or nil
end

--- Return the mention or command that is typed at the cursor, in the draft or in a question.
---@param session lcursor.ChatSession
---@return string? word
---@return integer? col from 0
function M.mention(session)
  local buf = session.buf
  local cursor = api.nvim_win_get_cursor(0)
  local row = cursor[1] - 1
  local entry = entries.at(session, row)
  if entry.kind ~= "user" and entry.kind ~= "draft" then
    return nil
  end
  local first = entries.content(session, entry)
  local above = api.nvim_buf_get_lines(buf, first, math.max(row, first), false)
  local text = table.concat(above, "\n")
  local before = api.nvim_get_current_line():sub(1, cursor[2])
  local word, col = mentions.word(before, not text:find("%S"))
  -- A marker in place of the word shows whether it is in code.
  local marked = text .. "\n" .. before:sub(1, col or 0) .. "\1"
  if word and mentions.without_code(marked):find("\1", 1, true) then
    return word, col
  end
end

---@param session lcursor.ChatSession
---@return boolean whether all headings are in place
function M.is_whole(session)
  return vim.iter(ipairs(session.entries)):all(function(i, entry)
    local first, _, begin = entries.content(session, entry, i)
    return first > begin
  end)
end

---@param message lcursor.ChatMessage
---@return lcursor.ChatEntry
function M.entry(message)
  return { kind = message.role, mark = 0, message = message }
end

--- Write the whole chat again.
---@param session lcursor.ChatSession
---@param draft string
function M.render(session, draft)
  session.entries = vim.tbl_map(M.entry, session.messages)
  table.insert(session.entries, { kind = "draft", mark = 0 })
  entries.render(session, draft)
end

--- Begin an answer: it replaces what is below its question; the draft stays.
---@param session lcursor.ChatSession
---@param index integer of the entry that becomes the question
---@param question lcursor.ChatMessage
---@param answer lcursor.ChatMessage
---@param draft string
---@return lcursor.ChatEntry of the answer
function M.begin_answer(session, index, question, answer, draft)
  local buf, entry = session.buf, session.entries[index]
  local first, last = entries.content(session, entry, index)
  local lines = { "" }
  if entries.text(session, entry) == question.text then
    while last > first and not api.nvim_buf_get_lines(buf, last - 1, last, false)[1]:find("%S") do
      last = last - 1
    end
  else
    lines = vim.split("\n" .. question.text .. "\n", "\n", { plain = true })
    last = first
  end
  entry.kind, entry.message, entry.note = question.role, question, nil
  entries.cut(session, index)
  local below = M.entry(answer)
  below.is_open = true
  local new_draft = { kind = "draft", mark = 0, text = draft }
  entries.append(session, last, lines, { below, new_draft })
  entries.decorate_all(session)
  return below
end

return M
