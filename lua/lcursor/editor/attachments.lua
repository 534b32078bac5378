-- Reads editor data into attachments: buffers, selections, diagnostics, the quickfix list,
-- terminals. Text that privacy.lua excludes is reported, not read.

local attach = require("lcursor.editor.attach")
local code_window = require("lcursor.editor.code_window")
local config = require("lcursor.config")
local context = require("lcursor.editor.context")
local mentions = require("lcursor.editor.mentions")
local notify = require("lcursor.ui.notify")
local privacy = require("lcursor.editor.privacy")

local M = {}

local api = vim.api

local MAX_BYTES = 1024 * 1024
local MAX_ENTRIES = 200 -- of diagnostics and of the quickfix list
local MAX_ENTRY_BYTES = 500
local MAX_TERMINAL_LINES = 400
local MAX_SCREEN_ROWS, MAX_SCREEN_BYTES = 120, 16000
local SEVERITIES = { "error", "warning", "info", "hint" }

local function report_unattached(name, why)
  notify.warn(("%s is not attached: %s"):format(name, why))
end

---@return string as it is shown
local function name_of(buf)
  local path = api.nvim_buf_get_name(buf)
  if vim.bo[buf].buftype ~= "" or path:find("^%a[%w+.-]*://") then
    return vim.fs.basename(path) ~= "" and vim.fs.basename(path) or "[Scratch]"
  end
  return path ~= "" and code_window.name(path) or "[No Name]"
end

---@param first? integer row; of the whole buffer without it
---@param last? integer row after the last
---@return integer bytes
local function size_of(buf, first, last)
  last = last or api.nvim_buf_line_count(buf)
  return api.nvim_buf_get_offset(buf, last) - api.nvim_buf_get_offset(buf, first or 0)
end

---@return string absolute; "" without a file
local function path_of(buf)
  return context.file(buf) or ""
end

--- Fill in the missing fields of an attachment.
---@param attachment table
---@return lcursor.ChatAttachment
function M.with_defaults(attachment)
  local defaults = { kind = "text", path = "", first_row = 0, text = "", is_offered = false }
  local all = vim.tbl_extend("keep", attachment, defaults)
  all.name = all.name or all.kind
  return all
end

---@return lcursor.ChatAttachment? nil if it must not be sent, which is reported
local function attachment(kind, name, text, path, first_row)
  if privacy.has_private_key(text) then
    return report_unattached(name, privacy.REASONS.secret_text)
  end
  return M.with_defaults({
    kind = kind,
    name = name,
    path = path,
    first_row = first_row,
    text = text,
  })
end

---@param first integer row
---@param last integer row after the last
---@return lcursor.ChatAttachment? nil if it must not be sent, which is reported
local function rows_of(kind, name, buf, first, last)
  local why = privacy.private_reason(buf)
  local bytes = size_of(buf, first, last)
  if why then
    return report_unattached(name, why)
  elseif bytes > MAX_BYTES then
    return report_unattached(name, ("it has %.1f MB; attach some of its lines"):format(bytes / 1e6))
  end
  local text = table.concat(api.nvim_buf_get_lines(buf, first, last, false), "\n")
  return attachment(kind, name, kind == "buffer" and text .. "\n" or text, path_of(buf), first)
end

--- Attach some rows of a buffer.
---@param first integer
---@param last integer row after the last
---@return lcursor.ChatAttachment? nil if they must not be sent, which is reported
function M.range(buf, first, last)
  last = math.min(last, api.nvim_buf_line_count(buf))
  local name = ("%s:%d-%d"):format(name_of(buf), first + 1, last)
  return rows_of("selection", name, buf, first, last)
end

---@return lcursor.ChatAttachment? nil if it must not be sent, which is reported
local function whole_buffer(buf)
  return rows_of("buffer", name_of(buf), buf, 0, api.nvim_buf_line_count(buf))
end

--- Return the rows that are selected, or were last.
---@return integer? first
---@return integer? last row after the last
local function selected_rows(buf)
  local is_current = buf == api.nvim_get_current_buf()
  if is_current and api.nvim_get_mode().mode:find("^[vV\22sS\19]") then
    local one, other = vim.fn.line("v"), vim.fn.line(".")
    return math.min(one, other) - 1, math.max(one, other)
  end
  local first = api.nvim_buf_get_mark(buf, "<")[1]
  local last = api.nvim_buf_get_mark(buf, ">")[1]
  if first > 0 and last >= first then
    return first - 1, math.min(last, api.nvim_buf_line_count(buf))
  end
