-- The markdown buffer of a chat: a heading for each message, and a draft at the end. Extmarks at
-- the headings say what belongs to which message. Writes only what is whole; stream.lua writes what
-- comes piece by piece.

local highlights = require("lcursor.ui.highlights")
local paint = require("lcursor.chat.paint")
local words = require("lcursor.chat.words")

local M = {}

local api = vim.api

M.namespace = api.nvim_create_namespace("lcursor.chat")
local notes = api.nvim_create_namespace("lcursor.chat.notes")

local HEADINGS = words.HEADINGS
local GROUPS = {
  user = "LCursorChatUser",
  assistant = "LCursorChatModel",
  summary = "LCursorChatSummary",
}

---@param number integer of the session
---@return integer buf
function M.create(number)
  highlights.apply()
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_name(buf, "lcursor://chat/" .. number)
  vim.bo[buf].bufhidden, vim.bo[buf].swapfile = "hide", false
  vim.bo[buf].filetype = "markdown"
  paint.take(buf)
  return buf
end

--- Change the buffer so that `u` neither takes it back nor goes before it.
---@param session lcursor.ChatSession
---@param change fun(buf: integer)
function M.quietly(session, change)
  local buf = session.buf
  local bo = vim.bo[buf]
  local levels, modifiable = bo.undolevels, bo.modifiable
  bo.undolevels, bo.modifiable = -1, true
  local ok, err = pcall(change, buf)
  bo.undolevels, bo.modifiable, bo.modified = levels, modifiable, false
  session.undone = {}
  if not ok then
    error(err, 0)
  end
end

---@param message? lcursor.ChatMessage
---@return string
local function role_of(message)
  return message and message.role or "user"
end

--- Say at a heading what is to be known of its message.
---@param session lcursor.ChatSession
---@param span lcursor.ChatSpan
---@param row? integer of its heading, where it is known
---@param note? string in place of what is known
function M.badge(session, span, row, note)
  row = row or api.nvim_buf_get_extmark_by_id(session.buf, M.namespace, span.mark, {})[1]
  if not row then
    return
  end
  local text = note or (span.message and words.badge(span.message)) or ""
  local line = api.nvim_buf_get_lines(session.buf, row, row + 1, false)[1] or ""
  local group = line == HEADINGS[role_of(span.message)] and GROUPS[role_of(span.message)] or nil
  span.mark = api.nvim_buf_set_extmark(session.buf, M.namespace, row, 0, {
    id = span.mark ~= 0 and span.mark or nil,
    end_row = group and row or nil,
    end_col = group and #line or nil,
    hl_group = group,
    priority = 200,
    virt_text = text ~= "" and { { text, "LCursorChatNote" } } or nil,
  })
end

---@param session lcursor.ChatSession
---@param row integer of the heading
---@param message? lcursor.ChatMessage
---@return lcursor.ChatSpan
local function add_span(session, row, message)
  local span = { mark = 0, message = message }
  M.badge(session, span, row)
  return span
end

---@param session lcursor.ChatSession
---@param span lcursor.ChatSpan
---@param index? integer of the span, where it is known: a long chat has many
---@return integer first row of what is below its heading
---@return integer last row behind it
---@return integer heading its row
function M.rows(session, span, index)
  local buf = session.buf
  local row = api.nvim_buf_get_extmark_by_id(buf, M.namespace, span.mark, {})[1] or 0
  local last = api.nvim_buf_line_count(buf)
  for i, other in ipairs(index and {} or session.spans) do
    index = other == span and i or index
  end
  local next_span = index and session.spans[index + 1]
  if next_span then
    last = api.nvim_buf_get_extmark_by_id(buf, M.namespace, next_span.mark, {})[1] or last
  end
  local line = api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
  local first = line == HEADINGS[role_of(span.message)] and row + 1 or row
  return math.min(first, last), last, row
end

---@param session lcursor.ChatSession
---@param row integer
---@return lcursor.ChatSpan
---@return integer index
function M.at(session, row)
  local found, index = session.spans[1], 1
  for i, span in ipairs(session.spans) do
    local mark = api.nvim_buf_get_extmark_by_id(session.buf, M.namespace, span.mark, {})
    if mark[1] and mark[1] <= row then
      found, index = span, i
    end
  end
  return found, index
end

---@param session lcursor.ChatSession
---@return integer? index of the span of the question that the cursor is at, or was asked last
function M.question_at(session)
  local _, index = nil, #session.spans
  if api.nvim_get_current_buf() == session.buf then
    _, index = M.at(session, api.nvim_win_get_cursor(0)[1] - 1)
  end
  for i = index, 1, -1 do
    local asked = session.spans[i].message
    if asked and asked.role == "user" then
      return i
    end
  end
