-- Adaptive debounce: how long a key waits before a request, from how fast the user types and the
-- engine answers. After Tabby's debouncer.ts, with a minimum of 0. Reads no clock.

local M = {}

local PAUSE_MS = 400 -- a longer gap is a pause, after which nothing waits
local QUICK_MS = 60 -- an engine that answers faster gets a request at each key
local GAP_MS = { min = 100, usual = 200, max = PAUSE_MS }
local GAPS = 100 -- of the newest keys
local MIN_GAPS = 20 -- fewer say nothing about a user
local ANSWERS = 10

---@class (exact) lcursor.Pace
---@field gaps_ms number[] between the newest keys, oldest first; pauses among them
---@field answers_ms number[] until the first text of the newest requests, oldest first
---@field answer_ms? number their median
---@field key_ms? number when the last key was pressed

---@return lcursor.Pace
function M.new()
  return { gaps_ms = {}, answers_ms = {} }
end

---@param list number[]
---@param value number
---@param max integer
local function push(list, value, max)
  if #list == max then
    table.remove(list, 1)
  end
  table.insert(list, value)
end

--- Note a key.
---@param pace lcursor.Pace
---@param now_ms number
function M.key(pace, now_ms)
  push(pace.gaps_ms, pace.key_ms and now_ms - pace.key_ms or math.huge, GAPS)
  pace.key_ms = now_ms
end

--- Note an answer.
---@param pace lcursor.Pace
---@param first_ms number until its first text; 0 if there was none, which is ignored
function M.answered(pace, first_ms)
  if first_ms > 0 then
    push(pace.answers_ms, first_ms, ANSWERS)
    local sorted = vim.list_slice(pace.answers_ms)
    table.sort(sorted)
    pace.answer_ms = sorted[math.ceil(#sorted / 2)]
  end
end

--- Return the usual gap between two keys.
---@param gaps_ms number[]
---@return number
local function usual_gap(gaps_ms)
  local sum, count = 0, 0
  for _, gap in ipairs(gaps_ms) do
    if gap <= PAUSE_MS then
      sum, count = sum + gap, count + 1
    end
  end
  local mean = count > MIN_GAPS and sum / count or GAP_MS.usual
  return math.min(math.max(mean, GAP_MS.min), GAP_MS.max)
end

--- Return how long to wait after a key: less for a slow engine, whose answer comes later anyway,
--- and at the end of a line; not at all after a bracket, a dot or a blank.
---@param gaps_ms number[] the newest one last
---@param answer_ms? number how long the first text usually takes; nil if unknown
---@param char string before the cursor; "" at the start of a line
---@param at_end boolean nothing is right of the cursor
---@param max_ms number 0 asks at once
---@return integer ms
function M.delay(gaps_ms, answer_ms, char, at_end, max_ms)
  local gap = gaps_ms[#gaps_ms] or math.huge
  if max_ms == 0 or not answer_ms or answer_ms < QUICK_MS or gap > PAUSE_MS then
    return 0
  elseif not char:find("[%w_\128-\255]") then
    return 0
  end
  local score = at_end and 0.4 or 0
  local ms = (3 - 1.5 * score) * usual_gap(gaps_ms) - answer_ms
  return math.floor(math.min(math.max(ms, 0), max_ms))
end

return M
