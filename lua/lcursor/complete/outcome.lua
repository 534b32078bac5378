-- Tracks what becomes of a suggestion, from its request to its end, and reports it to the host for
-- the statistics. The functions of `life` only compute; the others read the clock and the buffer.

local rpc = require("lcursor.rpc")

local M = {}

--- Not strchars(), which refuses the NUL bytes that a buffer may hold.
---@param str string
---@return integer characters
local function count(str)
  return vim.str_utfindex(str, "utf-32", #str, false)
end

local api = vim.api
local GLANCE_MS = 250 -- shown for less, it does not count as seen
local LONG_MS = 10 * 1000 -- given up after that, it was ignored, not rejected

local life = {}
M.life = life

---@param id integer of the request
---@param key_ms? number when the key was pressed that it answers
---@return lcursor.Life
function life.begin(id, key_ms)
  return {
    id = id,
    key_ms = key_ms,
    filetype = "",
    text = "",
    done = 0,
    accepted = 0,
    through_keys = 0,
    seen_ms = 0,
    latency_ms = -1,
    confidence = -1,
    source = "model",
  }
end

--- Note that it is on the screen.
---@param it lcursor.Life
---@param said string its text so far
---@param rest string what of it is still to come
---@param now_ms number
function life.show(it, said, rest, now_ms)
  if it.text == "" then
    it.latency_ms = it.key_ms and now_ms - it.key_ms or -1
  elseif not vim.startswith(said, it.text) then
    it.is_other = true -- the user chose an alternative; the confidence is not its own
  end
  it.shown_ms = it.shown_ms or now_ms
  local done = #said - #rest
  if it.text ~= "" and done > it.done then
    it.through_keys = it.through_keys + 1
  end
  it.text, it.done = said, done
end

--- Note that it is hidden.
---@param it lcursor.Life
---@param now_ms number
function life.hide(it, now_ms)
  if it.shown_ms then
    it.seen_ms, it.shown_ms = it.seen_ms + now_ms - it.shown_ms, nil
  end
end

--- Note that a piece of it was accepted.
---@param it lcursor.Life
---@param piece string
function life.accept(it, piece)
  it.accepted, it.done = it.accepted + #piece, it.done + #piece
end

---@param it lcursor.Life
---@param how lcursor.End
---@return "accepted"|"partial"|"typed"|"rejected"|"ignored"|nil outcome nil if it does not count
local function judge(it, how)
  if it.accepted > 0 then
    return how == "through" and "accepted" or "partial"
  elseif it.seen_ms < GLANCE_MS then
    return nil
  elseif how == "through" then
    return "typed"
  end
  return how ~= "left" and it.seen_ms <= LONG_MS and "rejected" or "ignored"
end

--- Note its end.
---@param it lcursor.Life
---@param how lcursor.End
---@param now_ms number
---@return lcursor.Outcome? nil if it does not count
function life.finish(it, how, now_ms)
  life.hide(it, now_ms)
  local outcome = it.text ~= "" and judge(it, how)
  if not outcome then
    return nil
  end
  local kept = how == "through" and it.text or it.text:sub(1, it.done)
  return {
    id = it.id,
    filetype = it.filetype,
    outcome = outcome,
    source = it.source,
    shown_chars = count(it.text),
    kept_chars = count(kept),
    through_keys = it.through_keys,
    shown_ms = it.seen_ms,
    latency_ms = it.latency_ms,
    confidence = it.is_other and -1 or it.confidence,
  }
end

--- Return how it ended when the buffer no longer matches: other text that is typed rejects it, but
--- not a cursor that moved away, nor text that was deleted.
---@param was lcursor.Stand where it was shown last
---@param now lcursor.Stand
---@return "typed"|"left"
function life.how(was, now)
  if was.buf ~= now.buf or was.tick == now.tick or now.row < was.row then
    return "left"
  end
  return now.row == was.row and now.col <= was.col and "left" or "typed"
end

---@type lcursor.Life? of the current suggestion
local current
---@type lcursor.Stand? where it was shown last
local stand

---@return number
local function now_ms()
  return vim.uv.hrtime() / 1e6
end

---@return lcursor.Stand
local function here()
  local buf, cursor = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)
  return { buf = buf, tick = api.nvim_buf_get_changedtick(buf), row = cursor[1], col = cursor[2] }
end

--- Note that a suggestion was requested.
---@param id integer
---@param key_ms? number vim.uv.hrtime(), in ms, of the key that it answers
function M.asked(id, key_ms)
  current, stand = life.begin(id, key_ms), nil
end

--- Note that it is on the screen, or still is after another key.
---@param s lcursor.Suggestion
---@param rest string
function M.shown(s, rest)
  if current and current.id == s.id then
    if current.text == "" then
      current.filetype = vim.bo[s.buf].filetype
    end
    life.show(current, s.text, rest, now_ms())
    stand = here()
  end
end

--- Note that something covers it, as a menu: its latency is not measured then.
function M.covered()
  if current then
    current.key_ms = nil
  end
end

function M.hidden()
  if current then
    life.hide(current, now_ms())
  end
end

--- Note that the answer is complete.
---@param id integer
---@param stats? lcursor.Stats
function M.answered(id, stats)
  if current and current.id == id and stats then
    current.confidence, current.source = stats.confidence, stats.source or "model"
  end
end

--- Note that a better answer replaced it.
---@param s lcursor.Suggestion
---@param stats lcursor.Stats
function M.improved(s, stats)
  M.answered(s.id, stats)
  if current and current.id == s.id and current.text ~= "" then
    current.text = s.text -- so that it does not count as an alternative that the user chose
  end
end

---@param piece string
function M.accepted(piece)
  if current then
    life.accept(current, piece)
  end
end

--- Note that it is gone.
---@param how lcursor.End|"changed"|nil changed: the buffer no longer matches; nil is "left"
function M.ended(how)
  local it = current
  current = nil
  if not it or it.text == "" then
    return
  elseif how == "changed" then
    how = stand and life.how(stand, here()) or "left"
  end
  local row = life.finish(it, how or "left", now_ms())
  if row then
    rpc.notify("fim.outcome", row)
  end
end

return M
