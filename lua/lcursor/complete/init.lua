-- Ghost text: requests a suggestion, and shows the rest of it while the user types.
-- Nothing here waits, so each handler first checks that its suggestion is still the current one.

local accept = require("lcursor.complete.accept")
local config = require("lcursor.config")
local context = require("lcursor.editor.context")
local cycle = require("lcursor.complete.cycle")
local gate = require("lcursor.complete.gate")
local ghost = require("lcursor.complete.ghost")
local highlights = require("lcursor.ui.highlights")
local keymaps = require("lcursor.editor.keymaps")
local menu = require("lcursor.ui.menu")
local notify = require("lcursor.ui.notify")
local outcome = require("lcursor.complete.outcome")
local fim = require("lcursor.complete.fim")
local sign = require("lcursor.complete.sign")
local status = require("lcursor.host.status")
local suggestion = require("lcursor.complete.suggestion")
local text = require("lcursor.text")
local timers = require("lcursor.editor.timer")
local trigger = require("lcursor.complete.trigger")
local why = require("lcursor.complete.why")

local M = {}

local api = vim.api

---@type table<string, lcursor.Kind> what of a suggestion an action accepts
local KINDS = { accept = "all", accept_line = "line", accept_word = "word" }
local PAUSE_MS = 1000 -- how long without a key until a visible text may be replaced

local started = false
---@type lcursor.Suggestion? the only one; until it is done, the host is generating it
local current
---@type string? the position at the last update
local last_update
---@type string? the position of a trigger that waits for the host
local triggered
---@type { buf: integer, tick: integer }? the text in which a suggestion was dismissed
local dismissed
---@type lcursor.CompletionListener the callbacks of our requests
local listener
---@type number? when the last key without a request was pressed, in ms
local key_ms
---@type number when the last key was pressed, in ms
local pressed_ms = 0

---@return string the buffer, its text and the cursor
local function position()
  local buf, cursor = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)
  return ("%d %d %d %d"):format(buf, api.nvim_buf_get_changedtick(buf), cursor[1], cursor[2])
end

local function now_ms()
  return vim.uv.hrtime() / 1e6
end

---@return boolean whether the answer was empty; a better one may come
local function is_silent(s)
  return s.is_done and not text.is_visible(s.text)
end

local function hide()
  ghost.hide()
  outcome.hidden()
  keymaps.unmap("suggestion")
end

--- Drop the suggestion, and cancel its request.
---@param how? lcursor.End|"changed"
local function drop(how)
  local s = current
  current = nil
  hide()
  outcome.ended(how)
  if s and not s.is_done then
    fim.cancel(s.id, listener)
  elseif s then
    cycle.stop(s)
  end
end

--- Do what a key stands for; for the <Plug> maps.
---@return string what to type
function M.press(action)
  if KINDS[action] then
    return M.accept_keys(KINDS[action])
  elseif action == "dismiss" then
    M.dismiss()
  elseif action == "trigger" then
    M.trigger()
  else
    M.cycle(action == "next" and 1 or -1)
  end
  return ""
end

--- Do what a key stands for, or press it as if lcursor were not there.
---@return string what to type
local function press(action, lhs)
  local is_ours = ghost.is_visible() and not menu.is_visible()
  if is_ours and menu.is_in_snippet() then
    keymaps.unmap("suggestion") -- what is shown afterwards maps them again
    is_ours = not menu.jumps(lhs)
  end
  local typed = is_ours and M.press(action)
  if not typed or (typed == "" and KINDS[action]) then
    keymaps.unmap("suggestion")
    api.nvim_feedkeys(vim.keycode(lhs), "imt", false)
  end
  return typed or ""
end

---@param count? string instead of cycle.count
local function show(s, rest, count)
  if not text.is_visible(rest) then
    return hide()
  end
  local code = gate.mode_block_reason()
  if code then
    why.note(s.buf, code)
    outcome.covered()
    return hide()
  end
  local cursor = api.nvim_win_get_cursor(0)
  local before, behind = suggestion.parts(s, rest)
  count = count or cycle.count(s, rest)
  if not ghost.draw(s.buf, cursor[1] - 1, cursor[2], before, count, behind) then
    return hide()
  end
  keymaps.map("suggestion", s.buf, press)
  outcome.shown(s, rest)
  why.note(s.buf, "shown")
  if not s.is_announced then
    s.is_announced = true
    status.emit("LCursorCompletionShow", { buf = s.buf, text = rest })
  end
end

---@type fun(kind: "auto"|"manual")
local ask

local start_debounce, stop_debounce = timers.new(function()
  ask("auto")
end)

--- Request a suggestion after the debounce.
local function ask_later()
  local ms = config.for_buffer(api.nvim_get_current_buf()).completion.debounce_ms
  if ms > 0 then
    return start_debounce(ms)
  end
  stop_debounce()
  ask("auto")
end

