-- How long a key waits before the model is asked, from how fast the user types and the engine
-- answers. Source: Tabby's debouncer.ts, with a floor of 0. Owns no timer and reads no clock.

local M = {}

local PAUSE_MS = 400 -- a longer gap is a pause: who comes back waits for nothing
local QUICK_MS = 60 -- an engine that answers so soon may be asked at each key
local GAP_MS = { least = 100, usual = 200, most = PAUSE_MS }
local GAPS = 100 -- of the newest keys
local ENOUGH = 20 -- gaps that say something about a user
local ANSWERS = 10

---@class (exact) lcursor.Pace
---@field gaps_ms number[] between the newest keys, oldest first; pauses among them
---@field answers_ms number[] until the first text of the newest requests, oldest first
---@field answer_ms? number their median
---@field key_ms? number when the last key came

---@return lcursor.Pace
function M.new()
  return { gaps_ms = {}, answers_ms = {} }
end

---@param list number[]
---@param value number
---@param most integer
local function push(list, value, most)
  if #list == most then
    table.remove(list, 1)
  end
  table.insert(list, value)
end

--- A key was pressed.
---@param pace lcursor.Pace
---@param now_ms number
function M.key(pace, now_ms)
  push(pace.gaps_ms, pace.key_ms and now_ms - pace.key_ms or math.huge, GAPS)
  pace.key_ms = now_ms
end

--- The engine has answered a request.
---@param pace lcursor.Pace
---@param first_ms number until its first text; 0 when there was none, which says nothing
function M.answered(pace, first_ms)
  if first_ms > 0 then
    push(pace.answers_ms, first_ms, ANSWERS)
    local sorted = vim.list_slice(pace.answers_ms)
    table.sort(sorted)
    pace.answer_ms = sorted[math.ceil(#sorted / 2)]
  end
end

--- The user's usual gap between two keys.
---@param gaps_ms number[]
---@return number
local function usual_gap(gaps_ms)
  local sum, count = 0, 0
  for _, gap in ipairs(gaps_ms) do
    if gap <= PAUSE_MS then
      sum, count = sum + gap, count + 1
    end
  end
  local mean = count > ENOUGH and sum / count or GAP_MS.usual
  return math.min(math.max(mean, GAP_MS.least), GAP_MS.most)
end

--- How long to wait after a key. A slow engine is asked sooner, since its answer comes later
--- anyway; sooner too at the end of a line, and at once behind a bracket, a dot or a blank.
---@param gaps_ms number[] the newest one last
---@param answer_ms? number how long the first text usually takes; nil when nothing is known
---@param char string before the cursor; "" at the start of a line
---@param at_end boolean nothing stands right of the cursor
---@param most_ms number 0 asks at once
---@return integer ms
function M.delay(gaps_ms, answer_ms, char, at_end, most_ms)
  local gap = gaps_ms[#gaps_ms] or math.huge
  if most_ms == 0 or not answer_ms or answer_ms < QUICK_MS or gap > PAUSE_MS then
    return 0
  elseif not char:find("[%w_\128-\255]") then
    return 0
  end
  local score = at_end and 0.4 or 0
  local ms = (3 - 1.5 * score) * usual_gap(gaps_ms) - answer_ms
  return math.floor(math.min(math.max(ms, 0), most_ms))
end

return M
