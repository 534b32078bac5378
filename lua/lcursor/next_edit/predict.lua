-- Asks the host for the edits that follow from the last ones: first in the current file and in
-- those with edits, then, in a pause, in the other open files of the same type, and in those of the
-- project that are not open.

local config = require("lcursor.config")
local context = require("lcursor.editor.context")
local delays = require("lcursor.next_edit.delays")
local gate = require("lcursor.next_edit.gate")
local host = require("lcursor.host")
local next_id = require("lcursor.host.requests").next_id
local privacy = require("lcursor.editor.privacy")
local queue = require("lcursor.next_edit.queue")
local recorder = require("lcursor.next_edit.recorder")
local rpc = require("lcursor.host.rpc")
local status = require("lcursor.host.status")
local timers = require("lcursor.editor.timer")

local M = {}

local api = vim.api
local MAX_FILES, MAX_LINES = 8, 10000 -- of a request: sending more takes too long

---@class (exact) lcursor.SentText
---@field tick integer `changedtick`, which rises at a write, too
---@field text string

---@class (exact) lcursor.NextRequest
---@field id integer
---@field buf integer the current buffer
---@field row integer of the last edit in it
---@field texts table<integer, lcursor.SentText> of its files, by buffer
---@field is_wide boolean
---@field is_answered boolean

---@type lcursor.NextRequest? the last one; a model's proposals come in a second answer
local pending
---@type fun() called when the proposals changed
local on_change

--- Send a request after a while, unless another buffer is the current one by then, or an edit has
--- begun, at whose end another request is sent.
local send_later, stop = timers.new(function(buf, is_wide)
  if api.nvim_get_current_buf() == buf and not recorder.is_changed(buf) then
    M.send(is_wide)
  end
end)
M.send_later = send_later

--- Return a function that finds out whether a file is in the project of the current buffer.
---@return fun(path: string): boolean
local function in_project()
  local roots = {} ---@type table<string, string|false> by folder
  local function root_of(path)
    local folder = vim.fs.dirname(path)
    if roots[folder] == nil then
      roots[folder] = context.repository(path) or false
    end
    return roots[folder]
  end
  local root = root_of(api.nvim_buf_get_name(0))
  return function(path)
    return root_of(path) == root
  end
end

--- Return the buffers whose text a request contains.
---@param is_near fun(path: string): boolean
---@return integer[] the current one first
local function buffers(is_wide, is_near)
  local current = api.nvim_get_current_buf()
  local found, lines = { current }, api.nvim_buf_line_count(current)
  local others = vim.list_extend(recorder.edited(), is_wide and api.nvim_list_bufs() or {})
  for _, buf in ipairs(others) do
    local is_same = api.nvim_buf_is_loaded(buf) and vim.bo[buf].filetype == vim.bo[current].filetype
    is_same = is_same and is_near(api.nvim_buf_get_name(buf))
    if is_same and not vim.list_contains(found, buf) and #found < MAX_FILES then
      local count = api.nvim_buf_line_count(buf)
      if lines + count <= MAX_LINES and not gate.buffer_block_reason(buf, function() end) then
        lines = lines + count
        table.insert(found, buf)
      end
    end
  end
  return found
end

---@param buf integer loaded
---@return lcursor.SentText
local function text_of(buf)
  local text = table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), "\n")
  return { text = text, tick = api.nvim_buf_get_changedtick(buf) }
end

---@param sent lcursor.SentText
---@return boolean whether a buffer still has a text
local function is_same(buf, sent)
  return api.nvim_buf_is_loaded(buf)
    and (api.nvim_buf_get_changedtick(buf) == sent.tick or text_of(buf).text == sent.text)
end

--- Send a request. Without edits the host only parses the text, so that the first answer comes
--- sooner.
---@param is_wide? boolean also other files
function M.send(is_wide)
  stop()
  local current = api.nvim_get_current_buf()
  if gate.buffer_block_reason(current, function() end) then
    return
  end
  local is_near, files, texts = in_project(), {}, {}
  local edits = vim.tbl_filter(function(edit)
    return is_near(edit.path)
  end, recorder.edits())
  for _, buf in ipairs(buffers(is_wide or false, is_near)) do
    local sent = text_of(buf)
    if not privacy.has_private_key(sent.text) then
      table.insert(files, { path = api.nvim_buf_get_name(buf), text = sent.text })
      texts[buf] = sent
    end
  end
  if #edits == 0 then
    queue.clear_all()
    on_change()
  elseif status.get().state == "stopped" then
    host.start()
  end
  if not texts[current] then
    return
  end
  local id, last = next_id(), recorder.last(current)
  local line, column = unpack(api.nvim_win_get_cursor(0))
  local params = { id = id, files = files, is_wide = is_wide or false, edits = edits }
  params.row, params.column = line - 1, column
  if rpc.notify("next_edit.predict", params) and #edits > 0 then
    queue.note(current, "waiting")
    pending = {
      id = id,
      buf = current,
      row = last and last.row or 0,
      texts = texts,
      is_wide = is_wide or false,
      is_answered = false,
    }
  end
end

--- Ignore later answers, and do not send what was to be sent later.
function M.forget()
  pending = nil
  stop()
end

--- Call a function when the proposals changed.
function M.start(callback)
  on_change = callback
end

rpc.on("next_edit.predicted", function(params)
  local it = pending
  if not it or it.id ~= params.id then
    return
  end
  local is_first = not it.is_answered
  it.is_answered = true
  ---@param buf integer whose settings count
  local function wanted(buf, path)
    local kinds = config.for_buffer(buf).next_edit
    return vim.tbl_filter(function(proposal)
      return (not path or proposal.path == path) and kinds[proposal.kind]
    end, params.proposals)
  end
  for buf, sent in pairs(it.texts) do
    if is_same(buf, sent) and not gate.buffer_block_reason(buf, function() end) then
      local found = wanted(buf, api.nvim_buf_get_name(buf))
      queue.set(buf, found, buf == it.buf and it.row or 0)
    end
  end
  queue.link(it.buf, vim.tbl_keys(it.texts), it.is_wide)
  if it.is_wide or (is_first and not params.has_names) then
    queue.set_unopened(it.is_wide and wanted(it.buf) or {})
  end
  local switched = params.proposals[1] and #wanted(it.buf) == 0 and params.proposals[1].kind
  local reason = switched and ("next_edit.%s is off"):format(switched) or params.reason
  queue.note(it.buf, reason ~= "" and reason or nil)
  on_change()
  if it.is_wide or not is_first or it.buf ~= api.nvim_get_current_buf() then
    return
  end
  if params.has_names or #buffers(true, in_project()) > 1 then
    send_later(delays.wide, it.buf, true)
  end
end)

return M