--- Update what is shown after a change. Runs at every key, before the screen is drawn.
local function update()
  local where = position()
  local moved = where ~= last_update
  last_update = where
  if moved then
    key_ms = now_ms()
    pressed_ms = key_ms
    sign.hide()
  end
  local s = current
  if s then
    local rest = suggestion.rest(s)
    if rest and (text.is_visible(rest) or not s.is_done) then
      return show(s, rest)
    end
    local was_silent = is_silent(s)
    if was_silent and not moved then
      return
    end
    drop(rest and "through" or "changed")
    if rest and not was_silent then
      return ask("auto") -- it was typed or accepted completely
    end
  end
  if moved then
    ask_later()
  end
end

---@return string? code
local function buffer_block_reason(buf)
  return gate.buffer_block_reason(buf, function()
    if api.nvim_get_current_buf() == buf then
      ask("auto")
    end
  end)
end

---@param kind "auto"|"manual"
---@return string? code
---@return boolean single_line
local function block_reason(buf, kind)
  local own = config.for_buffer(buf)
  local code = buffer_block_reason(buf) or gate.mode_block_reason() or fim.block_reason()
  if code then
    return code, false
  end
  local cursor, tick = api.nvim_win_get_cursor(0), api.nvim_buf_get_changedtick(buf)
  if kind == "auto" then
    if not own.completion.auto_trigger then
      return "manual_only", false
    elseif dismissed and dismissed.buf == buf and dismissed.tick == tick then
      return "dismissed", false
    end
  end
  return gate.position_block_reason(buf, cursor[1] - 1, cursor[2], own, kind == "manual")
end

---@param kind "auto"|"manual"
ask = function(kind)
  local buf = api.nvim_get_current_buf()
  if kind == "auto" and not trigger.is_insert(api.nvim_get_mode().mode) then
    return
  elseif kind == "auto" and current and not is_silent(current) then
    return update()
  end
  stop_debounce()
  drop()
  pressed_ms = now_ms()
  local requested_ms = kind == "manual" and pressed_ms or key_ms
  key_ms = nil
  local code, single_line = block_reason(buf, kind)
  if code then
    if vim.startswith(code, "host_") then
      sign.wait()
      triggered = kind == "manual" and position() or triggered
    else
      sign.hide(true)
    end
    if code == "menu" then
      last_update = nil -- so that closing it counts as a change
    end
    return why.note(buf, code)
  end
  local cursor = api.nvim_win_get_cursor(0)
  local row, col = cursor[1] - 1, cursor[2]
  local request = context.read(buf, row, col)
  request.trigger, request.single_line = kind, single_line
  local id = fim.ask(request, listener)
  if not id then
    sign.hide(true)
    return why.note(buf, "secret_text")
  end
  current = suggestion.new(id, buf, row, col, single_line)
  outcome.requested(id, requested_ms)
  why.note(buf, "waiting")
  sign.wait()
end

--- Show the text so far.
---@param replaces? integer bytes right of the cursor that it replaces
local function receive(id, suggested, is_done, replaces)
  local s = current
  if not s or s.id ~= id then
    return
  end
  suggestion.extend(s, suggested, replaces)
  s.is_done = is_done
  local rest = suggestion.rest(s)
  if rest and (text.is_visible(rest) or not is_done) then
    return show(s, rest)
  end
  if rest == s.text then
    return hide() -- it is kept because a better answer may come
  end
  drop(rest and "through" or "changed")
  ask_later()
end

--- Show a better answer, made with more context. It extends what is visible; it replaces that only
--- while the user pauses, and never an alternative.
---@param answer lcursor.Answer
local function improve(id, answer)
  local s = current
  if not s or s.id ~= id or not s.is_done or s.texts or s.steps then
    return
  end
  local rest = suggestion.rest(s)
  if not rest then
    return -- the next update notices that
  end
  local is_paused = now_ms() - pressed_ms >= PAUSE_MS
  local may_change = rest == s.text and (is_paused or not ghost.is_visible())
  local is_same = answer.text == s.text -- confirmed with more context
  if not text.is_visible(s.text) and not text.is_visible(answer.text) then
    why.empty(s.buf, answer)
  elseif is_same or suggestion.improve(s, answer.text, answer.replaces, may_change) then
    outcome.improved(s, answer.stats)
    why.cost(s.buf, answer.stats)
    show(s, suggestion.rest(s) or "")
  end
end

listener = {
  partial = function(id, suggested)
    sign.answered()
    receive(id, suggested, false)
  end,
  done = function(id, answer)
    local s = current
    sign.answered()
    outcome.answered(id, answer.stats)
    if s and s.id == id then
      why.cost(s.buf, answer.stats)
      if not text.is_visible(s.text) and not text.is_visible(answer.text) then
        why.empty(s.buf, answer)
      end
    end
    receive(id, answer.text, true, answer.replaces)
    if current and current.id == id then
      cycle.ask(current, show)
    end
  end,
  improved = improve,
}

