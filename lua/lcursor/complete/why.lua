-- Why there is a ghost, or none: the last decision in each buffer, and every reason in words.

local M = {}

---@type table<string, string> code -> sentence
local SENTENCES = {
  nothing = "Nothing was asked here yet; suggestions come in insert mode.",
  shown = "A suggestion is shown.",
  waiting = "The model is thinking.",
  left = "Insert mode was left before the model had answered.",
  dismissed = "The suggestion was dismissed and nothing was typed since.",
  manual_only = "Suggestions come on <Plug>(lcursor-trigger) only (completion.auto_trigger).",

  disabled = "Completion is switched off; :LCursor toggle switches it on.",
  disabled_buffer = "Completion is off in this buffer; see :LCursor toggle buffer.",
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

  empty_end = "The model had nothing to add here.",
  empty_line = "The model had nothing to add to this line.",
  empty_tokens = "The model found nothing within its token budget.",
  empty_time = "The model found nothing within the setting completion.budget_ms.",
  empty_trimmed = "What the model said repeated the text around it.",
  empty_cancelled = "The request was cancelled.",
  empty_failed = "The model failed; see :LCursor log.",
}

---@type table<integer, lcursor.Why>
local last = {}

---@param code string
---@return lcursor.Why
local function reason(code)
  return { code = code, text = SENTENCES[code] or code, at_ms = vim.uv.now() }
end

--- Keep the decision that was taken in a buffer.
---@param buf integer
---@param code string
function M.note(buf, code)
  last[buf] = reason(code)
end

--- The decision to tell.
---@param buf integer
---@param code? string what holds now, whatever was decided before
---@return lcursor.Why
function M.get(buf, code)
  return code and reason(code) or last[buf] or reason("nothing")
end

---@param buf integer
function M.forget(buf)
  last[buf] = nil
end

return M