end

--- What stands under a heading, without blank lines around it.
---@param session lcursor.ChatSession
---@param span lcursor.ChatSpan
---@return string
function M.text(session, span)
  local first, last = M.rows(session, span)
  local lines = api.nvim_buf_get_lines(session.buf, first, last, false)
  return (table.concat(lines, "\n"):gsub("^%s*\n", ""):gsub("%s+$", ""))
end

--- The text of a message that the user has changed.
---@param session lcursor.ChatSession
---@param span lcursor.ChatSpan
---@return string? text nil where it stands as it was said, or is still being written
function M.changed(session, span)
  local message = span.message
  local turn = session.turn
  if not message or message.role == "summary" or (turn and turn.answer == message) then
    return nil
  elseif message.role == "user" then
    local text = M.text(session, span)
    return text ~= message.text and text or nil
  end
  local was = message.text:gsub("\r\n", "\n"):gsub("^%s*\n", ""):gsub("%s+$", "")
  local text = words.own(M.text(session, span))
  return text ~= was and text or nil
end

---@param session lcursor.ChatSession
---@return lcursor.ChatSpan where the next question is written
function M.draft(session)
  return session.spans[#session.spans]
end

---@param session lcursor.ChatSession
---@return boolean whether the headings stand where they should
function M.is_whole(session)
  for i, span in ipairs(session.spans) do
    local first, last, row = M.rows(session, span, i)
    if first ~= row + 1 or last < first then
      return false
    end
  end
  return #session.spans > 0
end

---@param message lcursor.ChatMessage
---@param items lcursor.ChatItem[] what was attached to its question
---@return string[] lines
---@return { first: integer, last: integer }[] folds 0-based
local function body(message, items)
  local lines, folds = {}, {}
  local function fold(block)
    if #block > 0 then
      table.insert(folds, { first = #lines, last = #lines + #block - 1 })
      vim.list_extend(lines, block)
      table.insert(lines, "")
    end
  end
  fold(words.context(items))
  if message.reasoning ~= "" then
    local text = "> thinking\n> " .. words.quote(vim.trim(message.reasoning))
    fold(vim.split(text, "\n", { plain = true }))
  end
  local text = message.text:gsub("\r\n", "\n"):gsub("%s+$", "")
  local said = vim.split(text, "\n", { plain = true })
  if message.role == "summary" then
    table.insert(said, 1, "> earlier messages, summarized")
    fold(said)
    table.remove(lines)
  else
    vim.list_extend(lines, said)
  end
  return lines, folds
end

--- Write a chat anew, all of it.
---@param session lcursor.ChatSession
---@param draft string
function M.render(session, draft)
  local lines, spans, folded = {}, {}, {}
  local items = {}
  for _, message in ipairs(session.messages) do
    table.insert(spans, { row = #lines, message = message })
    local text, folds = body(message, message.role == "assistant" and items or {})
    items = message.role == "user" and message.items or {}
    vim.list_extend(lines, { HEADINGS[message.role], "" })
    for _, fold in ipairs(folds) do
      table.insert(folded, { first = #lines + fold.first, last = #lines + fold.last })
    end
    vim.list_extend(lines, text)
    table.insert(lines, "")
  end
  table.insert(spans, { row = #lines })
  vim.list_extend(lines, { HEADINGS.user, "" })
  vim.list_extend(lines, vim.split(draft, "\n", { plain = true }))
  require("lcursor.chat.folds").clear(session)
  M.quietly(session, function(buf)
    api.nvim_buf_clear_namespace(buf, M.namespace, 0, -1)
    api.nvim_buf_clear_namespace(buf, notes, 0, -1)
    api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  end)
  session.stream = nil
  session.spans = vim.tbl_map(function(span)
    return add_span(session, span.row, span.message)
  end, spans)
  for _, fold in ipairs(folded) do
    require("lcursor.chat.folds").add(session, fold.first, fold.last)
  end
  M.placeholder(session)
  paint.all(session.buf)
end

--- A question is asked: its answer goes below it in place of what stood there; the draft stays.
---@param session lcursor.ChatSession
---@param index integer of the span that the question stands in
---@param question lcursor.ChatMessage
---@param answer lcursor.ChatMessage
---@param draft string
---@return lcursor.ChatSpan span of the answer
---@return integer row where the answer begins
function M.begin(session, index, question, answer, draft)
  local span = session.spans[index]
  local first, last = M.rows(session, span)
  local row
  M.quietly(session, function(buf)
    local said = vim.split(question.text, "\n", { plain = true })
    local shown = M.text(session, span)
    span.message = question
    if shown ~= question.text then
      api.nvim_buf_set_lines(buf, first, last, false, vim.list_extend({ "" }, said))
      last = first + 1 + #said
    else
      while last > first and not api.nvim_buf_get_lines(buf, last - 1, last, false)[1]:find("%S") do
        last = last - 1
      end
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
  M.badge(session, span)
  paint.rows(session.buf, first - 1, row)
  local below = add_span(session, row, answer)
  vim.list_extend(session.spans, { below, add_span(session, row + 4) })
  return below, row + 2
end

--- Put a message before another one, as a summary is.
---@param session lcursor.ChatSession
---@param index integer of the span that it comes before
---@param message lcursor.ChatMessage
function M.insert(session, index, message)
  local _, _, row = M.rows(session, session.spans[index])
  local text, folds = body(message, {})
  local lines = { HEADINGS[message.role], "" }
  vim.list_extend(lines, text)
  table.insert(lines, "")
  M.quietly(session, function(buf)
    api.nvim_buf_set_lines(buf, row, row, false, lines)
  end)
  table.insert(session.spans, index, add_span(session, row, message))
  for _, fold in ipairs(folds) do
    require("lcursor.chat.folds").add(session, row + 2 + fold.first, row + 2 + fold.last)
  end
end

--- Put text into the draft, as if it were typed: `u` takes it back.
---@param session lcursor.ChatSession
---@param text string
function M.set_draft(session, text)
  local first, last = M.rows(session, M.draft(session))
  local lines = vim.split(text, "\n", { plain = true })
  api.nvim_buf_set_lines(session.buf, first, last, false, vim.list_extend({ "" }, lines))
  M.placeholder(session)
end

--- Why something failed, as lines that the narrowest window of the chat shows whole: virtual lines
--- are cut off at its border.
---@param buf integer
---@param why string
---@return [string, string][][]
local function failed(buf, why)
  local cells = vim.o.columns
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    cells = math.min(cells, api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff)
  end
  return vim.tbl_map(function(line)
    return { { line, "LCursorChatFailed" } }
  end, words.wrap("✗ " .. why, cells))
end

--- Say below each answer that broke off why it did; of the last one the failure says it.
---@param session lcursor.ChatSession
local function broken(session)
  local last = session.failure and #session.spans - 1 or #session.spans
  for i, span in ipairs(session.spans) do
    local message = span.message
    if i < last and message and message.is_partial and message.why ~= "" then
      local _, behind = M.rows(session, span, i)
      local lines = vim.list_extend(failed(session.buf, message.why), { { { "" } } })
      api.nvim_buf_set_extmark(session.buf, notes, behind, 0, {
        virt_lines = lines,
        virt_lines_above = true,
      })
    end
  end
end

--- Say in an empty chat what one can do, and nothing where something is typed.
---@param session lcursor.ChatSession
function M.placeholder(session)
  local buf, draft = session.buf, M.draft(session)
  api.nvim_buf_clear_namespace(buf, notes, 0, -1)
  if not draft then
    return
  end
  broken(session)
  local _, last, heading = M.rows(session, draft, #session.spans)
  local names = vim.tbl_map(function(piece)
    return "+ " .. piece.name
  end, session.attached)
  for _, key in ipairs(session.dropped) do
    table.insert(names, "− " .. key)
  end
  if #names > 0 then
    api.nvim_buf_set_extmark(buf, notes, heading, 0, {
      virt_text = { { table.concat(names, "  "), "LCursorChatNote" } },
    })
  end
  local failure = session.failure
  if failure then
    local hint = failure.hint ~= "" and (". " .. failure.hint) or ""
    local lines = failed(buf, failure.message .. hint)
    api.nvim_buf_set_extmark(buf, notes, heading, 0, {
      virt_lines = heading > 0 and vim.list_extend(lines, { { { "" } } }) or lines,
      virt_lines_above = heading > 0, -- above the first line nobody would see it
    })
  end
  if #session.messages == 0 and M.text(session, draft) == "" then
    local key = require("lcursor.config").get().chat.mappings
    local text = key.send ~= "" and ("Ask here; %s sends"):format(key.send) or "Ask here"
    text = key.help ~= "" and ("%s, %s lists the keys"):format(text, key.help) or text
    api.nvim_buf_set_extmark(buf, notes, last - 1, 0, {
      virt_text = { { text, "LCursorChatNote" } },
      virt_text_pos = "overlay",
    })
  end
end

return M
