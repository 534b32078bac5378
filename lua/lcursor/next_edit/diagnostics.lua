-- Next edits from diagnostics: an error or a warning that was caused by the user's last edit, and
-- that a language server can fix. Servers answer late, wrongly or never: nothing here waits.

local by_buffer = require("lcursor.editor.by_buffer")
local config = require("lcursor.config")
local delays = require("lcursor.next_edit.delays")
local diff = require("lcursor.text.diff")
local notify = require("lcursor.ui.notify")
local queue = require("lcursor.next_edit.queue")
local recorder = require("lcursor.next_edit.recorder")
local timers = require("lcursor.editor.timer")
local view = require("lcursor.next_edit.view")

local M = {}

local api = vim.api
-- Of vim.diagnostic.severity. The first key would wait for that module.
local ERROR, WARN = 1, 2
local WAIT_MS = 10 * 1000 -- after the edit; one that comes later would surprise
local MAX_FIXES, MAX_LINES = 8, 12 -- of an edit; of a fix
local MAX_CAUSE = 80
local CODE_ACTION = "textDocument/codeAction"
local WORD = "[%w_\128-\255]+"
-- Words of code that messages contain, too.
local COMMON = "None a an and any as class def for from function if import in int is it let local"
  .. " name not of or return self str string the this to type var with"

---@class (exact) lcursor.NextWatch the last edit, or several in one place
---@field buf integer
---@field first integer row
---@field last integer row after it
---@field words table<string, true> of its old and new lines
---@field removed table<string, true> those that its old lines had, and the new ones do not
---@field before table<string, true> keys of the diagnostics before it
---@field at_ms integer

---@class lcursor.NextFix: lcursor.NextProposal
---@field key string of its diagnostic

---@type lcursor.NextWatch?
local watch
---@class (exact) lcursor.NextKnown keys of diagnostics
---@field first table<string, true> the first ones
---@field now table<string, true> the last ones
---@field before table<string, true> the last ones without a new error, and those since then: where
---there are errors, some warnings go for a while

---@type table<integer, lcursor.NextKnown|false> by buffer; false if none were read yet
local known = by_buffer.new()
---@type fun() called when the proposals changed
local on_change

--- Return what makes two diagnostics the same wherever they are: a message may name lines.
---@param it vim.Diagnostic
local function key_of(it)
  local message = it.message:gsub("%d+", "#")
  return ("%s %s %s"):format(it.source, it.code, message)
end

--- Return what similar diagnostics share.
---@param it vim.Diagnostic
local function group_of(it)
  local family = it.code or it.message:gsub("[`'\"].-[`'\"]", ""):gsub("%d+", "")
  return ("diagnostics %s %s"):format(it.source, family)
end

--- Return an answer of a server without its nulls, which Neovim 0.12 passes on as `vim.NIL`.
local function without_nulls(value)
  if value == vim.NIL then
    return nil
  elseif type(value) ~= "table" then
    return value
  end
  return vim.tbl_map(without_nulls, value)
end

--- Return the words of code that say what it is about.
---@param lines string[]
---@return table<string, true>
local function words_of(lines)
  local words = {}
  for word in table.concat(lines, " "):gmatch(WORD) do
    words[word] = true
  end
  for word in COMMON:gmatch("%S+") do
    words[word] = nil
  end
  return words
end

--- Whether an edit is the likely cause of a diagnostic in other rows.
---@param edit lcursor.NextWatch
---@param it vim.Diagnostic
local function is_caused(edit, it)
  if edit.before[key_of(it)] or (it.lnum >= edit.first and it.lnum < edit.last) then
    return false
  end
  return vim.iter(words_of({ it.message })):any(function(word)
    return edit.words[word] ~= nil
  end)
end

--- Return the fix that a server prefers, or its only one.
---@param actions lsp.CodeAction[]
---@return lsp.CodeAction?
---@return integer? index
local function pick(actions)
  local count, first = 0, nil ---@type integer, integer?
  for i, action in ipairs(actions) do
    if vim.startswith(action.kind or "", "quickfix") and not action.disabled then
      if action.isPreferred == true then
        return action, i
      end
      count, first = count + 1, first or i
    end
  end
  local only = count == 1 and actions[first] or { title = "", isPreferred = false }
  local title = only.title:lower()
  local hides = title:find("disable") or title:find("ignore") or title:find("suppress")
  if only.isPreferred ~= false and not hides then
    return only, first
  end
end

--- Return the text edits of a fix; nil if it does more than change a buffer.
---@param action lsp.CodeAction
---@return lsp.TextEdit[]?
local function edits_of(buf, action)
  local edit = action.edit -- a command besides does not matter to the text
  local changes = edit.changes
  if edit.documentChanges then
    local one = edit.documentChanges[1]
    if #edit.documentChanges ~= 1 or one.kind then -- of several files, or of a whole one
      return nil
    end
    changes = { [one.textDocument.uri] = one.edits }
  end
  local uri, edits = next(changes)
  local is_own = uri and vim.uri_to_fname(uri) == api.nvim_buf_get_name(buf)
  return is_own and not next(changes, uri) and edits or nil
