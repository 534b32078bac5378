-- Next edits: after a change, shows where the next one is and what it is. One key goes there, one
-- applies it. Nothing here waits, and nothing moves text in Insert mode without a key.

local by_buffer = require("lcursor.editor.by_buffer")
local config = require("lcursor.config")
local delays = require("lcursor.next_edit.delays")
local diagnostics = require("lcursor.next_edit.diagnostics")
local gate = require("lcursor.next_edit.gate")
local highlights = require("lcursor.ui.highlights")
local keymaps = require("lcursor.editor.keymaps")
local menu = require("lcursor.ui.menu")
local notify = require("lcursor.ui.notify")
local queue = require("lcursor.next_edit.queue")
local recorder = require("lcursor.next_edit.recorder")
local predict = require("lcursor.next_edit.predict")
local status = require("lcursor.host.status")
local timers = require("lcursor.editor.timer")
local undo = require("lcursor.editor.undo")
local view = require("lcursor.next_edit.view")

local M = {}

local api = vim.api
local NEAR_ROWS = 20
local FADE_MS = 10 * 1000 -- from the last edit until a hint is hidden, except in its lines
local PARSE_MS = 50 -- after the beginning of the first insert

local started = false
---@type table<integer, true> buffers for which a request waits for git
local waiting = by_buffer.new()
---@type table<integer, true> buffers whose text the host has parsed
local parsed = by_buffer.new()
---@type number when the last key moved the cursor or changed text, in ms
local key_ms = 0
---@type number when the cursor last moved in Normal mode, or an operator ended, without an edit
local move_ms = 0
---@type number when another mode last ended
local left_ms = 0
---@type number when the last edit ended
local edit_ms = 0
---@type number when the visible proposal was first shown
local shown_ms = 0
---@type string? buffer, text and position at the last key
local last_key
---@class (exact) lcursor.NextShown what the keys are about
---@field buf integer the current buffer
---@field proposal lcursor.NextProposal
---@field target lcursor.NextTarget its file

---@type lcursor.NextShown?
local current
---@type lcursor.NextProposal? to which Tab went; drawn in its line in Insert mode too
local reached

local function now_ms()
  return vim.uv.hrtime() / 1e6
end

local refresh
local refresh_later = timers.new(function()
  refresh()
end)

local function hide()
  if current then
    current = nil
    view.hide()
    keymaps.unmap("next_edit")
  end
end

--- Return the line of a target for the cursor; new lines may come below the last one.
---@return integer from 1
local function line_of(buf, row)
  return math.min(row + 1, api.nvim_buf_line_count(buf))
end

---@param line integer from 1
---@return boolean whether a line is in the current window, maybe in a fold
local function is_in_window(line)
  return line >= vim.fn.line("w0") and line <= vim.fn.line("w$")
end

