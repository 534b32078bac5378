-- Next edits: after a change, shows where the next one is and what it is. One key goes there, one
-- applies it. Nothing here waits, and nothing moves text in Insert mode without a key.

local config = require("lcursor.config")
local context = require("lcursor.context")
local gate = require("lcursor.next_edit.gate")
local highlights = require("lcursor.ui.highlights")
local host = require("lcursor.host")
local keymaps = require("lcursor.keymaps")
local many = require("lcursor.text").many
local menu = require("lcursor.ui.menu")
local next_id = require("lcursor.requests").next_id
local notify = require("lcursor.notify")
local privacy = require("lcursor.privacy")
local queue = require("lcursor.next_edit.queue")
local recorder = require("lcursor.next_edit.recorder")
local rpc = require("lcursor.rpc")
local status = require("lcursor.status")
local view = require("lcursor.next_edit.view")

local M = {}

local api = vim.api
local NEAR_ROWS = 20
local PAUSE_MS = 400 -- in Insert mode without a key, before a hint
local FADE_MS = 10 * 1000 -- after the last edit, a hint goes
local GLANCE_MS = 250 -- visible for less, it was not seen
local PARSE_MS = 50 -- after the beginning of the first insert
local AGAIN_MS = 300 -- between two changes in Normal mode; the second is asked about later

local started = false
---@type table<integer, true> buffers whose recording waits for git
local waiting = {}
---@type table<integer, true> buffers whose text the host has parsed
local parsed = {}
---@type number when the last key moved the cursor or changed text, in ms
local key_ms = 0
---@type number when the last edit ended
local edit_ms = 0
---@type number when the visible proposal was first shown
local shown_ms = 0
---@type string? buffer, text and position at the last key
local last_key
---@type uv.uv_timer_t?
local timer
---@type uv.uv_timer_t?
local request_timer
---@type { buf: integer, shown: lcursor.NextProposal }? what the keys are about
local current
---@type { id: integer, buf: integer, tick: integer, row: integer }? last request; its edit's row
local pending
---@type lcursor.NextProposal? to which Tab went; drawn in its line in Insert mode too
local reached
---@type table<integer, string> by buffer: why its proposals are not shown
local silent = {}

---@return number ms
local function now_ms()
  return vim.uv.hrtime() / 1e6
end

---@type fun()
local refresh

--- Call `refresh` after a while.
---@param ms number
local function refresh_later(ms)
  timer = timer or assert(vim.uv.new_timer())
  timer:start(math.ceil(ms), 0, vim.schedule_wrap(notify.guarded(refresh)))
end

local function hide()
  if current then
    current = nil
    view.hide()
    keymaps.unmap("next_edit")
  end
end

