-- When what a language server says of a text is its last word. Some publish an empty list for a
-- document that is new to them, and what is wrong with it later; some answer while they still load
-- a project. Learns of each server how late its errors come.

local M = {}

local MOST_LISTENS = 3
local MOST_BUSY = 2 -- looks in a row that its work outlasts, after which it is not waited for
local FORGET = 0.8

-- Milliseconds. Tests change them.
M.waits_ms = {
  quiet = 250, -- after which a list that was pushed is the last one
  empty = 1000, -- the same for an empty list of a server that may push the errors later
  slack = 100, -- added to the delay that a server is known for
  listen = 2000, -- that an empty list is followed after the check, to learn such a delay
}

---@class (exact) lcursor.EditPace what is known of a server
---@field is_straight boolean it has said the errors of a text at once
---@field empty_ms number how long after an empty list it said errors; 0 for never
---@field some_ms number how long after some errors it said others
---@field listens integer
---@field busy integer looks in a row that its work outlasted

---@class (exact) lcursor.EditWord what a server has said of one text
---@field client vim.lsp.Client
---@field working table<lsp.ProgressToken, any> what it was at work with when it got the text
---@field is_said boolean
---@field is_first boolean it has not said anything else before
---@field is_stale boolean it was at work when it said so
---@field errors integer
---@field heard_ms integer when it said something, or was seen at work on it
---@field changed_ms integer since when it has said that

---@type table<string, lcursor.EditPace> by the server's name: what is learned outlives a restart
local paces = {}

---@param client vim.lsp.Client
---@return lcursor.EditPace
local function pace_of(client)
  local pace = paces[client.name]
  if not pace then
    pace = { is_straight = false, empty_ms = 0, some_ms = 0, listens = 0, busy = 0 }
    paces[client.name] = pace
  end
  return pace
end

---@param client vim.lsp.Client
---@return table<lsp.ProgressToken, any>
local function pending(client)
  return vim.tbl_get(client, "progress", "pending") or {}
end

--- Nothing is said as yet of a text that is about to be sent.
---@param client vim.lsp.Client
---@return lcursor.EditWord
function M.word(client)
  return {
    client = client,
    working = vim.deepcopy(pending(client)),
    is_said = false,
    is_first = true,
    is_stale = false,
    errors = 0,
    heard_ms = 0,
    changed_ms = 0,
  }
end

--- A server has said something of a text, perhaps not for the first time.
---@param word lcursor.EditWord
---@param errors integer
function M.hear(word, errors)
  local now = vim.uv.now()
  word.heard_ms = now
  if not word.is_said then
    word.is_said, word.changed_ms = true, now
  elseif errors ~= word.errors then
    local pace, key = pace_of(word.client), word.errors == 0 and "empty_ms" or "some_ms"
    pace[key] = math.max(now - word.changed_ms, FORGET * pace[key])
    word.is_first, word.changed_ms = false, now
  end
  word.errors = errors
end

--- Whether a server is at work with something that may be this text: what it began with before
--- does not count where it is known to say errors at once.
---@param word lcursor.EditWord
---@return boolean
local function is_busy(word)
  local is_straight = pace_of(word.client).is_straight
  for token in pairs(pending(word.client)) do
    if not is_straight or word.working[token] == nil then
      return true
    end
  end
  return false
end

---@param word lcursor.EditWord
---@return number milliseconds for which what it said has to stand
local function wait_ms(word)
  local pace = pace_of(word.client)
  local lag = word.errors == 0 and pace.empty_ms or pace.some_ms
  if lag > 0 then
    return math.max(1.25 * lag + M.waits_ms.slack, M.waits_ms.quiet)
  end
  return word.errors == 0 and not pace.is_straight and M.waits_ms.empty or M.waits_ms.quiet
end

--- Whether what was said of a text is all that will be.
---@param word lcursor.EditWord that was said something
---@param is_pulled boolean it was the answer to a question
---@return boolean
---@return boolean is_stale the answer was given while it was at work: ask once more
function M.is_last(word, is_pulled)
  local now, pace = vim.uv.now(), pace_of(word.client)
  if word.errors == 0 and is_busy(word) then
    word.heard_ms, word.changed_ms = now, now
    word.is_first, word.is_stale = false, true
    return false, false
  elseif is_pulled and word.is_stale and word.errors == 0 then
    word.is_stale = false
    return false, true
  elseif
    not is_pulled
    and (now - word.heard_ms < M.waits_ms.quiet or now - word.changed_ms < wait_ms(word))
  then
    return false, false
  end
  pace.busy = 0
  pace.is_straight = pace.is_straight or (word.errors > 0 and word.is_first)
  return true, false
end

--- Whether a server is so long at work already that nobody waits for the end of it.
---@param word lcursor.EditWord
---@param since_ms integer when it was asked
---@return boolean
function M.is_hopeless(word, since_ms)
  local is_long = vim.uv.now() - since_ms > M.waits_ms.empty
  return word.is_said and is_long and pace_of(word.client).busy >= MOST_BUSY and is_busy(word)
end

--- A look is over before it was known whether an empty list was the last word.
---@param word lcursor.EditWord
function M.unsettled(word)
  local pace = pace_of(word.client)
  if is_busy(word) then
    pace.busy = pace.busy + 1
  else
    pace.empty_ms = FORGET * pace.empty_ms -- it may have been slow once
  end
end

--- How long an empty list is to be listened after though nobody waits any more.
---@param word lcursor.EditWord
---@return integer 0 for not at all
function M.listen_ms(word)
  local pace = pace_of(word.client)
  local is_open = word.is_said and word.errors == 0 and not pace.is_straight
  if not is_open or pace.empty_ms > 0 or pace.listens >= MOST_LISTENS then
    return 0
  end
  pace.listens = pace.listens + 1
  return M.waits_ms.listen
end

return M
