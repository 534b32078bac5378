-- Why there is a suggestion or none: the last decision in each buffer, and the text of each reason.

local by_buffer = require("lcursor.editor.by_buffer")
local config = require("lcursor.config")

local M = {}

local SLOW_MS = 2000 -- of an answer, or of waiting for one

---@type table<string, string> code -> sentence
local SENTENCES = {
  nothing = "None yet; suggestions come as you type.",
  shown = "A suggestion is shown.",
  waiting = "Waiting for the model.",
  no_alternatives = "A suggestion is shown; the model has no alternative.",
  left = "The model had not answered yet when Insert mode was left.",
  dismissed = "The suggestion was dismissed, and the text has not changed since.",
  manual_only = "Suggestions come only on <Plug>(lcursor-trigger) (completion.auto_trigger).",

  disabled = "Completion is off. Run :LCursor enable.",
  disabled_buffer = "Completion is off here. Run :LCursor enable buffer.",
  filetype = "Completion is off for this filetype (setting completion.filetypes).",
  special = "This is not a normal file buffer.",
  readonly = "This buffer cannot be modified.",
  big_file = "The file is larger than 2 MiB.",
  long_line = "The line is longer than 4096 bytes.",

  not_attached = "The option should_attach excludes this buffer, so it is never read.",
  secret = "Files with such a name contain secrets and are never read.",
  secret_link = "This file has another name, of a file with secrets, so it is never read.",
  secret_text = "This text contains a private key, so it is never read.",
  ignored = "Git ignores this file, so it is never read.",
  ignored_unknown = "Git did not report whether it ignores this file, so it is not read.",
  checking = "Git is being asked whether it ignores this file.",

  mode = "Suggestions come only in Insert mode.",
  replace = "There are no suggestions in Replace mode.",
  macro = "There are no suggestions while a macro is recorded or run.",
  next_edit = "A next edit is shown in this line.",
  menu = "The completion menu is open; suggestions are hidden until it is closed.",
  midline = "There is text right of the cursor; <Plug>(lcursor-trigger) suggests anyway.",
  comment = "Completion in comments is off (setting completion.in_comments).",

  host_stopped = "The Python host is not running.",
  host_absent = "There is no Python environment yet; run :LCursor install.",
  host_installing = "The Python environment is being created.",
  host_starting = "The Python host is starting.",
  host_loading_model = "The model is being loaded.",
  host_failed = "The Python host failed; see :LCursor log, then run :LCursor restart.",
  no_server = "The completion server does not answer; see :LCursor log. Typing retries.",

  unsure = "The model was unsure, so nothing is shown.",
  empty_end = "The model had nothing to suggest here.",
  empty_line = "The model had nothing to suggest for this line.",
  empty_tokens = "The model found nothing within its token limit.",
  empty_time = "The model found nothing within its time limit.",
  empty_trimmed = "The suggestion repeated the text around it.",
  empty_cancelled = "The request was cancelled.",
  empty_failed = "The model failed; see :LCursor log.",
}

---@class (exact) lcursor.Decided the last decision in a buffer
---@field code string
---@field at_ms integer
---@field row integer of the cursor
---@field stats? lcursor.Stats the cost of the last answer
---@field is_slowed? boolean other programs used the processor while it was computed

---@type table<integer, lcursor.Decided> by buffer
local last = by_buffer.new()

local SOURCES = {
  model = "generated",
  cache = "from the cache",
  speculation = "generated ahead",
}

--- Return whether other programs slow a model of this machine.
---@param ms number that the model has needed
local function is_slowed(ms)
  local is_here = ms >= SLOW_MS and not config.completion_server()
  return is_here and require("lcursor.host.system").is_busy()
end

---@return boolean whether it is the outcome of an answer
local function is_answered(code)
  return code == "shown"
    or code == "no_alternatives"
    or code == "unsure"
    or vim.startswith(code, "empty_")
end

--- Describe what an answer cost.
---@param stats lcursor.Stats
local function numbers(code, stats)
  local ms = stats.first_ms > 0 and stats.first_ms or stats.total_ms
  local text = ("%.0f ms, %d of %d tokens read, %s%s."):format(
    ms,
    stats.decoded_tokens,
    stats.prompt_tokens,
    SOURCES[stats.source] or "generated",
    stats.window ~= "full"
        and (", from a %s window; more context is being read"):format(stats.window)
      or ""
  )
  local is_sure = code == "shown" or code == "no_alternatives"
  return is_sure and ("Confidence %.2f, %s"):format(stats.confidence, text) or text
end

---@param at_ms integer
---@param stats? lcursor.Stats
---@return lcursor.Why
local function reason(code, at_ms, stats)
  local text = SENTENCES[code] or code
  if code == "unsure" and stats then
    text = ("The model was unsure: confidence %.2f, threshold %.2f."):format(
      math.floor(stats.confidence * 100) / 100, -- rounded up, it could equal the threshold
      stats.threshold
    )
  end
  local cost = stats and is_answered(code) and numbers(code, stats) or ""
  return { code = code, text = text, numbers = cost, at_ms = at_ms }
end

--- Remember the decision in a buffer.
function M.note(buf, code)
  local before = code ~= "waiting" and last[buf] or {}
  last[buf] = {
    code = code,
    at_ms = vim.uv.now(),
    row = vim.api.nvim_win_get_cursor(0)[1],
    stats = before.stats,
    is_slowed = before.is_slowed,
  }
end

--- Remember that nothing is shown since an answer is empty, and why it is.
---@param answer lcursor.Answer
function M.empty(buf, answer)
  M.note(buf, answer.reason == "unsure" and "unsure" or "empty_" .. answer.reason)
  M.cost(buf, answer.stats)
end

--- Remember what an answer cost, for the decisions that follow from it.
---@param stats? lcursor.Stats
function M.cost(buf, stats)
  if last[buf] then
    last[buf].stats = stats
    last[buf].is_slowed = stats and is_slowed(stats.total_ms)
  end
end

--- Return why nothing is shown outside of Insert mode, and what was decided last in this line.
---@return lcursor.Why
function M.outside(buf)
  local it, mode = last[buf], reason("mode", vim.uv.now())
  if not it or it.row ~= vim.api.nvim_win_get_cursor(0)[1] then
    return mode
  end
  local why = M.get(buf)
  why.text = ("%s The last time in this line: %s"):format(mode.text, why.text)
  return why
end

--- Return the decision in a buffer.
---@param code? string what is true now, whatever was decided before
---@return lcursor.Why
function M.get(buf, code)
  local it = not code and last[buf]
  local why = it and reason(it.code, it.at_ms, it.stats) or reason(code or "nothing", vim.uv.now())
  local is_late = it and is_answered(it.code) and it.is_slowed
  if is_late or it and it.code == "waiting" and is_slowed(vim.uv.now() - it.at_ms) then
    local cause = require("lcursor.host.system").busy_text
    why.text = ("%s It is slow because %s."):format(why.text, cause)
  end
  local failure = why.code == "ignored_unknown"
    and require("lcursor.editor.privacy").git_failure(buf)
  if failure then
    why.text = ("%s Git says: %s"):format(why.text, failure)
  end
  return why
end

return M