end

---@return boolean whether text is selected right now, outside of a chat
function M.is_visual()
  local is_chat = code_window.is_chat(api.nvim_get_current_buf())
  return not is_chat and api.nvim_get_mode().mode:find("^[vV\22]") ~= nil
end

--- Attach what is selected, or was last.
---@param buf? integer the current one
---@return lcursor.ChatAttachment? nil if it must not be sent, which is reported
function M.selection(buf)
  buf = buf or api.nvim_get_current_buf()
  local first, last = selected_rows(buf)
  return first and last and M.range(buf, first, last) or nil
end

--- Attach the visible lines of the code window; around the cursor if they are many.
---@param is_unasked? boolean the user did not name it
---@return lcursor.ChatAttachment? nil also for secrets, silently
local function screen(is_unasked)
  local win = code_window.window()
  local buf = win and api.nvim_win_get_buf(win)
  if not win or not buf or vim.bo[buf].buftype ~= "" or privacy.private_reason(buf) then
    return nil
  elseif size_of(buf) > MAX_BYTES or (is_unasked and not attach.is_wanted(buf)) then
    return nil
  end
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  if privacy.has_private_key(table.concat(lines, "\n")) then
    return nil
  end
  local info, row = vim.fn.getwininfo(win)[1], api.nvim_win_get_cursor(win)[1] - 1
  local first, last = info.topline - 1, math.min(info.botline, #lines)
  if last - first > MAX_SCREEN_ROWS then
    local middle = row - math.floor(MAX_SCREEN_ROWS / 2)
    first = math.max(math.min(middle, last - MAX_SCREEN_ROWS), first)
    last = first + MAX_SCREEN_ROWS
  end
  local text = table.concat(vim.list_slice(lines, first + 1, last), "\n")
  if not text:find("%S") or #text > MAX_SCREEN_BYTES then
    return nil
  end
  local name = ("%s:%d-%d (cursor in line %d)"):format(name_of(buf), first + 1, last, row + 1)
  return attachment("screen", name, text, path_of(buf), first)
end

---@param diagnostic vim.Diagnostic
---@return string[] lines the diagnostic and its code
local function diagnostic_lines(buf, name, diagnostic)
  local row, col = diagnostic.lnum, diagnostic.col
  local source = vim.trim(("%s %s"):format(diagnostic.source or "", diagnostic.code or ""))
  local lines = {
    ("%s:%d:%d: %s: %s%s"):format(
      name,
      row + 1,
      col + 1,
      SEVERITIES[diagnostic.severity] or "error",
      diagnostic.message:gsub("%s+", " "),
      source ~= "" and (" [%s]"):format(source) or ""
    ),
  }
  local code = api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
  if code and code:find("%S") and #code < MAX_ENTRY_BYTES then
    table.insert(lines, "    " .. vim.trim(code))
  end
  return lines
end

--- Attach the errors and warnings of a buffer; the other diagnostics if there are none.
---@return lcursor.ChatAttachment? nil if there is nothing to attach
local function diagnostics(buf)
  local severity = { min = vim.diagnostic.severity.WARN }
  local found = vim.diagnostic.get(buf, { severity = severity })
  found = #found > 0 and found or vim.diagnostic.get(buf)
  local name, why = name_of(buf), privacy.private_reason(buf)
  if #found == 0 then
    return nil
  elseif why then
    return report_unattached("diagnostics of " .. name, why)
  end
  table.sort(found, function(a, b)
    return a.lnum == b.lnum and a.col < b.col or a.lnum < b.lnum
  end)
  local lines = {}
  for i = 1, math.min(#found, MAX_ENTRIES) do
    vim.list_extend(lines, diagnostic_lines(buf, name, found[i]))
  end
  if #found > MAX_ENTRIES then
    table.insert(lines, ("(%d more)"):format(#found - MAX_ENTRIES))
  end
  return attachment("diagnostics", name, table.concat(lines, "\n"), path_of(buf), found[1].lnum)
end

---@param item table of `getqflist()`
---@return string?
local function quickfix_line(item, path)
  local text = item.text:sub(1, MAX_ENTRY_BYTES)
  if path == "" or item.lnum == 0 then
    return text:find("%S") and text or nil
  end
  local kind = item.type ~= "" and (item.type:upper() .. ": ") or ""
  local col = item.col > 0 and (":%d"):format(item.col) or ""
  local name = code_window.name(path)
  return ("%s:%d%s: %s%s"):format(name, item.lnum, col, kind, vim.trim(text))
end

---@return lcursor.ChatAttachment? nil if the list is empty
local function quickfix()
  local list = vim.fn.getqflist({ title = 0, items = 0 })
  local lines, secrets = {}, 0
  for _, item in ipairs(list.items) do
    local path = item.bufnr > 0 and api.nvim_buf_get_name(item.bufnr) or ""
    if path ~= "" and privacy.is_secret_path(path, config.get().privacy.exclude) then
      secrets = secrets + 1
    else
      table.insert(lines, quickfix_line(item, path))
    end
  end
  if secrets > 0 then
    report_unattached(("%d quickfix entries"):format(secrets), privacy.REASONS.secret)
  end
  if #lines > MAX_ENTRIES then
    local more = ("(%d more)"):format(#lines - MAX_ENTRIES)
    lines = vim.list_extend(vim.list_slice(lines, 1, MAX_ENTRIES), { more })
  end
  local title = vim.trim(list.title:gsub("%c", " "))
  title = title ~= "" and title or "quickfix list"
  return #lines > 0 and attachment("quickfix", title, table.concat(lines, "\n")) or nil
end

local function terminal_name(buf)
  local title = vim.b[buf].term_title
  local command = api.nvim_buf_get_name(buf):match("^term://.-//%d+:(.*)$") or "terminal"
  local has_title = type(title) == "string" and title ~= "" and not title:find("^term://")
  return ("%s (buffer %d)"):format(has_title and title or command, buf)
end

--- Attach the end of terminals.
---@param word string part of their name; "" for the one used last
---@return lcursor.ChatAttachment[]
local function terminals(word)
  local bufs = vim.tbl_filter(function(buf)
    return api.nvim_buf_is_loaded(buf)
      and vim.bo[buf].buftype == "terminal"
      and terminal_name(buf):lower():find(word:lower(), 1, true) ~= nil
  end, api.nvim_list_bufs())
  table.sort(bufs, function(a, b)
    return vim.fn.getbufinfo(a)[1].lastused > vim.fn.getbufinfo(b)[1].lastused
  end)
  local found = {}
  for _, buf in ipairs(word == "" and vim.list_slice(bufs, 1, 1) or bufs) do
    local text = table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), "\n"):gsub("%s+$", "")
    local lines = vim.split(text, "\n", { plain = true })
    text = table.concat(vim.list_slice(lines, math.max(#lines - MAX_TERMINAL_LINES, 0) + 1), "\n")
    if text ~= "" then
      table.insert(found, (attachment("terminal", terminal_name(buf), text)))
    end
  end
  return found
end

---@param argument string of `@file`
---@param path string absolute
local function matches(argument, path)
  local name = code_window.name(path)
  local wanted = vim.fs.normalize(mentions.path(argument)):gsub("^%./", "")
  if wanted:find("[*?%[]") then
    local regex = vim.fn.glob2regpat((wanted:gsub("%*%*/?", "*")))
    return vim.fn.match(name, regex) >= 0
  end
  return wanted == name or wanted == path or vim.endswith(name, "/" .. wanted)
end

--- Attach the buffers of files that pass a test.
---@param test fun(buf: integer, path: string): boolean
---@return lcursor.ChatAttachment[]
local function buffers(test)
  local found = {}
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local path = api.nvim_buf_is_loaded(buf) and path_of(buf) or ""
    if path ~= "" and test(buf, path) then
      table.insert(found, (whole_buffer(buf)))
    end
  end
  return found
end

--- Attach modified buffers: the host reads files from disk.
---@param test? fun(path: string): boolean
---@param is_silent? boolean do not report excluded ones
local function unsaved(test, is_silent)
  return buffers(function(buf, path)
    local is_wanted = vim.bo[buf].modified and (not test or test(path))
    local is_excluded = is_silent
      and (privacy.private_reason(buf) or not attach.is_wanted(buf) or size_of(buf) > MAX_BYTES)
    return is_wanted and not is_excluded
  end)
end

local function all_unsaved()
  return unsaved()
end

--- Attach the listed buffers whose name contains a text.
local function buffers_named(text)
  return buffers(function(buf)
    local is_file = vim.bo[buf].buflisted and vim.bo[buf].buftype == ""
    return is_file and name_of(buf):lower():find(text:lower(), 1, true) ~= nil
  end)
end

---@type table<string, fun(argument: string, buf?: integer): table?> attachments by mention
local readers = {
  buffer = function(argument, buf)
    return argument ~= "" and buffers_named(argument) or buf and { whole_buffer(buf) }
  end,
  selection = function(_, buf)
    return buf and { M.selection(buf) }
  end,
  screen = function()
    return { screen() }
  end,
  diagnostics = function(_, buf)
    return buf and { diagnostics(buf) }
  end,
  quickfix = function()
    return { quickfix() }
  end,
  terminal = terminals,
  file = function(argument)
    return unsaved(function(path)
      return matches(argument, path)
    end)
  end,
  dir = function(argument)
    local folder = vim.fs.normalize(argument):gsub("^%./", ""):gsub("/$", "") .. "/"
    return unsaved(function(path)
      return vim.startswith(code_window.name(path), folder) or vim.startswith(path, folder)
    end)
  end,
  symbol = all_unsaved,
  diff = all_unsaved,
}

---@return boolean whether the cursor is still in what was selected last
local function is_selection_current(buf)
  local first, last = selected_rows(buf)
  return first ~= nil
    and vim.iter(vim.fn.win_findbuf(buf)):any(function(win)
      local row = api.nvim_win_get_cursor(win)[1] - 1
      return row >= first and row < last
    end)
end

--- Built-in commands that are not about the selection.
local WITHOUT_SELECTION = { review = true, commit = true, trace = true }

--- Return what the editor has of a question's mentions; with a command, all that it may need. The
--- host takes what the question or the command asks for.
---@param attached lcursor.ChatAttachment[] already
---@param old? lcursor.ChatMessage that the question replaces: its attachments are sent again
---@return lcursor.ChatAttachment[]
function M.collect(attached, text, old)
  local function is_selection(each)
    return each.kind == "selection"
  end
  local has_selection = vim.iter(attached):any(is_selection)
    or (old ~= nil and vim.iter(old.items):any(is_selection))
  local found, seen = {}, {}
  for _, each in ipairs(attached) do
    seen[each.kind .. each.name] = true
  end
  local function add(more, is_offered)
    for _, each in ipairs(more or {}) do
      local key = each.kind .. each.name
      if not seen[key] then
        seen[key] = true
        each.is_offered = is_offered
        table.insert(found, each)
      end
    end
  end
  local buf = code_window.buffer()
  for _, mention in ipairs(mentions.parse(text)) do
    local read = readers[mention.kind]
    -- A selection that was attached is meant, not the current one.
    if read and not (mention.kind == "selection" and has_selection) then
      add(read(mention.argument, buf), true)
    end
  end
  local command = mentions.command(text)
  if command then
    for _, kind in ipairs({ "buffer", "diagnostics", "quickfix", "terminal" }) do
      if kind ~= "buffer" or (buf and not privacy.private_reason(buf)) then
        add(readers[kind]("", buf), true)
      end
    end
    add(unsaved(nil, true), true)
    local may_select = not has_selection and not WITHOUT_SELECTION[command:lower()]
    if buf and may_select and is_selection_current(buf) then
      add({ M.selection(buf) }, false)
    end
  end
  return found
end

--- Add the visible code to a question that names nothing, if the settings allow it.
---@param attached lcursor.ChatAttachment[]
---@param old? lcursor.ChatMessage that the question replaces
---@return lcursor.ChatAttachment[]
function M.with_screen(attached, text, old)
  local names_nothing = #attached == 0
    and not mentions.command(text)
    and #mentions.parse(text) == 0
    and (not old or #old.items == 0)
  local visible = names_nothing and config.get().chat.auto_context and screen(true)
  if visible then
    visible.is_offered = true
    return { visible }
  end
  return attached
end

return M
