-- Writes an answer into its buffer while it comes: what came in a while goes in with one write, so
-- that a fast model costs no more than a slow one. Measures what it takes of the main thread.
-- Must not move a cursor or a view: a window whose cursor is in the draft follows by itself.

local buffer = require("lcursor.chat.buffer")
local folds = require("lcursor.chat.folds")
local log = require("lcursor.log")
local notify = require("lcursor.notify")
local paint = require("lcursor.chat.paint")
local words = require("lcursor.chat.words")

local M = {}

local api, uv = vim.api, vim.uv
local EVERY_MS = 40
local SLOW_NS = 2e6 -- what one who types elsewhere would notice
local MOST_TRIES = 250 -- ten seconds in which the buffer cannot be written

--- Begin to write.
---@param session lcursor.ChatSession
---@param span lcursor.ChatSpan of the answer
---@param row integer where the answer begins, an empty line
---@return lcursor.ChatStream
function M.open(session, span, row)
  local stream = {
    session = session,
    span = span,
    tail = api.nvim_buf_set_extmark(session.buf, buffer.namespace, row, 0, {}),
    pending = "",
    held = "",
    written = {},
    tick = -1,
    tries = 0,
    is_open = true,
    is_due = false,
    last_ms = 0,
    painted_ms = 0,
    paint_ms = 0,
    cost = { busy_ns = 0, calls = 0, slow = 0, pieces = 0, writes = 0, bytes = 0 },
  }
  session.stream = stream
  paint.take(session.buf)
  paint.open(stream, row)
  return stream
end

---@param stream lcursor.ChatStream
---@return integer? row
---@return integer? col
local function tail(stream)
  local mark = api.nvim_buf_get_extmark_by_id(stream.session.buf, buffer.namespace, stream.tail, {})
  return mark[1], mark[2]
end

--- One block of undo for all that is written between two changes of the user's.
---@param stream lcursor.ChatStream
local function join(stream)
  local buf = stream.session.buf
  if api.nvim_buf_get_changedtick(buf) ~= stream.tick then
    return
  end
  if buf == api.nvim_get_current_buf() then
    pcall(vim.cmd.undojoin) -- throws after an undo: then it is a block of its own
  else
    api.nvim_buf_call(buf, function()
      pcall(vim.cmd.undojoin)
    end)
  end
end

--- Whether a write would disturb: a menu of completions is open over this very buffer.
---@param stream lcursor.ChatStream
---@return boolean
local function is_busy(stream)
  return stream.session.buf == api.nvim_get_current_buf() and vim.fn.pumvisible() == 1
end

---@param stream lcursor.ChatStream
---@return boolean written all of it
local function write(stream)
  local buf, text = stream.session.buf, stream.pending
  if text == "" or not api.nvim_buf_is_loaded(buf) then
    stream.pending = ""
    return true
  end
  local row, col = tail(stream)
  if not row then
    return false
  end
  join(stream)
  local modifiable = vim.bo[buf].modifiable
  if not modifiable then
    vim.bo[buf].modifiable = true
  end
  local lines = vim.split(text, "\n", { plain = true })
  local ok, err = pcall(api.nvim_buf_set_text, buf, row, col, row, col, lines)
  if not modifiable then
    vim.bo[buf].modifiable = false
  end
  if not ok then
    log.debug("chat: cannot write yet: %s", err)
    return false
  end
  stream.pending = ""
  table.insert(stream.written, text)
  stream.tick = api.nvim_buf_get_changedtick(buf)
  stream.cost.writes = stream.cost.writes + 1
  stream.cost.bytes = stream.cost.bytes + #text
  local last = tail(stream)
  if last then
    paint.follow(stream, last)
  end
  return true
end

local later

---@param stream lcursor.ChatStream
local function flush(stream)
  stream.is_due = false
  stream.last_ms = uv.now()
  if is_busy(stream) or not write(stream) then
    stream.tries = stream.tries + 1
    if stream.tries < MOST_TRIES or is_busy(stream) then
      later(stream, EVERY_MS)
    else
      log.warn("chat: an answer cannot be written into its buffer")
    end
  else
    stream.tries = 0
  end
end

---@param stream lcursor.ChatStream
---@param began integer
local function count(stream, began)
  local now = uv.hrtime()
  local cost = stream.cost
  cost.busy_ns, cost.ended_ns = cost.busy_ns + (now - began), now
  cost.calls = cost.calls + 1
  cost.slow = cost.slow + (now - began > SLOW_NS and 1 or 0)
