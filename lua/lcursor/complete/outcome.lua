-- Tracks a suggestion from its request to its end, and reports its outcome to the host for the
-- statistics.

local rpc = require("lcursor.host.rpc")

local M = {}

local api = vim.api
local GLANCE_MS = 250 -- shown for less, it does not count as seen
local LONG_MS = 10 * 1000 -- given up after that, it was ignored, not rejected

---@type lcursor.Life? of the current suggestion
local current
---@type lcursor.ShownAt? where it was shown last
local shown_at

local function now_ms()
  return vim.uv.hrtime() / 1e6
end

---@return integer characters; not by strchars(), which rejects NUL bytes
local function count(str)
  return vim.str_utfindex(str, "utf-32", #str, false)
end

---@return lcursor.ShownAt
local function here()
  local buf, cursor = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)
  return { buf = buf, tick = api.nvim_buf_get_changedtick(buf), row = cursor[1], col = cursor[2] }
end

--- Note that a suggestion was requested.
---@param key_ms? number vim.uv.hrtime(), in ms, of the key that it answers
function M.requested(id, key_ms)
  shown_at = nil
  current = {
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

--- Note that it is on the screen, or still is after another key.
---@param s lcursor.Suggestion
---@param rest string the part not typed yet
function M.shown(s, rest)
  local it, now, done = current, now_ms(), #s.text - #rest
  if not it or it.id ~= s.id then
    return
  elseif it.text == "" then
    it.filetype = vim.bo[s.buf].filetype
    it.latency_ms = it.key_ms and now - it.key_ms or -1
  elseif not vim.startswith(s.text, it.text) then
    it.is_other = true -- the user chose an alternative; the confidence is not its own
  end
  if it.text ~= "" and done > it.done then
    it.through_keys = it.through_keys + 1
  end
  it.shown_ms = it.shown_ms or now
  it.text, it.done, shown_at = s.text, done, here()
end

--- Note that something covers it, as a menu: its latency is not measured then.
function M.covered()
  if current then
    current.key_ms = nil
  end
end

function M.hidden()
  if current and current.shown_ms then
    current.seen_ms, current.shown_ms = current.seen_ms + now_ms() - current.shown_ms, nil
  end
end

--- Note that the answer is complete.
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

function M.accepted(piece)
  if current then
    current.accepted, current.done = current.accepted + #piece, current.done + #piece
  end
end

--- Return how a suggestion ended when the buffer no longer matches: other text that is typed
--- rejects it, but not a cursor that moved away, nor text that was deleted.
---@param was lcursor.ShownAt where it was shown last
---@param now lcursor.ShownAt
---@return "typed"|"left"
function M.how(was, now)
  if was.buf ~= now.buf or was.tick == now.tick or now.row < was.row then
    return "left"
  end
  return now.row == was.row and now.col <= was.col and "left" or "typed"
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

--- Note that it is gone, and report it.
---@param how lcursor.End|"changed"|nil changed: the buffer no longer matches; nil is "left"
function M.ended(how)
  M.hidden()
  local it = current
  current = nil
  if not it or it.text == "" then
    return
  elseif how == "changed" then
    how = shown_at and M.how(shown_at, here())
  end
  local outcome = judge(it, how or "left")
  if outcome then
    rpc.notify("fim.outcome", {
      id = it.id,
      filetype = it.filetype,
      outcome = outcome,
      source = it.source,
      shown_chars = count(it.text),
      kept_chars = count(how == "through" and it.text or it.text:sub(1, it.done)),
      through_keys = it.through_keys,
      shown_ms = it.seen_ms,
      latency_ms = it.latency_ms,
      confidence = it.is_other and -1 or it.confidence,
    })
  end
end

return M