---@return boolean whether a target of the current buffer is close and visible
local function is_near(buf, proposal, row)
  local first, last = line_of(buf, row), line_of(buf, row + math.max(#proposal.old - 1, 0))
  local distance = math.abs(first - api.nvim_win_get_cursor(0)[1])
  local is_inside = is_in_window(first) and is_in_window(last)
  return distance <= NEAR_ROWS and is_inside and vim.fn.foldclosed(first) == -1
end

--- Return whether a hint may be in a line: always in those of the last edit, elsewhere for a while.
---@param line integer from 1
local function is_due(buf, line)
  local edit = recorder.last(buf)
  local is_there = edit and line > edit.row and line <= edit.row + math.max(#edit.new, 1)
  return is_there or now_ms() - edit_ms < FADE_MS
end

--- Draw a hint at the cursor's line, if it is time for one.
---@param target lcursor.NextTarget
---@return boolean drawn
local function draw_hint(buf, target, proposal, row)
  local now, is_insert = now_ms(), api.nvim_get_mode().mode == "i"
  local wait_ms = is_insert and key_ms + delays.pause - now or 0
  local line, col = unpack(api.nvim_win_get_cursor(0))
  if not is_due(buf, line) then
    return false
  elseif wait_ms > 0 then
    refresh_later(wait_ms)
    return false
  elseif is_insert and api.nvim_get_current_line():sub(1, col):find("^%s*$") then
    return false -- Tab indents there
  end
  local name = target ~= buf and vim.fs.basename(queue.path(target)) or ""
  local key = keymaps.shown("next_edit", "accept", buf, api.nvim_get_mode().mode)
  if edit_ms + FADE_MS > now then
    refresh_later(edit_ms + FADE_MS - now + 1)
  end
  return view.hint(buf, line - 1, row, name, proposal, queue.count(target, proposal), key)
end

--- Draw a proposal of the current buffer in its lines, if it is near enough.
---@return boolean drawn
local function draw_inline(buf, proposal, row)
  local is_wanted = config.for_buffer(buf).next_edit.mode == "draw" or reached == proposal
  if api.nvim_get_mode().mode == "i" then
    is_wanted = reached == proposal and line_of(buf, row) == api.nvim_win_get_cursor(0)[1]
  end
  if not is_wanted or not is_near(buf, proposal, row) then
    return false
  end
  local key = keymaps.shown("next_edit", "accept", buf, api.nvim_get_mode().mode)
  view.draw(buf, proposal, row, queue.count(buf, proposal), key)
  return true
end

--- Show the first proposal of the current buffer in the way that fits here, else one of another
--- buffer, or hide it.
refresh = function()
  local buf = api.nvim_get_current_buf()
  local target, proposal, row = buf, queue.first(buf)
  if not proposal then
    target, proposal, row = queue.elsewhere(buf)
  end
  if not proposal or gate.block_reason(buf) then
    return hide()
  end
  local wait_ms = move_ms + delays.move - now_ms()
  if wait_ms > 0 and api.nvim_get_mode().mode == "n" then
    if not current or current.proposal ~= proposal or current.buf ~= buf then
      hide()
    end
    return refresh_later(wait_ms)
  end
  local is_drawn = target == buf and draw_inline(buf, proposal, row)
  if not is_drawn and not draw_hint(buf, target, proposal, row) then
    return hide()
  end
  if not current or current.proposal ~= proposal then
    shown_ms = now_ms()
  end
  current = { buf = buf, proposal = proposal, target = target }
  keymaps.map("next_edit", buf, M.press_key)
end

--- Record the edits of a buffer if they may be read; git is asked at the first one.
local function attach(buf)
  if not api.nvim_buf_is_loaded(buf) then
    return
  end
  local code = gate.buffer_block_reason(buf)
  if code and code ~= "checking" then
    recorder.detach(buf)
    queue.forget(buf)
  else
    recorder.attach(buf)
  end
end

--- Return whether a buffer may be read. If git has to be asked first, request the next edits when
--- it has answered.
---@param buf integer the current one
local function is_readable(buf)
  local code = gate.buffer_block_reason(buf, not waiting[buf] and function()
    waiting[buf] = nil
    attach(buf)
    if buf == api.nvim_get_current_buf() and recorder.is_attached(buf) then
      predict.send_later(0, buf)
    end
  end or nil)
  if code == "checking" then
    waiting[buf] = true
  elseif code then
    attach(buf)
  end
  return not code
end

---@param kind lcursor.Boundary
local function on_boundary(buf, kind)
  local before_ms = edit_ms
  edit_ms, move_ms, reached = now_ms(), 0, nil
  if kind ~= "edit" then
    diagnostics.stop()
  end
  predict.forget()
  queue.note(buf, kind ~= "edit" and kind or vim.fn.reg_recording() ~= "" and "macro" or nil)
  if kind == "undo" then
    queue.clear_all(recorder.is_taken_back(buf))
    return refresh()
  elseif kind == "other" then
    queue.clear(buf)
    return refresh()
  end
  local edit = recorder.last(buf)
  if edit then
    queue.edited(edit)
  end
  refresh()
  local is_quick = api.nvim_get_mode().mode == "n" and edit_ms - before_ms < delays.again
  if vim.fn.reg_recording() ~= "" or buf ~= api.nvim_get_current_buf() then
    return
  end
  diagnostics.edited(buf)
  if not is_readable(buf) then
    return
  elseif is_quick then
    return predict.send_later(delays.again, buf)
  end
  predict.send()
end

--- Have the text of a buffer parsed at the beginning of its first edit.
local function parse(buf)
  if not parsed[buf] and recorder.is_attached(buf) then
    parsed[buf] = true
    if is_readable(buf) then
      predict.send_later(PARSE_MS, buf)
    end
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
  local is_reached = current and current.proposal == reached
  if not is_reached or queue.row(buf, reached) ~= cursor[1] - 1 then
    hide()
  end
  if queue.first(buf) or queue.elsewhere(buf) then
    refresh_later(delays.pause)
  end
end

--- Apply a proposal of the current buffer as one undo step.
---@param proposal lcursor.NextProposal
local function apply(proposal)
  local buf = api.nvim_get_current_buf()
  hide()
  recorder.finish(buf)
  local is_insert = api.nvim_get_mode().mode == "i"
  undo.end_step(buf)
  local position = queue.apply(buf, proposal)
  undo.end_step(buf)
  if position then
    local column = is_insert and position[2] or math.max(position[2] - 1, 0)
    api.nvim_win_set_cursor(0, { position[1] + 1, column })
  end
  recorder.finish(buf, true)
  edit_ms, reached, last_key = now_ms(), nil, nil
  key_ms, move_ms = 0, 0
  refresh()
  predict.send()
  diagnostics.edited(buf)
  status.emit("LCursorNextEditAccept", { buf = buf })
end

--- Go to a proposal.
---@param proposal lcursor.NextProposal
---@param target lcursor.NextTarget its file
local function jump(proposal, target)
  local here = api.nvim_get_current_buf()
  if target ~= here then
    local path = queue.path(target)
    local win, message = require("lcursor.ui.open").file(target) -- loaded at the first jump
    if not win then
      queue.clear(target)
      refresh()
      return notify.warn(message --[[@as string]])
    end
    here = api.nvim_get_current_buf()
    queue.opened(here, path)
  else
    vim.cmd("normal! m'")
    undo.end_step(here) -- else changes at the target in Insert mode cannot be undone
  end
  local row = queue.row(here, proposal)
  if row then
    local line, word = line_of(here, row), (view.words(proposal) or {})[1]
    local text = api.nvim_buf_get_lines(here, line - 1, line, false)[1] or ""
    local was_visible = is_in_window(line)
    local column = word and word.first or #text:match("^%s*")
    api.nvim_win_set_cursor(0, { line, column })
    vim.cmd(was_visible and "normal! zv" or "normal! zvzz")
  end
  reached, key_ms, move_ms, last_key, edit_ms = proposal, 0, 0, nil, now_ms()
  refresh()
end

--- Return whether a proposal is drawn in the line to which Tab went.
function M.is_at_cursor()
  return current ~= nil and current.proposal == reached and view.is_inline()
end

--- Apply the visible proposal, or go to it.
function M.accept()
  local it = current
  local row = it and queue.row(it.target, it.proposal)
  if not it or not row then
    return hide()
  elseif it.target == it.buf and view.is_complete(it.proposal, row) then
    apply(it.proposal)
  else
    jump(it.proposal, it.target)
  end
end

--- Reject the visible proposal and those with the same cause.
function M.dismiss()
  if current then
    local buf = current.buf
    queue.decide(current.proposal, false)
    refresh()
    status.emit("LCursorNextEditDismiss", { buf = buf })
  end
end

--- Show known changes as the hunks of an edit, and go to the first one.
---@param files lcursor.EditChanges[]
---@return boolean whether they will come
local function propose(title, files)
  local buffers, edit = require("lcursor.editor.buffers"), require("lcursor.edit")
  local buf = api.nvim_get_current_buf()
  local paths = vim.tbl_map(function(file)
    return file.path
  end, files)
  local function go_to_first()
    local hunks = require("lcursor.edit.proposals").hunks(0)
    if #hunks == 0 and api.nvim_get_current_buf() == buf then
      require("lcursor.edit.hunks").next(1) -- in another file
    end
  end
  local lhs = keymaps.shown("hunk", "accept_all", buf)
  return edit.is_on()
    and edit.begin("edit.propose", {
        path = buffers.path(buf),
        title = title,
        files = files,
        buffers = buffers.loaded(paths),
      }, { answered = go_to_first, hint = lhs and lhs .. " accepts all" or nil })
      ~= nil
end

--- Show all proposals with the same cause, of all files, as the hunks of an edit.
function M.accept_all()
  local it = current
  local files = it and queue.changes(it.proposal.group) or {}
  if not it or #files == 0 then
    return M.accept()
  elseif propose(it.proposal.cause, files) then
    queue.decide(it.proposal, true)
    refresh()
  end
end

--- Do what a key stands for; for the <Plug> maps.
function M.press(action)
  local run = M[action] or M.dismiss -- "dismiss_insert" has no function of its own
  run()
end

--- Do what a key stands for, or press it as if lcursor were not there. <Esc> does both.
function M.press_key(action, lhs)
  local is_ours = current and current.buf == api.nvim_get_current_buf() and not menu.is_visible()
  -- Many press <Esc> twice to leave Insert mode.
  if is_ours and (action ~= "dismiss" or now_ms() - shown_ms >= delays.glance) then
    M.press(action)
  end
  if not is_ours then
    hide()
  end
  if not is_ours or action == "dismiss" then
    keymaps.unmap("next_edit")
    api.nvim_feedkeys(vim.keycode(lhs), "imt", false)
    vim.schedule(notify.guarded(refresh))
  end
end

--- Return what causes the next edit here, or why there is none.
---@return string "" if nothing was changed
function M.why()
  refresh() -- the mode may have changed
  return require("lcursor.next_edit.why").text(api.nvim_get_current_buf(), current ~= nil)
end

--- Start over after a buffer was switched on or off.
function M.refresh()
  if not started then
    return
  end
  for _, buf in ipairs(api.nvim_list_bufs()) do
    attach(buf)
  end
  refresh()
end

--- Start the prediction of next edits.
function M.start()
  if started then
    return
  end
  started = true
  highlights.apply()
  recorder.start(on_boundary)
  predict.start(refresh)
  diagnostics.start(refresh)
  local on = notify.autocmds("next_edit")
  on("BufReadPost", function(event)
    queue.opened(event.buf, api.nvim_buf_get_name(event.buf))
  end)
  on({ "BufEnter", "BufReadPost", "InsertEnter" }, function(event)
    attach(event.buf)
    if event.event == "InsertEnter" then
      parse(event.buf)
    end
  end)
  on({ "TextChangedI", "CursorMovedI" }, on_key)
  local refresh_soon = vim.schedule_wrap(notify.guarded(refresh))
  on({ "CursorMoved", "WinScrolled" }, function()
    if now_ms() - math.max(edit_ms, left_ms) > delays.edit then
      move_ms = now_ms()
    end
    refresh_soon()
  end)
  on("ModeChanged", function()
    local old, new = vim.v.event.old_mode, vim.v.event.new_mode
    if new == "i" then
      key_ms = now_ms()
    elseif vim.startswith(old, "no") then
      move_ms = now_ms()
    else
      left_ms, move_ms = now_ms(), 0
    end
  end)
  on({ "WinEnter", "BufEnter", "ModeChanged", "WinClosed" }, refresh_soon)
  on({ "RecordingEnter", "RecordingLeave", "CompleteChanged", "CompleteDone" }, refresh_soon)
  on("OptionSet", refresh_soon, { pattern = "diff" })
  on("User", refresh_soon, {
    pattern = { "LCursorCompletion*", "LCursorEdit*", "BlinkCmpMenuOpen", "BlinkCmpMenuClose" },
  })
  on("BufUnload", function(event)
    queue.forget(event.buf)
  end)
  attach(api.nvim_get_current_buf())
  parse(api.nvim_get_current_buf())
end

return M