end

--- Return the byte of a position in the text of a buffer.
---@param at lsp.Position
local function byte_of(buf, at, encoding)
  local line = api.nvim_buf_get_lines(buf, at.line, at.line + 1, false)[1] or ""
  local column = vim.str_byteindex(line, encoding, at.character, false)
  return api.nvim_buf_get_offset(buf, at.line) + column
end

--- Return the lines that text edits change.
---@param edits lsp.TextEdit[]
---@param encoding string of their positions
---@return { row: integer, old: string[], new: string[] }? nil if there is nothing to show
local function change_of(buf, edits, encoding)
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  local text, spans = table.concat(lines, "\n") .. "\n", {}
  for i, edit in ipairs(edits) do
    local first = byte_of(buf, edit.range.start, encoding)
    local last = byte_of(buf, edit.range["end"], encoding)
    table.insert(spans, { first = first, last = last, new = edit.newText, i = i })
  end
  table.sort(spans, function(one, other)
    return one.first < other.first or (one.first == other.first and one.i < other.i)
  end)
  local parts, at = {}, 0
  for _, span in ipairs(spans) do
    if span.first < at or span.last < span.first then
      return nil
    end
    vim.list_extend(parts, { text:sub(at + 1, span.first), (span.new:gsub("\r\n?", "\n")) })
    at = span.last
  end
  local changed = (table.concat(parts) .. text:sub(at + 1)):gsub("\n$", "")
  local new = vim.split(changed, "\n", { plain = true })
  local head, tail = diff.equal_ends(lines, new)
  local old = vim.list_slice(lines, head + 1, #lines - tail)
  new = vim.list_slice(new, head + 1, #new - tail)
  if #old + #new > 0 and math.max(#old, #new) <= MAX_LINES then
    return { row = head, old = old, new = new }
  end
end

--- Whether a fix brings back a word that an edit removed.
---@param edit lcursor.NextWatch
local function is_revert(edit, change)
  local old = words_of(change.old)
  return vim.iter(words_of(change.new)):any(function(word)
    return edit.removed[word] and not old[word]
  end)
end

--- Add the change of a fix to the queue, unless it is in the edited rows, or reverts the edit.
---@param edit lcursor.NextWatch
---@param it vim.Diagnostic
---@param action lsp.CodeAction
local function add(edit, it, action, encoding)
  local buf, key = edit.buf, key_of(it)
  local edits = edits_of(buf, action)
  local change = edits and change_of(buf, edits, encoding)
  if not change or is_revert(edit, change) then
    return
  elseif change.row < edit.last and change.row + #change.old > edit.first then
    return
  end
  local cause = it.message:match("^[^\n]*")
  if vim.fn.strchars(cause) > MAX_CAUSE then
    cause = vim.fn.strcharpart(cause, 0, MAX_CAUSE - 1) .. "…"
  end
  local fixes = queue.fixes(buf)
  table.insert(fixes, {
    kind = "diagnostics",
    path = api.nvim_buf_get_name(buf),
    row = change.row,
    old = change.old,
    new = change.new,
    cause = it.source and ("%s (%s)"):format(cause, it.source) or cause,
    group = group_of(it),
    key = key,
  })
  queue.set(buf, fixes, edit.first, true)
  on_change()
end

--- Request the fixes of a diagnostic.
---@param edit lcursor.NextWatch
---@param it vim.Diagnostic
local function request(edit, it)
  local buf, tick = edit.buf, api.nvim_buf_get_changedtick(edit.buf)
  local own = vim.tbl_get(it, "user_data", "lsp")

  --- Handle an answer, if it is about this text; what a server answers may be nonsense.
  ---@param handle fun(result: any)
  local function handler(handle)
    return function(_, result)
      if result == vim.NIL then
        return
      end
      local is_same = watch == edit and recorder.is_attached(buf)
      if is_same and result and api.nvim_buf_get_changedtick(buf) == tick then
        pcall(handle, result)
      end
    end
  end

  for _, client in ipairs(vim.lsp.get_clients({ bufnr = buf, method = CODE_ACTION })) do
    local encoding = client.offset_encoding
    local function position(row, column)
      local line = api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
      return { line = row, character = vim.str_utfindex(line, encoding, column, false) }
    end
    local on_resolve = handler(function(action)
      add(edit, it, without_nulls(action), encoding)
    end)
    local on_actions = handler(function(actions)
      local action, index = pick(without_nulls(actions))
      if action and action.edit then
        add(edit, it, action, encoding)
      elseif action and not action.command and client:supports_method("codeAction/resolve") then
        client:request("codeAction/resolve", actions[index], on_resolve, buf) -- as it was sent
      end
    end)
    local range = {
      start = position(it.lnum, it.col),
      ["end"] = position(it.end_lnum or it.lnum, it.end_col or it.col),
    }
    client:request(CODE_ACTION, {
      textDocument = { uri = vim.uri_from_bufnr(buf) },
      range = range,
      context = { diagnostics = { own }, only = { "quickfix" }, triggerKind = 2 },
    }, on_actions, buf)
  end
end

--- Read the diagnostics of a buffer.
---@return vim.Diagnostic[]
---@return table<string, true> errors groups of those that the user made, and probably works on
local function read(buf)
  local found = vim.diagnostic.get(buf, { severity = { min = WARN } })
  local it, now, errors = known[buf], {}, {}
  for _, each in ipairs(found) do
    local key = key_of(each)
    now[key] = true
    if it and each.severity == ERROR and not it.first[key] then
      errors[group_of(each)] = true
    end
  end
  known[buf] = {
    first = it and it.first or now,
    now = now,
    before = next(errors) and vim.tbl_extend("keep", now, it.before) or now,
  }
  return found, errors
end

--- Read the diagnostics of the current buffer when they have not changed for a while: drop the
--- fixes of those that are gone, and request those of new ones.
local function settle()
  local buf = api.nvim_get_current_buf()
  if known[buf] == nil or not recorder.is_attached(buf) or recorder.is_changed(buf) then
    return
  end
  local found, errors = read(buf)
  local fixes, fixed = queue.fixes(buf), {}
  local left = vim.tbl_filter(function(fix)
    fixed[fix.key] = true
    return known[buf].now[fix.key]
  end, fixes)
  if #left < #fixes then
    queue.set(buf, left, 0, true)
    on_change()
  end
  local edit = watch
  local is_wanted = edit and edit.buf == buf and vim.uv.now() - edit.at_ms < WAIT_MS
  if not edit or not is_wanted or not config.for_buffer(buf).next_edit.diagnostics then
    return
  end
  local caused = vim.tbl_filter(function(it)
    local others = vim.tbl_count(errors) - (errors[group_of(it)] and 1 or 0)
    return others == 0 and not fixed[key_of(it)] and is_caused(edit, it)
  end, found)
  for i = 1, math.min(#caused, MAX_FIXES) do
    request(edit, caused[i])
  end
end

local settle_later = timers.new(settle)

--- Wait for the diagnostics that an edit causes.
function M.edited(buf)
  local edit = recorder.last(buf)
  if not edit then
    return M.stop()
  end
  local last, by = edit.row + #edit.new, #edit.new - #edit.old
  local it = watch
  if it and it.buf == buf and edit.row <= it.last and edit.row + #edit.old >= it.first then
    it.first, it.last = math.min(it.first, edit.row), math.max(it.last + by, last)
  elseif known[buf] then
    local before = known[buf].before
    it = { buf = buf, first = edit.row, last = last, before = before, at_ms = 0 }
    it.words, it.removed = {}, {}
  else
    it = nil -- whatever a server reports first was there before
  end
  watch = it
  if it then
    it.at_ms = vim.uv.now()
    local old, new = words_of(edit.old), words_of(edit.new)
    it.words = vim.tbl_extend("keep", it.words, old, new)
    for word in pairs(it.words) do
      it.removed[word] = not new[word] and (old[word] or it.removed[word]) or nil
    end
    settle_later(delays.stand)
  end
end

--- Wait for nothing any more.
function M.stop()
  watch = nil
end

--- Return the language server that reports an error about the name that a proposal changes.
---@param target lcursor.NextTarget
---@param proposal lcursor.NextProposal
---@return string? nil also for a file that is not open
function M.witness(target, proposal)
  local word = (view.words(proposal) or {})[1]
  if type(target) ~= "number" or not word then
    return nil
  end
  local old = proposal.old[1]:sub(word.first + 1, word.last)
  local errors = { lnum = queue.row(target, proposal), severity = ERROR }
  for _, it in ipairs(old ~= "" and vim.diagnostic.get(target, errors) or {}) do
    if it.source and it.message:find(old, 1, true) then
      return it.source
    end
  end
end

--- Follow the diagnostics until Neovim ends.
---@param callback fun() called when the proposals changed
function M.start(callback)
  on_change = callback
  local on = notify.autocmds("next_edit.diagnostics")
  on({ "DiagnosticChanged", "BufEnter" }, function(event)
    local buf = event.buf
    if event.event == "DiagnosticChanged" and known[buf] == nil then
      known[buf] = false
    end
    if known[buf] ~= nil and buf == api.nvim_get_current_buf() then
      settle_later(delays.stand)
    end
  end)
  local here = api.nvim_get_current_buf()
  local has_clients = package.loaded["vim.lsp"] ~= nil -- the first key would wait for this module
  if has_clients and #vim.lsp.get_clients({ bufnr = here, method = CODE_ACTION }) > 0 then
    read(here) -- what its server reported so far is from before the first edit
  end
end

return M
