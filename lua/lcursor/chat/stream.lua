-- Writes an answer into its buffer while it comes: what arrives within an interval is one write, so
-- that a fast model costs no more than a slow one. After each write, Neovim's highlighter works for
-- 5 ms in a buffer of 100 lines and for 20 ms in one of 4000 (0.11.4), so the interval grows with
-- the buffer. Moves no cursor and no view: a window whose cursor is in the draft follows by itself.

local buffer = require("lcursor.chat.buffer")
local format = require("lcursor.chat.format")
local log = require("lcursor.log")
local menu = require("lcursor.ui.menu")
local notify = require("lcursor.notify")

local M = {}

local api, uv = vim.api, vim.uv
local INTERVAL_MS, INTERVAL_MS_PER_LINE = 150, 0.1
local RETRY_MS = 40

---@param session lcursor.ChatSession
---@param row integer where the answer begins, an empty line
---@return lcursor.ChatStream
function M.open(session, row)
  local buf = session.buf
  ---@type lcursor.ChatStream
  local stream = {
    session = session,
    tail = api.nvim_buf_set_extmark(buf, buffer.namespace, row, 0, {}),
    pending = "",
    held = "",
    is_open = true,
    is_scheduled = false,
    last_ms = 0,
  }
  return stream
end

---@return integer? row
---@return integer? col
local function tail(stream)
  local mark = api.nvim_buf_get_extmark_by_id(stream.session.buf, buffer.namespace, stream.tail, {})
  return mark[1], mark[2]
end

---@return boolean whether all of it is written
local function write(stream)
  local buf, text = stream.session.buf, stream.pending
  if text == "" or not api.nvim_buf_is_loaded(buf) then
    return true
  end
  local row, col = tail(stream)
  local is_completing = buf == api.nvim_get_current_buf() and menu.is_visible()
  if not row or is_completing then -- a write would close the completion menu
    return false
  end
  local ok, err = pcall(buffer.without_undo, stream.session, function()
    api.nvim_buf_set_text(buf, row, col, row, col, vim.split(text, "\n", { plain = true }))
  end)
  if not ok then
    log.debug("chat: cannot write now: %s", err)
    return false
  end
  stream.pending = ""
  return true
end

--- Write now, or later if that is not possible.
local function flush(stream, wait_ms)
  if not wait_ms then
    stream.last_ms = uv.now()
    wait_ms = not write(stream) and RETRY_MS or nil
  end
  if wait_ms and not stream.is_scheduled then
    stream.is_scheduled = true
    notify.later(wait_ms, function()
      stream.is_scheduled = false
      flush(stream)
    end)
  end
end

--- Begin another section. A section before the answer is folded when it ends.
---@param section "items"|"reasoning"|"text"
local function begin_section(stream, section)
  stream.held = ""
  if stream.section then
    write(stream)
    local row = tail(stream)
    local is_foldable = stream.pending == "" and stream.section ~= "text"
    stream.pending = stream.pending .. "\n\n"
    -- The lines below come first: Neovim shrinks a fold when text is inserted at its end.
    if write(stream) and row and is_foldable then
      buffer.fold(stream.session, stream.first_row or row, row)
    end
  end
  stream.first_row = tail(stream)
  stream.section = section
  if section == "reasoning" then
    stream.pending = stream.pending .. format.REASONING
  end
end

--- Add to the answer.
---@param stream lcursor.ChatStream
---@param section "items"|"reasoning"|"text"
---@param text string
function M.push(stream, section, text)
  if text == "" or not stream.is_open or not api.nvim_buf_is_loaded(stream.session.buf) then
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
  stream.pending = stream.pending .. (section == "reasoning" and format.quote(text) or text)
  local lines = api.nvim_buf_line_count(stream.session.buf)
  local due_ms = stream.last_ms + INTERVAL_MS + INTERVAL_MS_PER_LINE * lines - uv.now()
  flush(stream, due_ms > 0 and math.ceil(due_ms) or nil)
end

--- End the answer: write the rest of it.
---@param stream lcursor.ChatStream
function M.close(stream)
  if not stream.is_open then
    return
  end
  stream.is_open = false
  local row = tail(stream)
  flush(stream)
  row = tail(stream) or row
  if row and stream.section and stream.section ~= "text" then
    buffer.fold(stream.session, stream.first_row or row, row)
  end
end

--- Forget a stream whose buffer is gone.
---@param stream lcursor.ChatStream
function M.drop(stream)
  stream.is_open, stream.pending = false, ""
end

return M
