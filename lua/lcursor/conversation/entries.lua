-- The entries of a conversation's buffer: messages, steps, questions, and the draft at the end. An
-- extmark at each says where it begins; it ends where the next one begins. The kind of conversation
-- says what they are. They are complete, so that a buffer that was deleted can be written again.

local notify = require("lcursor.ui.notify")
local transcript = require("lcursor.conversation.transcript")

local M = {}

local api = vim.api
local marks = api.nvim_create_namespace("lcursor.entries")
local RETRY_MS = 40

--- Of what is shown beside the text of entries.
M.notes = api.nvim_create_namespace("lcursor.entries.notes")

---@class lcursor.Entry
---@field kind string
---@field mark integer extmark where it begins; 0 if it is not written
---@field text? string
---@field is_late? boolean it must be written
---@field stream? table that writes it

---@param conversation lcursor.Conversation
---@return boolean
function M.is_loaded(conversation)
  return conversation.buf ~= nil and api.nvim_buf_is_loaded(conversation.buf)
end

--- Change the buffer without undo: `u` neither reverts this nor anything before it.
---@param conversation lcursor.Conversation
---@param change fun(buf: integer)
function M.without_undo(conversation, change)
  local ok, err = pcall(transcript.without_undo, conversation.buf, change)
  conversation.tick = api.nvim_buf_get_changedtick(conversation.buf)
  if not ok then
    error(err, 0)
  end
end

---@return integer? row
local function row_of(conversation, entry)
  local id = entry.mark
  return id ~= 0 and api.nvim_buf_get_extmark_by_id(conversation.buf, marks, id, {})[1] or nil
end

--- Return the index of an entry.
---@param conversation lcursor.Conversation
---@param entry lcursor.Entry
---@return integer? nil if it was removed
function M.index(conversation, entry)
  for i, other in ipairs(conversation.entries) do
    if other == entry then
      return i
    end
  end
end

