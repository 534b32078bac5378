-- Steps through the suggestions for one place. Asks for them at the first press; until they come
-- nothing changes on the screen and further presses are counted. Draws nothing itself.

local alternatives = require("lcursor.complete.alternatives")
local requests = require("lcursor.complete.requests")
local suggestion = require("lcursor.complete.suggestion")
local why = require("lcursor.complete.why")

local M = {}

---@alias lcursor.Show fun(s: lcursor.Suggestion, rest: string, count?: string)

---@param number integer
---@param count integer
---@return string
local function words(number, count)
  return ("(%d/%d)"):format(number, count)
end

---@param s lcursor.Suggestion
---@param rest string what is still to come of it
---@return string
local function typed(s, rest)
  return s.text:sub(1, #s.text - #rest)
end

--- Which of several it is, in words; nil when there is nothing to choose from.
---@param s lcursor.Suggestion
---@param rest string what is still to come of it
---@return string?
function M.count(s, rest)
  if s.texts then
    local _, number, count = alternatives.step(s.texts, s.text, typed(s, rest), 0)
    return count > 1 and words(number, count) or nil
  end
end

---@param s lcursor.Suggestion with its alternatives
---@param steps integer
---@param show lcursor.Show
local function turn(s, steps, show)
  local rest = suggestion.rest(s)
  if not rest then
    return -- the next look finds that
  end
  local before = typed(s, rest)
  local chosen, number, count = alternatives.step(s.texts, s.text, before, steps)
  s.text = chosen
  show(s, chosen:sub(#before + 1), words(number, count))
  if count == 1 then
    why.note(s.buf, "no_alternatives") -- and the next key draws without (1/1)
  end
end

--- Ask for what else could be shown, where somebody waits for it and the model has ended.
---@param s lcursor.Suggestion
---@param show lcursor.Show
function M.ask(s, show)
  if not s.steps or not s.is_done then
    return
  end
  local rest = suggestion.rest(s)
  local sent = requests.more(s.id, rest and typed(s, rest) or "", function(texts)
    local steps = s.steps
    s.steps = nil
    if texts and steps then
      s.texts = alternatives.gather(s.text, texts, s.single_line)
      turn(s, steps, show)
    end
  end)
  if not sent then
    s.steps = nil
  end
end

--- Go so many steps further, now or when the alternatives have come.
---@param s lcursor.Suggestion
---@param steps integer below 0 goes backwards
---@param show lcursor.Show
function M.by(s, steps, show)
  if s.texts then
    turn(s, steps, show)
  elseif s.steps then
    s.steps = s.steps + steps
  else
    s.steps = steps
    M.ask(s, show)
  end
end

--- Wait no longer for them.
---@param s lcursor.Suggestion
function M.stop(s)
  if s.steps then
    s.steps = nil
    requests.cancel_more(s.id)
  end
end

return M
