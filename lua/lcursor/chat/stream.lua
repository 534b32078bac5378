-- Writes an answer into its buffer while it comes, with the sections before it. Moves no cursor and
-- no view: a window whose cursor is in the draft follows by itself.

local entries = require("lcursor.conversation.entries")
local format = require("lcursor.chat.format")
local transcript = require("lcursor.conversation.transcript")

local M = {}

local api = vim.api

---@class (exact) lcursor.ChatStream writes one answer into the buffer
---@field out lcursor.TextStream
---@field held string line ends that are written before what comes next
---@field section? "items"|"reasoning"|"text" that the last text belongs to
---@field first_row? integer of the section
---@field is_open boolean more may come

---@param session lcursor.ChatSession
---@param entry lcursor.ChatEntry
---@return lcursor.ChatStream
function M.open(session, entry)
  ---@type lcursor.ChatStream
  local stream = {
    out = entries.stream(session, entry, entries.content(session, entry) + 1),
    held = "",
    is_open = true,
  }
  return stream
end

--- Begin another section. A section before the answer is folded when it ends.
---@param section "items"|"reasoning"|"text"
local function begin_section(stream, section)
  local out = stream.out
  stream.held = ""
  if stream.section then
    transcript.write(out)
    local row = transcript.tail(out)
    local is_foldable = out.pending == "" and stream.section ~= "text"
    out.pending = out.pending .. "\n\n"
    -- The lines below come first: Neovim shrinks a fold when text is inserted at its end.
    if transcript.write(out) and row and is_foldable then
      transcript.fold(out.buf, stream.first_row or row, row)
    end
  end
  stream.first_row = transcript.tail(out)
  stream.section = section
  if section == "reasoning" then
    out.pending = out.pending .. format.REASONING
  end
end

--- Add to the answer.
---@param stream lcursor.ChatStream
---@param section "items"|"reasoning"|"text"
---@param text string
function M.push(stream, section, text)
  if text == "" or not stream.is_open or not api.nvim_buf_is_loaded(stream.out.buf) then
    return
  end
  if section ~= stream.section then
    text = text:gsub("^[\r\n]+", "")
    if text == "" then
      return
    end
    begin_section(stream, section)
  end
  text, stream.held = format.hold(stream.held .. text)
  transcript.add(stream.out, section == "reasoning" and format.quote(text) or text)
end

--- End the answer: write the rest of it.
---@param stream lcursor.ChatStream
function M.close(stream)
  if not stream.is_open then
    return
  end
  stream.is_open = false
  local out = stream.out
  local row = transcript.tail(out)
  transcript.flush(out)
  row = transcript.tail(out) or row
  if row and stream.section and stream.section ~= "text" then
    transcript.fold(out.buf, stream.first_row or row, row)
  end
end

--- Forget a stream whose buffer is gone.
---@param stream lcursor.ChatStream
function M.drop(stream)
  stream.is_open, stream.out.pending = false, ""
end

return M
