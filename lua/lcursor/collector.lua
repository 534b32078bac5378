-- Keeps LuaJIT's collector out of the moments that a user would feel: it rests while much is done
-- for a screen, then ends its cycle in turns of its own. What it sweeps for a megabyte that is
-- allocated can take 40 ms, wherever that happens to be. Knows nothing of what is done meanwhile.

local M = {}

local uv = vim.uv

local REST_MS = 60 -- after the last word that it is to rest
local TURN_NS = 1.5e6
local PAUSE_MS = 6
local FINE = 20 -- "step multiplier" of a turn: what a long string has put off is done in one step
local MOST_KB = 48 * 1024 -- that come in the meantime: then it works as ever

local timer = assert(uv.new_timer())
local is_held = false
local began_kb = 0

local function release()
  timer:stop()
  is_held = false
  collectgarbage("restart")
end

--- Take the collector, or keep it.
---@return boolean whether it is ours: not where too much came since it was taken
local function hold()
  if not is_held then
    is_held, began_kb = true, collectgarbage("count")
  elseif collectgarbage("count") - began_kb > MOST_KB then
    release()
    return false
  end
  collectgarbage("stop")
  return true
end

local function turn()
  local ends = uv.hrtime() + TURN_NS
  local usual = collectgarbage("setstepmul", FINE)
  local is_over
  repeat
    is_over = collectgarbage("step", 0)
  until is_over or uv.hrtime() > ends
  collectgarbage("setstepmul", usual)
  if is_over then
    is_held = false -- it is between two cycles, and works as ever
  elseif hold() then
    timer:start(PAUSE_MS, 0, turn)
  end
end

--- End the cycle that it is in, in turns: much will be done soon, and shall not meet it at work.
function M.tidy()
  if hold() then
    timer:start(PAUSE_MS, 0, turn)
  end
end

--- Let it rest for a moment; who is not done by then says so again.
function M.rest()
  if hold() then
    timer:start(REST_MS, 0, turn)
  end
end

return M
