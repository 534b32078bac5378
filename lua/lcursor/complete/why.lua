-- Why there is a ghost, or none: the last decision in each buffer, and every reason in words.

local M = {}

---@type table<string, string> code -> sentence
local SENTENCES = {
  nothing = "Nothing was asked here yet; suggestions come in insert mode.",
  shown = "A suggestion is shown.",
  waiting = "The model is thinking.",
  no_alternatives = "A suggestion is shown, and the model has no other one for this place.",
  left = "Insert mode was left before the model had answered.",
  dismissed = "The suggestion was dismissed and nothing was typed since.",
  manual_only = "Suggestions come on <Plug>(lcursor-trigger) only (completion.auto_trigger).",

  disabled = "Completion is switched off; :LCursor toggle switches it on.",
  disabled_buffer = "Completion is switched off here; :LCursor toggle buffer switches it on.",
  filetype = "Completion is off for this filetype (setting completion.filetypes).",
  special = "This is no ordinary file buffer.",
  readonly = "This buffer cannot be changed.",
  big_file = "The file is larger than the setting completion.max_file_bytes.",
  long_line = "The line is longer than the setting completion.max_line_bytes.",

  secret = "Files of this name hold secrets and are never read.",
  secret_text = "There is a private key in this text, so it is never read.",
  ignored = "Git ignores this file, so it is never read.",
  ignored_unknown = "Git could not say whether it ignores this file, so it is not read.",
  checking = "Git is being asked whether it ignores this file.",

  mode = "Suggestions come in insert mode only.",
  replace = "Replace mode overwrites, so nothing is suggested there.",
  macro = "A macro is being recorded or run, so nothing is suggested.",
  menu = "The completion menu is open; the suggestion waits until it is closed.",
  midline = "There is text right of the cursor; <Plug>(lcursor-trigger) asks anyway.",
  comment = "Completion in comments is off (setting completion.in_comments).",

  host_stopped = "The Python host is not running.",
  host_absent = "There is no Python environment yet; :LCursor install makes it.",
  host_installing = "The Python environment is being made.",
  host_starting = "The Python host is starting.",
  host_loading_model = "The model is being loaded.",
  host_failed = "The Python host gave up; see :LCursor log, then :LCursor restart.",
  no_server = "The server for completion gives no answer; see :LCursor log. Typing asks it again.",

  unsure = "The model was unsure, so nothing is shown.",
  empty_end = "The model had nothing to add here.",
  empty_line = "The model had nothing to add to this line.",
  empty_tokens = "The model found nothing within its token budget.",
  empty_time = "The model found nothing within the setting completion.budget_ms.",
  empty_trimmed = "What the model said repeated the text around it.",
  empty_cancelled = "The request was cancelled.",
  empty_failed = "The model failed; see :LCursor log.",
}

---@type table<integer, { code: string, at_ms: integer }>
local last = {}

---@type table<integer, lcursor.Stats?> of the last answer in each buffer
local costs = {}

local SOURCES = {
  model = "written now",
  cache = "kept from earlier",
  speculation = "written ahead",
}

---@param code string
---@return boolean whether it tells what became of an answer
local function is_answered(code)
  return code == "shown"
    or code == "no_alternatives"
    or code == "unsure"
    or vim.startswith(code, "empty_")
end

--- What an answer cost, in a few words.
---@param code string
---@param stats lcursor.Stats
---@return string
local function numbers(code, stats)
  local ms = stats.first_ms > 0 and stats.first_ms or stats.total_ms
  local text = ("%.0f ms, %d of %d tokens read, %s%s."):format(
    ms,
    stats.decoded_tokens,
    stats.prompt_tokens,
    SOURCES[stats.source] or "written now",
    stats.window == "short" and ", from a short window; more context is being read" or ""
  )
  local is_sure = code == "shown" or code == "no_alternatives"
  return is_sure and ("Confidence %.2f, %s"):format(stats.confidence, text) or text
end

---@param code string
---@param at_ms integer
---@param stats? lcursor.Stats
---@return lcursor.Why
local function reason(code, at_ms, stats)
  local text = SENTENCES[code] or code
  if code == "unsure" and stats then
    text = ("The model was unsure: confidence %.2f, threshold %.2f."):format(
      stats.confidence,
      stats.threshold
    )
  end
  local cost = stats and is_answered(code) and numbers(code, stats) or ""
  return { code = code, text = text, numbers = cost, at_ms = at_ms }
end

--- Keep the decision that was taken in a buffer.
---@param buf integer
---@param code string
function M.note(buf, code)
  if code == "waiting" then
    costs[buf] = nil
  end
  last[buf] = { code = code, at_ms = vim.uv.now() }
end

--- Keep what an answer cost; told with the decisions that follow from it.
---@param buf integer
---@param stats? lcursor.Stats
function M.cost(buf, stats)
  costs[buf] = stats
end

--- The decision to tell.
---@param buf integer
---@param code? string what holds now, whatever was decided before
---@return lcursor.Why
function M.get(buf, code)
  local it = not code and last[buf]
  if it then
    return reason(it.code, it.at_ms, costs[buf])
  end
  return reason(code or "nothing", vim.uv.now())
end

---@param buf integer
function M.forget(buf)
  last[buf], costs[buf] = nil, nil
end

return M
