-- The winbar of a chat: its title, the model, how full the context is, and what it is doing.

local bar = require("lcursor.ui.winbar")
local config = require("lcursor.config")
local numbers = require("lcursor.text.numbers")
local system = require("lcursor.host.system")

local M = {}

local uv = vim.uv
local BUSY_RANK = 9 -- of parts
local SLOW_MS = 10000
local TOKEN_BYTES = 3.6 -- on average; the exact count comes with the end of the answer

--- Describe what a turn is doing, and how fast.
---@param turn lcursor.ChatTurn
---@param now_ms integer
---@return string
function M.phase(turn, now_ms)
  local progress = turn.progress
  if turn.is_stopping then
    return "stopping"
  elseif turn.first_ms then
    local seconds = (now_ms - turn.first_ms) / 1000
    local tokens = turn.bytes / TOKEN_BYTES
    local speed = seconds > 0.5 and (", about %.0f tokens/s"):format(tokens / seconds) or ""
    return "writing" .. speed .. (turn.is_followed and ", next question queued" or "")
  elseif not progress then
    return "waiting " .. numbers.duration((now_ms - turn.started_ms) / 1000)
  end
  local detail = progress.detail ~= "" and (" " .. progress.detail) or ""
  if progress.phase == "server" then
    return "server:" .. (detail ~= "" and detail or " starting")
  elseif progress.phase == "tool" then
    return "calling" .. detail
  elseif progress.phase == "context" then
    return "reading files" .. detail
  elseif progress.phase == "queue" then
    return "waiting for other requests"
  end
  local words = progress.phase == "summary" and "summarizing" or "reading"
  if progress.total > 0 then
    local percent = math.floor(100 * progress.done / progress.total)
    words = ("%s %d%% of %s"):format(words, percent, numbers.short(progress.total))
  end
  if progress.seconds_left >= 0 then
    words = ("%s, %s left"):format(words, numbers.duration(progress.seconds_left))
  end
  return words
end

--- Explain a long wait for a model on this machine.
---@param model string
---@param waited_ms number
---@param path? string of the kernel's file
---@return string "" unless other programs use the processor
function M.why_slow(model, waited_ms, path)
  local is_elsewhere = config.get().models[model] ~= nil
  local is_slow = waited_ms >= SLOW_MS and not is_elsewhere and system.is_busy(path)
  return is_slow and (", %s"):format(system.busy_text) or ""
end

--- Describe what is being done.
---@param session lcursor.ChatSession
---@return string? nil for nothing
function M.activity(session)
  if not session.turn then
    return nil
  end
  local now_ms = uv.now()
  local waited_ms = now_ms - session.turn.started_ms
  return M.phase(session.turn, now_ms) .. M.why_slow(session.model, waited_ms)
end

---@param session lcursor.ChatSession
---@return string
function M.title(session)
  return session.title ~= "" and session.title or "new chat"
end

--- Return the parts of the winbar.
---@param session lcursor.ChatSession
---@return lcursor.WinbarPart[] in order; the lowest ranks are left out first
function M.parts(session)
  local parts = {}
  local function add(rank, words, is_busy)
    table.insert(parts, { text = words, rank = rank, is_busy = is_busy })
  end
  if session.model ~= "" then
    add(bar.NEEDED_RANK, session.model)
  end
  local used = numbers.short(session.used_tokens)
  if session.context_tokens > 0 then
    add(4, ("%s of %s"):format(used, numbers.tokens(session.context_tokens)))
  elseif session.used_tokens > 0 then
    add(4, used .. " tokens")
  end
  local last = session.last
  if session.turn and not session.turn.failure then
    add(BUSY_RANK, M.activity(session), true)
  elseif session.turn or session.failure then
    add(BUSY_RANK, "failed", true)
  elseif session.key == "" then
    add(BUSY_RANK, "opening", true)
  elseif last then
    if last.is_exact and last.prompt_tokens > 0 then
      add(3, ("%.0f%% cached"):format(100 * last.cached_tokens / last.prompt_tokens))
    end
    if last.answer_ms > 0 and last.answer_tokens > 1 then
      add(2, ("%.0f tokens/s"):format(1000 * last.answer_tokens / last.answer_ms))
    end
  end
  return parts
end

return M