---@param proposal lcursor.NextProposal
---@param row integer
---@return boolean whether a target is close and visible
local function is_near(proposal, row)
  local cursor = api.nvim_win_get_cursor(0)[1] - 1
  local last = row + math.max(#proposal.old, 1)
  return math.abs(row - cursor) <= NEAR_ROWS
    and row + 1 >= vim.fn.line("w0")
    and last <= vim.fn.line("w$")
    and vim.fn.foldclosed(row + 1) == -1
end

--- Show the first proposal of the current buffer in the way that fits here, or hide it.
refresh = function()
  local buf = api.nvim_get_current_buf()
  local proposal, row = queue.first(buf)
  if not proposal or not row then
    silent[buf] = nil
    return hide()
  end
  local code = gate.block_reason(buf)
  silent[buf] = code
  if code then
    return hide()
  end
  local now, is_insert = now_ms(), api.nvim_get_mode().mode == "i"
  local line = api.nvim_win_get_cursor(0)[1] - 1
  local is_drawn = config.for_buffer(buf).next_edit.mode == "draw" or reached == proposal
  if is_drawn and is_insert then
    is_drawn = reached == proposal and line == row
  end
  local count, key = queue.count(buf, proposal), keymaps.shown("next_edit", "accept", buf)
  if queue.is_listed(proposal.group) then
    local rows = {}
    for _, other in ipairs(queue.group(buf, proposal)) do
      rows[other] = queue.row(buf, other)
    end
    view.draw(buf, rows, "")
  elseif is_drawn and is_near(proposal, row) then
    view.draw(buf, { [proposal] = row }, count, key)
  else
    local wait_ms = is_insert and key_ms + PAUSE_MS - now or 0
    if now - edit_ms >= FADE_MS then
      return hide()
    elseif wait_ms > 0 then
      hide()
      return refresh_later(wait_ms)
    elseif
      is_insert and api.nvim_get_current_line():sub(1, api.nvim_win_get_cursor(0)[2]):find("^%s*$")
    then
      return hide() -- Tab indents there
    end
    if not view.hint(buf, line, row, proposal, count, key) then
      return hide()
    end
    refresh_later(edit_ms + FADE_MS - now + 1)
  end
  if not current or current.shown ~= proposal then
    shown_ms = now
  end
  current = { buf = buf, shown = proposal }
  keymaps.map("next_edit", buf, M.press_key)
end

--- Ask for the edits that follow from the last ones of the current buffer. Without any, the host
--- only parses the text, so that the first answer comes sooner.
local function request()
  local buf = api.nvim_get_current_buf()
  local edits = recorder.edits(buf)
  local text = table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), "\n")
  if privacy.has_private_key(text) then
    return
  elseif #edits > 0 and status.get().state == "stopped" then
    host.start()
  end
  local id, tick = next_id(), api.nvim_buf_get_changedtick(buf)
  local params = { id = id, path = context.location(buf).path, text = text, edits = edits }
  if rpc.notify("next_edit.predict", params) and #edits > 0 then
    pending = { id = id, buf = buf, tick = tick, row = edits[#edits].row }
  end
end

rpc.on("next_edit.predicted", function(params)
  local it = pending
  if not it or it.id ~= params.id then
    return
  end
  pending = nil
  if api.nvim_buf_is_valid(it.buf) and api.nvim_buf_get_changedtick(it.buf) == it.tick then
    local kinds = config.for_buffer(it.buf).next_edit
    local wanted = vim.tbl_filter(function(proposal)
      return kinds[proposal.kind]
    end, params.proposals)
    queue.set(it.buf, wanted, it.row)
    refresh()
  end
end)

--- Ask after a while, if the buffer and its text are still the same.
---@param ms integer
local function request_later(buf, ms)
  local tick = api.nvim_buf_get_changedtick(buf)
  local ask = vim.schedule_wrap(notify.guarded(function()
    if api.nvim_get_current_buf() == buf and api.nvim_buf_get_changedtick(buf) == tick then
      request()
    end
  end))
  request_timer = request_timer or assert(vim.uv.new_timer())
  request_timer:start(ms, 0, ask)
end

---@param buf integer
---@param kind lcursor.Boundary
local function on_boundary(buf, kind)
  local before_ms = edit_ms
  edit_ms, reached = now_ms(), nil
  if buf ~= api.nvim_get_current_buf() then
    return queue.clear(buf)
  elseif kind ~= "edit" then
    queue.clear(buf, kind == "undo")
    return refresh()
  end
  queue.edited(recorder.last(buf))
  refresh()
  local is_quick = api.nvim_get_mode().mode == "n" and edit_ms - before_ms < AGAIN_MS
  if vim.fn.reg_recording() ~= "" then
    return
  elseif is_quick then
    return request_later(buf, AGAIN_MS)
  elseif request_timer then
    request_timer:stop()
  end
  request()
end

--- Record the edits of a buffer if they may be read.
local function attach(buf)
  if waiting[buf] or not api.nvim_buf_is_loaded(buf) then
    return
  end
  local code = gate.buffer_block_reason(buf, function()
    waiting[buf] = nil
    attach(buf)
  end)
  if code == "checking" then
    waiting[buf] = true
  elseif code then
    recorder.detach(buf)
    queue.clear(buf)
  else
    recorder.attach(buf)
  end
end

--- Have the text of a buffer parsed at the beginning of its first edit.
local function parse(buf)
  if not parsed[buf] and recorder.is_attached(buf) then
    parsed[buf] = true
    request_later(buf, PARSE_MS)
  end
end

--- A key in Insert mode: nothing is shown until a pause.
local function on_key()
  local cursor, buf = api.nvim_win_get_cursor(0), api.nvim_get_current_buf()
  local tick = api.nvim_buf_get_changedtick(buf)
  local key = ("%d %d %d %d"):format(buf, tick, cursor[1], cursor[2])
  if key == last_key then
    return
  end
  last_key, key_ms = key, now_ms()
  if
    current
    and not (reached and current.shown == reached and queue.row(buf, reached) == cursor[1] - 1)
  then
    hide()
  end
  if queue.first(buf) then
    refresh_later(PAUSE_MS)
  end
end

local function begin_undo_step()
  vim.cmd("noautocmd let &g:undolevels = &g:undolevels")
end

--- Apply proposals of the current buffer as one undo step.
---@param chosen lcursor.NextProposal[]
local function apply(chosen)
  local buf = api.nvim_get_current_buf()
  hide()
  recorder.finish(buf)
  local is_insert = api.nvim_get_mode().mode == "i"
  begin_undo_step()
  local position = queue.apply(buf, chosen)
  begin_undo_step()
  if position then
    local column = is_insert and position[2] or math.max(position[2] - 1, 0)
    api.nvim_win_set_cursor(0, { position[1] + 1, column })
  end
  recorder.finish(buf, true)
  edit_ms, reached, last_key = now_ms(), nil, nil
  key_ms = 0
  refresh()
  request()
end

--- Go to a proposal.
---@param proposal lcursor.NextProposal
local function jump(proposal)
  local buf = api.nvim_get_current_buf()
  local row = assert(queue.row(buf, proposal))
  local is_visible = row + 1 >= vim.fn.line("w0") and row + 1 <= vim.fn.line("w$")
  local word = (view.words(proposal) or {})[1]
  local line = api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
  vim.cmd("normal! m'")
  local target = math.min(row + 1, api.nvim_buf_line_count(buf))
  api.nvim_win_set_cursor(0, { target, word and word.first or #line:match("^%s*") })
  vim.cmd(is_visible and "normal! zv" or "normal! zvzz")
  reached, key_ms, last_key = proposal, 0, nil
  edit_ms = now_ms()
  refresh()
end

--- Return whether a proposal is drawn in the line to which Tab went.
---@return boolean
function M.is_at_cursor()
  return current ~= nil and current.shown == reached and view.is_inline()
end

--- Apply the visible proposal, or go to it.
function M.accept()
  local shown = current and current.shown
  local row = shown and queue.row(api.nvim_get_current_buf(), shown)
  if not shown or not row then
    return hide()
  elseif view.is_complete(shown, row) then
    apply({ shown })
  else
    jump(shown)
  end
end

--- Reject the visible proposal and those with the same cause.
function M.dismiss()
  if current then
    queue.mute(current.buf, current.shown)
    refresh()
  end
end

--- List the proposals with the same cause; when they are listed, apply all of them.
function M.accept_all()
  local buf = api.nvim_get_current_buf()
  local shown = current and current.shown
  if not shown then
    return
  end
  local group = queue.group(buf, shown)
  if #group == 1 or queue.is_listed(shown.group) then
    apply(group)
  else
    queue.list(shown.group)
    refresh()
  end
end

--- Do what a key stands for; for the <Plug> maps.
---@param action string
function M.press(action)
  if action == "accept" then
    M.accept()
  elseif action == "accept_all" then
    M.accept_all()
  else
    M.dismiss()
  end
end

--- Do what a key stands for, or press it as if lcursor were not there.
---@param action string
---@param lhs string
function M.press_key(action, lhs)
  local is_ours = current and current.buf == api.nvim_get_current_buf() and not menu.is_visible()
  -- Many press <Esc> twice to leave Insert mode.
  local is_seen = action ~= "dismiss" or now_ms() - shown_ms >= GLANCE_MS
  if is_ours and is_seen then
    return M.press(action)
  elseif is_ours then
    return api.nvim_feedkeys(vim.keycode(lhs), "int", false)
  end
  hide()
  api.nvim_feedkeys(vim.keycode(lhs), "imt", false)
end

--- Return what causes the next edit here, or why it is not shown.
---@return string "" if there is none
function M.why()
  local buf = api.nvim_get_current_buf()
  local proposal = queue.first(buf)
  if not proposal then
    return ""
  end
  local count = #queue.group(buf, proposal)
  local text = ("Next edit: %s; %s left."):format(proposal.cause, many(count, "change"))
  local code = silent[buf]
  if code then
    return ("%s Not shown: %s"):format(text, gate.SENTENCES[code])
  end
  return not current and text .. " Not shown until the next edit." or text
end

--- Start the prediction of next edits.
function M.start()
  if started then
    return
  end
  started = true
  highlights.apply()
  recorder.start(on_boundary)
  local on = notify.autocmds("next_edit")
  on({ "BufEnter", "BufReadPost", "InsertEnter" }, function(event)
    attach(event.buf)
    if event.event == "InsertEnter" then
      parse(event.buf)
    end
  end)
  on({ "TextChangedI", "CursorMovedI" }, on_key)
  local refresh_soon = vim.schedule_wrap(notify.guarded(refresh))
  on(
    { "CursorMoved", "WinScrolled", "WinEnter", "BufEnter", "ModeChanged", "WinClosed" },
    refresh_soon
  )
  on({ "RecordingEnter", "RecordingLeave", "CompleteChanged", "CompleteDone" }, refresh_soon)
  on("OptionSet", refresh_soon, { pattern = "diff" })
  on("User", refresh_soon, {
    pattern = { "LCursorCompletion*", "LCursorEdit*", "BlinkCmpMenuOpen", "BlinkCmpMenuClose" },
  })
  on("BufUnload", function(event)
    queue.clear(event.buf)
    waiting[event.buf], parsed[event.buf], silent[event.buf] = nil, nil, nil
  end)
  attach(api.nvim_get_current_buf())
  parse(api.nvim_get_current_buf())
end

return M
