-- Steps through the alternatives for one place. The first press requests them; until they arrive
-- nothing changes on the screen, and further presses are counted.

local fim = require("lcursor.complete.fim")
local suggestion = require("lcursor.complete.suggestion")
local text = require("lcursor.text")
local why = require("lcursor.complete.why")

local M = {}

---@alias lcursor.Show fun(s: lcursor.Suggestion, rest: string, count?: string)

--- Join the shown text and the alternatives, without visually identical ones.
---@param others string[] best first
---@param single_line boolean only their first lines are wanted
---@return string[] the first one is `shown`
function M.gather(shown, others, single_line)
  local function visible(one)
    return (one:gsub("%s+$", ""))
  end
  local texts, known = { shown }, { [visible(shown)] = true }
  for _, other in ipairs(others) do
    other = single_line and text.first_line(other) or other
    local seen = visible(other)
    if seen ~= "" and not known[seen] then
      known[seen] = true
      table.insert(texts, other)
    end
  end
  return texts
end

--- Return the text some steps further, cyclically, among those that still match what was typed.
---@param texts string[]
---@param shown string one of them
---@param typed string the beginning of `shown` that is in the buffer
---@param steps integer below 0 goes backwards
---@return string chosen `shown` if no other matches
---@return integer number of the chosen one, from 1
---@return integer count
function M.step(texts, shown, typed, steps)
  local matching = vim.tbl_filter(function(one)
    return vim.startswith(one, typed) and text.is_visible(one:sub(#typed + 1))
  end, texts)
  for number, one in ipairs(matching) do
    if one == shown then
      local to = (number - 1 + steps) % #matching + 1
      return matching[to], to, #matching
    end
  end
  return shown, 1, 1
end

---@param rest string the part not typed yet
local function typed(s, rest)
  return s.text:sub(1, #s.text - #rest)
end

--- Describe which of several alternatives is shown; nil if there is only one.
---@param s lcursor.Suggestion
---@param rest string the part not typed yet
---@return string?
function M.count(s, rest)
  if s.texts then
    local _, number, count = M.step(s.texts, s.text, typed(s, rest), 0)
    return count > 1 and ("(%d/%d)"):format(number, count) or nil
  end
end

---@param s lcursor.Suggestion with its alternatives
---@param show lcursor.Show
local function turn(s, steps, show)
  local rest = suggestion.rest(s)
  if not rest then
    return -- the next update notices that
  end
  local before = typed(s, rest)
  local chosen, number, count = M.step(s.texts, s.text, before, steps)
  s.text = chosen
  local which = count == 1 and "(no alternative)" or ("(%d/%d)"):format(number, count)
  show(s, chosen:sub(#before + 1), which)
  if count == 1 then
    why.note(s.buf, "no_alternatives") -- and the next key draws without it
  end
end

--- Request the alternatives, once a press waits for them and the model has finished.
---@param s lcursor.Suggestion
---@param show lcursor.Show
function M.ask(s, show)
  if not s.steps or not s.is_done then
    return
  end
  local rest = suggestion.rest(s)
  local sent = fim.more(s.id, rest and typed(s, rest) or "", function(texts)
    local steps = s.steps
    s.steps = nil
    rest = suggestion.rest(s)
    if texts and steps then
      s.texts = M.gather(s.text, texts, s.single_line)
      turn(s, steps, show)
    elseif rest then
      show(s, rest)
    end
  end)
  if not sent then
    s.steps = nil
  end
end

--- Go some steps further, now or when the alternatives have arrived.
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
    local rest = suggestion.rest(s)
    if rest then
      show(s, rest, "(…)") -- until they arrive
    end
    M.ask(s, show)
  end
end

--- Cancel the request for alternatives.
---@param s lcursor.Suggestion
function M.stop(s)
  if s.steps then
    s.steps = nil
    fim.cancel_more(s.id)
  end
end

return M