end

---@param stream lcursor.ChatStream
---@param wait_ms integer
function later(stream, wait_ms)
  if stream.is_due then
    return
  end
  stream.is_due = true
  stream.timer = stream.timer or assert(uv.new_timer())
  stream.timer:start(
    wait_ms,
    0,
    vim.schedule_wrap(notify.guarded(function()
      local began = uv.hrtime()
      flush(stream)
      count(stream, began)
      if not stream.is_open and not stream.is_due then
        M.rest(stream)
      end
    end))
  )
end

--- Begin another section: what the model thinks is a quotation, and is folded when it ends.
---@param stream lcursor.ChatStream
---@param section "items"|"reasoning"|"text"
local function enter(stream, section)
  stream.held = ""
  if stream.section then
    write(stream)
    local row = tail(stream)
    local is_foldable = stream.pending == "" and stream.section ~= "text"
    stream.pending = stream.pending .. "\n\n"
    -- First the lines below: Neovim takes a line out of a fold when something is put at its end.
    if write(stream) and row and is_foldable then
      folds.add(stream.session, stream.first_row or row, row)
    end
  end
  stream.first_row = tail(stream)
  stream.section = section
  if section == "reasoning" then
    stream.pending = stream.pending .. "> thinking\n> "
  end
end

--- More of an answer.
---@param stream lcursor.ChatStream
---@param section "items"|"reasoning"|"text"
---@param text string
function M.push(stream, section, text)
  if text == "" or not stream.is_open or not api.nvim_buf_is_loaded(stream.session.buf) then
    return
  end
  local began = uv.hrtime()
  local cost = stream.cost
  cost.began_ns = cost.began_ns or began
  cost.pieces = cost.pieces + 1
  if section ~= stream.section then
    text = text:gsub("^[\r\n]+", "")
    if text == "" then
      return
    end
    enter(stream, section)
  end
  text, stream.held = words.hold(stream.held .. text)
  stream.pending = stream.pending .. (section == "reasoning" and words.quote(text) or text)
  local now = uv.now()
  if now - stream.last_ms >= EVERY_MS and not stream.is_due then
    flush(stream)
  else
    later(stream, math.max(EVERY_MS - (now - stream.last_ms), 1))
  end
  count(stream, began)
end

--- Nothing follows: write what is left.
---@param stream lcursor.ChatStream
function M.close(stream)
  if not stream.is_open then
    return
  end
  stream.pending = stream.pending .. stream.held:gsub("[\r\n]+", "")
  stream.held = ""
  stream.is_open = false
  local began = uv.hrtime()
  flush(stream)
  local row = tail(stream)
  if row and stream.section and stream.section ~= "text" then
    folds.add(stream.session, stream.first_row or row, row)
  end
  if row then
    paint.finish(stream, row)
  end
  count(stream, began)
  if not stream.is_due then
    M.rest(stream)
  end
end

--- Let go of the timer.
---@param stream lcursor.ChatStream
function M.rest(stream)
  if stream.timer then
    stream.timer:close()
    stream.timer, stream.is_due = nil, false
  end
end

--- The buffer is gone.
---@param stream lcursor.ChatStream
function M.drop(stream)
  stream.is_open, stream.pending = false, ""
  M.rest(stream)
end

--- What stands in the buffer of an answer by now, as long as nobody else changed it.
---@param stream lcursor.ChatStream
---@return string
function M.text(stream)
  local text = table.concat(stream.written)
  stream.written = { text }
  return text
end

--- Where the next piece goes; after a repair by who knows better.
---@param stream lcursor.ChatStream
---@param row integer
---@param col integer
function M.move(stream, row, col)
  local buf = stream.session.buf
  api.nvim_buf_set_extmark(buf, buffer.namespace, row, col, { id = stream.tail })
  stream.tick = api.nvim_buf_get_changedtick(buf)
end

--- The share of the main thread's time that a stream took, from its first piece to its last.
---@param stream lcursor.ChatStream
---@return number share 0 to 1
function M.share(stream)
  local cost = stream.cost
  local span = (cost.ended_ns or 0) - (cost.began_ns or 0)
  return span > 0 and cost.busy_ns / span or 0
end

return M