--- Return the rows of an entry.
---@param conversation lcursor.Conversation
---@param entry lcursor.Entry
---@param index? integer of the entry if it is known: there may be many
---@return integer first
---@return integer last the one after it
function M.rows(conversation, entry, index)
  local all, last = conversation.entries, nil
  for i = (index or M.index(conversation, entry) or #all) + 1, #all do
    last = row_of(conversation, all[i])
    if last then
      break
    end
  end
  last = last or api.nvim_buf_line_count(conversation.buf)
  return math.min(row_of(conversation, entry) or last, last), last
end

--- Return the rows of an entry below its heading.
---@param conversation lcursor.Conversation
---@param entry lcursor.Entry
---@param index? integer of the entry if it is known
---@return integer first the row where it begins if the user has deleted its heading
---@return integer last the one after it
---@return integer begin the row where it begins
function M.content(conversation, entry, index)
  local begin, last = M.rows(conversation, entry, index)
  local heading = conversation.kind.heading(entry)
  local lines = api.nvim_buf_get_lines(conversation.buf, begin, math.min(begin + 2, last), false)
  for i, line in ipairs(lines) do
    if line == heading then
      return begin + i, last, begin
    end
  end
  return begin, last, begin
end

--- Return the text below a heading, without surrounding blank lines.
---@param conversation lcursor.Conversation
---@param entry lcursor.Entry
---@return string
function M.text(conversation, entry)
  local first, last = M.content(conversation, entry)
  local lines = api.nvim_buf_get_lines(conversation.buf, first, last, false)
  return (table.concat(lines, "\n"):gsub("^%s*\n", ""):gsub("%s+$", ""))
end

--- Return the entry at a row.
---@param conversation lcursor.Conversation
---@param row integer
---@return any
---@return integer index
function M.at(conversation, row)
  local opts = { limit = 1 }
  local mark = api.nvim_buf_get_extmarks(conversation.buf, marks, { row, -1 }, 0, opts)[1]
  for i, entry in ipairs(mark and conversation.entries or {}) do
    if entry.mark == mark[1] then
      return entry, i
    end
  end
  return conversation.entries[1], 1
end

--- Return the entry at the cursor; the draft if the cursor is in another buffer.
---@param conversation lcursor.Conversation
---@return any
---@return integer index
function M.at_cursor(conversation)
  if api.nvim_get_current_buf() == conversation.buf then
    return M.at(conversation, api.nvim_win_get_cursor(0)[1] - 1)
  end
  return M.draft(conversation), #conversation.entries
end

--- Return the entry in which the user writes.
---@param conversation lcursor.Conversation
---@return any
function M.draft(conversation)
  return conversation.entries[#conversation.entries]
end

--- Return the text of the draft.
---@param conversation lcursor.Conversation
---@return string
function M.draft_text(conversation)
  return M.text(conversation, M.draft(conversation))
end

--- Replace the draft, as if it were typed: `u` reverts it.
---@param conversation lcursor.Conversation
---@param text string
function M.set_draft(conversation, text)
  local draft = M.draft(conversation)
  local first, last, begin = M.content(conversation, draft)
  local lines = vim.split("\n" .. text, "\n", { plain = true })
  if first == begin then
    table.insert(lines, 1, conversation.kind.heading(draft))
  end
  api.nvim_buf_set_lines(conversation.buf, first, last, false, lines)
  M.decorate(conversation, draft)
end

--- Show what the text of an entry does not say: colours, notes, keys.
---@param conversation lcursor.Conversation
---@param entry lcursor.Entry
---@param index? integer of the entry if it is known
function M.decorate(conversation, entry, index)
  local first, last = M.rows(conversation, entry, index)
  api.nvim_buf_clear_namespace(conversation.buf, M.notes, first, math.max(last, first + 1))
  conversation.kind.decorate(conversation, entry, first, last)
end

--- Show it for all entries, maybe for another width.
---@param conversation lcursor.Conversation
function M.decorate_all(conversation)
  for i, entry in ipairs(M.is_loaded(conversation) and conversation.entries or {}) do
    if entry.mark ~= 0 then
      M.decorate(conversation, entry, i)
    end
  end
end

--- Remove entries of the end; their lines stay.
---@param conversation lcursor.Conversation
---@param index integer of the last one that stays
function M.cut(conversation, index)
  for i = index + 1, #conversation.entries do
    api.nvim_buf_del_extmark(conversation.buf, marks, conversation.entries[i].mark)
  end
  conversation.entries = vim.list_slice(conversation.entries, 1, index)
end

--- Add entries after all others, in place of the lines from a row on.
---@param conversation lcursor.Conversation
---@param row integer
---@param lines string[] what is written before them
---@param added lcursor.Entry[]
function M.append(conversation, row, lines, added)
  local starts, folds = {}, {}
  for i, entry in ipairs(added) do
    starts[i] = row + #lines
    local before = added[i - 1] or conversation.entries[#conversation.entries]
    local body, body_folds = conversation.kind.body(entry, before)
    for _, fold in ipairs(body_folds) do
      table.insert(folds, { starts[i] + fold[1], starts[i] + fold[2] })
    end
    lines = vim.list_extend(lines, body)
  end
  M.without_undo(conversation, function(buf)
    api.nvim_buf_set_lines(buf, row, -1, false, lines)
    for i, entry in ipairs(added) do
      entry.mark = api.nvim_buf_set_extmark(buf, marks, starts[i], 0, {})
      entry.is_late, entry.stream = false, nil
    end
  end)
  vim.list_extend(conversation.entries, added)
  for _, fold in ipairs(folds) do
    transcript.fold(conversation.buf, fold[1], fold[2])
  end
end

--- Write everything again.
---@param conversation lcursor.Conversation
---@param draft string
function M.render(conversation, draft)
  local all = conversation.entries
  all[#all].text = draft
  transcript.unfold(conversation.buf)
  for _, namespace in ipairs({ marks, M.notes }) do
    api.nvim_buf_clear_namespace(conversation.buf, namespace, 0, -1)
  end
  conversation.entries = {}
  M.append(conversation, 0, {}, all)
  M.decorate_all(conversation)
end

--- Replace the lines of an entry, or insert them before the next entry.
local function write(conversation, entry, index)
  local first, last = M.rows(conversation, entry, index)
  local id = entry.mark ~= 0 and entry.mark or nil
  local lines, folds = conversation.kind.body(entry, conversation.entries[index - 1])
  entry.is_late = false
  if id then
    api.nvim_buf_clear_namespace(conversation.buf, M.notes, first, last)
    transcript.unfold(conversation.buf, first, math.max(last, first + 1))
  end
  M.without_undo(conversation, function(buf)
    api.nvim_buf_set_lines(buf, first, last, false, lines)
    entry.mark = api.nvim_buf_set_extmark(buf, marks, first, 0, { id = id })
  end)
  for _, fold in ipairs(folds) do
    transcript.fold(conversation.buf, first + fold[1], first + fold[2])
  end
  M.decorate(conversation, entry, index)
  transcript.show_end(conversation.buf)
end

--- Write the entries that changed; later while a completion menu is open, which that would close.
local function write_late(conversation)
  if not M.is_loaded(conversation) then
    return
  elseif not transcript.is_completing(conversation.buf) then
    for i, entry in ipairs(conversation.entries) do
      if entry.is_late then
        write(conversation, entry, i)
      end
    end
  elseif not conversation.has_late then
    conversation.has_late = true
    notify.later(RETRY_MS, function()
      conversation.has_late = false
      write_late(conversation)
    end)
  end
end

--- Write an entry that changed.
---@param conversation lcursor.Conversation
---@param entry lcursor.Entry
function M.show(conversation, entry)
  entry.is_late = true
  write_late(conversation)
end

--- Insert an entry, by default before the draft.
---@param conversation lcursor.Conversation
---@param entry table its fields but the mark
---@param index? integer that it gets
---@return any
function M.insert(conversation, entry, index)
  entry.mark = 0
  table.insert(conversation.entries, index or #conversation.entries, entry)
  M.show(conversation, entry)
  return entry
end

--- Remove an entry and its lines.
---@param conversation lcursor.Conversation
---@param entry lcursor.Entry
function M.remove(conversation, entry)
  local index = M.index(conversation, entry)
  if M.is_loaded(conversation) and entry.mark ~= 0 then
    local first, last = M.rows(conversation, entry, index)
    M.without_undo(conversation, function(buf)
      api.nvim_buf_set_lines(buf, first, last, false, {})
    end)
    api.nvim_buf_del_extmark(conversation.buf, marks, entry.mark)
  end
  table.remove(conversation.entries, index)
end

--- Begin to write a text into an entry while it comes.
---@param conversation lcursor.Conversation
---@param entry lcursor.Entry
---@param row integer an empty line
---@return lcursor.TextStream
function M.stream(conversation, entry, row)
  return transcript.stream(conversation.buf, row, function(change)
    local first = M.rows(conversation, entry)
    M.without_undo(conversation, change)
    -- It moved to the end of what was inserted there.
    api.nvim_buf_set_extmark(conversation.buf, marks, first, 0, { id = entry.mark })
  end)
end

return M