local function leave()
  stop_debounce()
  sign.hide(true)
  last_update, triggered = nil, nil
  local s = current
  if s then
    drop()
    if why.get(s.buf).code == "waiting" then
      why.note(s.buf, "left")
    end
  end
  fim.stop("cancelled") -- also those of menus
end

--- Start completion: at the first insert in a normal buffer, or by a command.
function M.start()
  if started then
    return
  end
  started = true
  highlights.apply()
  trigger.listen({
    update = update,
    enter = function()
      key_ms = now_ms()
      ask_later()
    end,
    leave = leave,
    forget = function(buf)
      if current and current.buf == buf then
        drop()
      end
    end,
    host = function(state)
      sign.changed()
      if state == "ready" then
        local kind = triggered == position() and "manual" or "auto"
        triggered = nil
        return ask(kind)
      elseif state == "loading_model" then
        return -- a running host that loads the model again answers later
      elseif current and not current.is_done then
        current.is_done, current.steps = true, nil -- nothing more will come
        update()
      end
      if status.get().state ~= "ready" then
        fim.stop("failed")
      end
    end,
  })
  vim.schedule(notify.guarded(function() -- the first key does not wait for these
    require("lcursor.complete.gather").start()
    require("lcursor.complete.prefetch").start()
  end))
  ask_later()
end

--- Request a suggestion here, even if none would come automatically.
function M.trigger()
  M.start()
  dismissed = nil
  ask("manual")
end

--- Return keys that accept what is shown, for an <expr> map; "" if nothing is.
---@param kind lcursor.Kind
function M.accept_keys(kind)
  local s = current
  local rest = s and ghost.is_visible() and suggestion.rest(s)
  if not s or not rest or rest == "" then
    return ""
  end
  local before, behind = suggestion.parts(s, rest)
  local replaces = 0
  local piece = text.piece(before, kind)
  if behind ~= "" and (kind ~= "word" or before == "") then
    piece, replaces = rest, #s.tail
  end
  local pad = ghost.pad()
  return accept.keys((" "):rep(pad) .. piece, function()
    s.head, s.col = s.head .. (" "):rep(pad), s.col + pad
    status.emit("LCursorCompletionAccept", { buf = s.buf, text = piece, kind = kind })
    outcome.accepted(piece)
    if replaces > 0 then
      suggestion.replaced(s)
    end
    update()
  end, replaces)
end

--- Accept what is shown, from anywhere in insert mode.
---@param kind? lcursor.Kind
---@return boolean whether there was a suggestion
function M.accept(kind)
  local typed = M.accept_keys(kind or "all")
  if typed == "" then
    return false
  end
  api.nvim_feedkeys(vim.keycode(typed), "in", false)
  return true
end

--- Show another suggestion for the same place.
---@param by integer steps; below 0 goes backwards
---@return boolean whether there was a ghost
function M.cycle(by)
  if not current or not ghost.is_visible() then
    return false
  end
  cycle.by(current, by, show)
  return true
end

--- Hide the suggestion until the text changes.
---@return boolean whether there was one
function M.dismiss()
  local s = current
  if not s then
    return false
  end
  local was_visible = ghost.is_visible()
  dismissed = { buf = s.buf, tick = api.nvim_buf_get_changedtick(s.buf) }
  drop("dismissed")
  why.note(s.buf, "dismissed")
  if was_visible then
    status.emit("LCursorCompletionDismiss", { buf = s.buf })
  end
  return was_visible
end

--- Start over after completion was switched on or off.
function M.refresh()
  if not started then
    return
  end
  drop()
  ask_later()
end

--- Return why there is a suggestion in the current buffer now, or none.
---@return lcursor.Why
function M.why()
  local buf, mode = api.nvim_get_current_buf(), api.nvim_get_mode().mode
  local code = buffer_block_reason(buf)
  local state = status.get().state
  if not code and state ~= "ready" and (started or state == "failed") then
    code = fim.server_is_away() and "no_server" or "host_" .. state
  end
  local is_outside = not code and not mode:find("^[iR]") and not mode:find("^ni")
  local found = is_outside and why.outside(buf) or why.get(buf, code)
  if state == "ready" and vim.startswith(found.code, "host_") then
    -- The host was not ready when it was asked.
    found = why.get(buf, is_outside and "mode" or "nothing")
  end
  if found.code == "shown" and not ghost.is_visible() then
    found.text = found.text:gsub(" is shown", " was shown") -- Insert mode was left
  end
  return found
end

---@return lcursor.Answer? the last answer of the host
function M.last_answer()
  return fim.last_answer()
end

---@return integer? id of the request that is shown or pending
function M.current_id()
  return current and not is_silent(current) and current.id or nil
end

---@return boolean whether the current answer is complete
function M.is_settled()
  return current == nil or current.is_done
end

return M
