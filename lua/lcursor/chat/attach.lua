-- Reads what only the editor knows into attachments: buffers, selections, diagnostics, the quickfix
-- list, terminals. What privacy.lua keeps back is not read, and the user is told. Changes nothing.

local config = require("lcursor.config")
local context = require("lcursor.context")
local notify = require("lcursor.notify")
local place = require("lcursor.chat.place")
local privacy = require("lcursor.privacy")
local spelled = require("lcursor.chat.spelled")
local state = require("lcursor.chat.state")

local M = {}

local api = vim.api

local MOST_BYTES = 1024 * 1024
local MOST_ENTRIES = 200 -- of diagnostics, of the quickfix list
local MOST_TERMINAL_LINES = 400
local MOST_SCREEN_ROWS, MOST_SCREEN_BYTES = 120, 16000
local SEVERITIES = { "error", "warning", "info", "hint" }

---@param name string
---@param why string
local function refuse(name, why)
  notify.warn(("%s is not attached: %s"):format(name, why))
end

---@param buf integer
---@return string as it is shown
local function name_of(buf)
  local path = api.nvim_buf_get_name(buf)
  if vim.bo[buf].buftype ~= "" or path:find("^%a[%w+.-]*://") then
    return vim.fs.basename(path) ~= "" and vim.fs.basename(path) or "[Scratch]"
  end
  return path ~= "" and place.name(path) or "[No Name]"
end

---@param buf integer
---@return integer bytes
local function size(buf)
  return api.nvim_buf_get_offset(buf, api.nvim_buf_line_count(buf))
end

---@param buf integer
---@return string absolute; "" for what is in no file
local function path_of(buf)
  return context.file(buf) or ""
end

---@param kind string
---@param name string
---@param path string
---@param first_row integer
---@param text string
---@return lcursor.ChatAttachment? nil where it must not be given away; tells
local function piece(kind, name, path, first_row, text)
  if privacy.has_private_key(text) then
    return refuse(name, privacy.REASONS.secret_text)
  elseif #text > MOST_BYTES then
    return refuse(name, ("it has %.1f MB"):format(#text / 1e6))
  end
  return {
    kind = kind,
    name = name,
    path = path,
    first_row = first_row,
    text = text,
    is_offered = false,
  }
end

--- What a program attaches, with all fields: it need not say more than the text.
---@param one table
---@return lcursor.ChatAttachment
function M.whole(one)
  local none = { kind = "text", path = "", first_row = 0, text = "", is_offered = false }
  local all = vim.tbl_extend("keep", one, none)
  all.name = all.name or all.kind
  return all
end

--- Some rows of a buffer.
---@param buf integer
---@param first integer 0-based
---@param last integer row behind the last
---@return lcursor.ChatAttachment? nil where they must not be given away; tells
function M.range(buf, first, last)
  local why, name = privacy.kept_back(buf), name_of(buf)
  if why then
    return refuse(name, why)
  end
  last = math.min(last, api.nvim_buf_line_count(buf))
  name = ("%s:%d-%d"):format(name, first + 1, last)
  local bytes = api.nvim_buf_get_offset(buf, last) - api.nvim_buf_get_offset(buf, first)
  if bytes > MOST_BYTES then
    return refuse(name, ("it has %.1f MB"):format(bytes / 1e6))
  end
  local lines = api.nvim_buf_get_lines(buf, first, last, false)
  return piece("selection", name, path_of(buf), first, table.concat(lines, "\n"))
end

--- A buffer as it is, saved or not.
---@param buf integer
---@return lcursor.ChatAttachment? nil where it must not be given away; tells
function M.buffer(buf)
  local why, name = privacy.kept_back(buf), name_of(buf)
  if why then
    return refuse(name, why)
  end
  local bytes = size(buf)
  if bytes > MOST_BYTES then
    return refuse(name, ("it has %.1f MB; name some of its rows"):format(bytes / 1e6))
  end
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  return piece("buffer", name, path_of(buf), 0, table.concat(lines, "\n") .. "\n")
end

--- The rows that are selected, or were last.
---@param buf integer
---@return integer? first 0-based
---@return integer? last row behind the last
function M.selected(buf)
  local is_here = buf == api.nvim_get_current_buf()
  if is_here and api.nvim_get_mode().mode:find("^[vV\22sS\19]") then
    local one, other = vim.fn.line("v"), vim.fn.line(".")
    return math.min(one, other) - 1, math.max(one, other)
  end
  local first = api.nvim_buf_get_mark(buf, "<")[1]
  local last = api.nvim_buf_get_mark(buf, ">")[1]
  if first > 0 and last >= first then
    return first - 1, math.min(last, api.nvim_buf_line_count(buf))
  end
end

--- The rows of code that one sees, beside the chat or before it came; around the cursor where that
--- is much.
---@return lcursor.ChatAttachment? nil for none, and for what must not be given away; tells nothing
function M.screen()
  local win = place.window()
  local buf = win and api.nvim_win_get_buf(win)
  if not win or not buf or vim.bo[buf].buftype ~= "" or privacy.kept_back(buf) then
    return nil
  elseif size(buf) > MOST_BYTES then
    return nil
  end
  local all = api.nvim_buf_get_lines(buf, 0, -1, false)
  if privacy.has_private_key(table.concat(all, "\n")) then
    return nil
  end
  local shown, row = vim.fn.getwininfo(win)[1], api.nvim_win_get_cursor(win)[1] - 1
  local first, last = shown.topline - 1, math.min(shown.botline, #all)
  if last - first > MOST_SCREEN_ROWS then
    local half = math.floor(MOST_SCREEN_ROWS / 2)
    first = math.max(math.min(row - half, last - MOST_SCREEN_ROWS), first)
    last = first + MOST_SCREEN_ROWS
  end
  local text = table.concat(vim.list_slice(all, first + 1, last), "\n")
  if not text:find("%S") or #text > MOST_SCREEN_BYTES then
    return nil
  end
  local name = ("%s:%d-%d (cursor in line %d)"):format(name_of(buf), first + 1, last, row + 1)
  return piece("screen", name, path_of(buf), first, text)
end

---@param buf integer
---@param first integer
---@param last integer
---@return boolean whether the cursor still is where something was selected
local function is_fresh(buf, first, last)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local row = api.nvim_win_get_cursor(win)[1] - 1
    if row >= first and row < last then
      return true
    end
  end
  return false
end

---@param buf integer
---@return lcursor.ChatAttachment? nil where there are none
function M.diagnostics(buf)
  local found = vim.diagnostic.get(buf)
  if #found == 0 then
    return nil
  end
  local why, name = privacy.kept_back(buf), name_of(buf)
  if why then
    return refuse("diagnostics of " .. name, why)
  end
  local grave = vim.tbl_filter(function(each)
    return each.severity <= vim.diagnostic.severity.WARN
  end, found)
  found = #grave > 0 and grave or found
  table.sort(found, function(a, b)
    return a.lnum == b.lnum and a.col < b.col or a.lnum < b.lnum
  end)
  local lines = {}
  for i, each in ipairs(found) do
    if i > MOST_ENTRIES then
      table.insert(lines, ("(%d more are left out)"):format(#found - MOST_ENTRIES))
      break
    end
    local from = table.concat({ each.source or "", each.code and tostring(each.code) or "" }, " ")
    from = vim.trim(from)
    local text = each.message:gsub("%s+", " ")
    local format = "%s:%d:%d: %s: %s%s"
    local tail = from ~= "" and (" [%s]"):format(from) or ""
    local kind = SEVERITIES[each.severity] or "error"
    local row, col = each.lnum + 1, each.col + 1
    table.insert(lines, format:format(name, row, col, kind, text, tail))
    local code = api.nvim_buf_get_lines(buf, each.lnum, each.lnum + 1, false)[1]
    if code and code:find("%S") and #code < 500 then
      table.insert(lines, "    " .. vim.trim(code))
    end
  end
  return piece("diagnostics", name, path_of(buf), found[1].lnum, table.concat(lines, "\n"))
end

---@return lcursor.ChatAttachment? nil where it is empty
function M.quickfix()
  local list = vim.fn.getqflist({ title = 0, items = 0 })
  local lines, secret, more = {}, 0, 0
  for _, item in ipairs(list.items) do
    local buf = item.bufnr
    local path = buf > 0 and api.nvim_buf_get_name(buf) or ""
    if path ~= "" and privacy.is_secret_path(path, config.get().completion.secrets) then
      secret = secret + 1
    elseif #lines >= MOST_ENTRIES then
      more = more + 1
    elseif path ~= "" and item.lnum > 0 then
      local text = vim.trim(item.text):sub(1, 500)
      local kind = item.type ~= "" and (item.type:upper() .. ": ") or ""
      local col = item.col > 0 and (":%d"):format(item.col) or ""
      local row = ("%s:%d%s: %s%s"):format(place.name(path), item.lnum, col, kind, text)
      table.insert(lines, row)
    elseif item.text:find("%S") then
      table.insert(lines, item.text:sub(1, 500))
    end
  end
  if secret > 0 then
    refuse(("%d entries of the quickfix list"):format(secret), privacy.REASONS.secret)
  end
  if more > 0 then
    table.insert(lines, ("(%d more are left out)"):format(more))
  end
  if #lines == 0 then
    return nil
  end
  local title = vim.trim(list.title:gsub("%c", " "))
  title = title ~= "" and title or "quickfix list"
  return piece("quickfix", title, "", 0, table.concat(lines, "\n"))
end

---@param buf integer
---@return string
local function terminal_name(buf)
  local title = vim.b[buf].term_title
  local command = api.nvim_buf_get_name(buf):match("^term://.-//%d+:(.*)$") or "terminal"
  local is_telling = type(title) == "string" and title ~= "" and not title:find("^term://")
  return ("%s (buffer %d)"):format(is_telling and title or command, buf)
end

--- What terminals show, the one that was used last first.
---@param word string part of a name; "" for the last one
---@return lcursor.ChatAttachment[]
function M.terminals(word)
  local bufs = vim.tbl_filter(function(buf)
    local is_named = word == "" or terminal_name(buf):lower():find(word:lower(), 1, true)
    return api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "terminal" and is_named ~= nil
  end, api.nvim_list_bufs())
  table.sort(bufs, function(a, b)
    return vim.fn.getbufinfo(a)[1].lastused > vim.fn.getbufinfo(b)[1].lastused
  end)
  local pieces = {}
  for _, buf in ipairs(word == "" and vim.list_slice(bufs, 1, 1) or bufs) do
    local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
    while #lines > 0 and not lines[#lines]:find("%S") do
      table.remove(lines)
    end
    local first = math.max(#lines - MOST_TERMINAL_LINES, 0)
    local text = table.concat(vim.list_slice(lines, first + 1), "\n")
    if text:find("%S") then
      table.insert(pieces, piece("terminal", terminal_name(buf), "", 0, text))
    end
  end
  return pieces
end

---@param argument string
---@param path string absolute
---@return boolean whether the path is meant
local function is_meant(argument, path)
  local name = place.name(path)
  local wanted = vim.fs.normalize(spelled.path(argument)):gsub("^%./", "")
  if wanted == name or wanted == path or vim.endswith(name, "/" .. wanted) then
    return true
  elseif wanted:find("[*?%[]") then
    local regex = vim.fn.glob2regpat((wanted:gsub("%*%*/?", "*")))
    return vim.fn.match(name, regex) >= 0
  end
  return false
end

--- Buffers with text that the disk does not have yet.
---@param test? fun(path: string): boolean
---@param is_quiet? boolean nobody named them: what must not be given away is not told of
---@return lcursor.ChatAttachment[]
local function unsaved(test, is_quiet)
  local pieces = {}
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local path = path_of(buf)
    local is_new = api.nvim_buf_is_loaded(buf) and vim.bo[buf].modified and path ~= ""
    if is_new and (not test or test(path)) then
      local is_free = not is_quiet or (not privacy.kept_back(buf) and size(buf) <= MOST_BYTES)
      table.insert(pieces, is_free and M.buffer(buf) or nil)
    end
  end
  return pieces
end

---@param name string
---@return lcursor.ChatAttachment[] of listed buffers whose name has that in it
local function named(name)
  local pieces = {}
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local is_code = vim.bo[buf].buflisted and api.nvim_buf_is_loaded(buf)
    if is_code and vim.bo[buf].buftype == "" and path_of(buf) ~= "" then
      if name_of(buf):lower():find(name:lower(), 1, true) then
        table.insert(pieces, (M.buffer(buf)))
      end
    end
  end
  return pieces
end

---@alias lcursor.ChatPieces lcursor.ChatAttachment|lcursor.ChatAttachment[]

---@type table<string, fun(argument: string, buf?: integer): lcursor.ChatPieces?>
local READ = {
  buffer = function(argument, buf)
    if argument ~= "" then
      return named(argument)
    end
    return buf and M.buffer(buf)
  end,
  selection = function(_, buf)
    local first, last
    if buf then
      first, last = M.selected(buf)
    end
    return buf and first and last and M.range(buf, first, last) or nil
  end,
  screen = function()
    return M.screen()
  end,
  diagnostics = function(_, buf)
    return buf and M.diagnostics(buf)
  end,
  quickfix = function()
    return M.quickfix()
  end,
  terminal = function(argument)
    return M.terminals(argument)
  end,
  file = function(argument)
    return unsaved(function(path)
      return is_meant(argument, path)
    end)
  end,
  dir = function(argument)
    local folder = vim.fs.normalize(argument):gsub("^%./", ""):gsub("/$", "")
    return unsaved(function(path)
      local start = folder .. "/"
      return vim.startswith(place.name(path), start) or vim.startswith(path, start)
    end)
  end,
  symbol = function()
    return unsaved()
  end,
  diff = function()
    return unsaved()
  end,
}

---@param one { kind: string }
---@return boolean
local function is_selection(one)
  return one.kind == "selection"
end

--- What the editor has of what a question mentions; with a command all that it may bring. It is an
--- offer: Python takes what the question or its command asks for.
---@param session lcursor.ChatSession
---@param text string
---@param before? lcursor.ChatMessage in whose place it is said; what was attached to that is again
---@return lcursor.ChatAttachment[]
function M.collect(session, text, before)
  local pieces, seen = {}, {}
  for _, one in ipairs(session.attached) do
    seen[one.kind .. one.name] = true
  end
  local has_selection = vim.iter(session.attached):any(is_selection)
    or vim.iter(before and before.items or {}):any(is_selection)
  local function add(found, is_wanted)
    for _, one in ipairs(vim.islist(found) and found or { found }) do
      local key = one.kind .. one.name
      if not seen[key] then
        seen[key] = true
        one.is_offered = not is_wanted
        table.insert(pieces, one)
      end
    end
  end
  local buf = place.code()
  for _, mention in ipairs(spelled.mentions(text)) do
    local read = READ[mention.kind]
    -- What was selected when the chat was asked for is meant, not what is now.
    if read and not (mention.kind == "selection" and has_selection) then
      add(read(mention.argument, buf) or {})
    end
  end
  if spelled.command(text) then
    for _, kind in ipairs({ "buffer", "diagnostics", "quickfix", "terminal" }) do
      if kind ~= "buffer" or (buf and privacy.kept_back(buf) == nil) then
        add(READ[kind]("", buf) or {})
      end
    end
    add(unsaved(nil, true))
    local first, last
    if buf and not has_selection then
      first, last = M.selected(buf)
    end
    if buf and first and last and is_fresh(buf, first, last) and M.may_select(text) then
      add(M.range(buf, first, last) or {}, true)
    end
  end
  return pieces
end

--- Commands of ours that are about something else than what is selected.
local WITHOUT = { review = true, commit = true, trace = true }

---@param text string
---@return boolean whether its command may be about what is selected
function M.may_select(text)
  return not WITHOUT[(spelled.command(text) or ""):lower()]
end

--- Have something go with the next question, and show so.
---@param session lcursor.ChatSession
---@param pieces lcursor.ChatAttachment[]
function M.put(session, pieces)
  for _, one in ipairs(pieces) do
    local is_there = vim.iter(session.attached):any(function(other)
      return other.kind == one.kind and other.name == one.name and other.text == one.text
    end)
    if not is_there then
      table.insert(session.attached, one)
    end
  end
  require("lcursor.chat.buffer").placeholder(session)
end

---@return boolean whether something is selected right now, and not in a chat
function M.is_visual()
  local is_chat = state.of(api.nvim_get_current_buf()) ~= nil
  return not is_chat and api.nvim_get_mode().mode:find("^[vV\22]") ~= nil
end

--- What is selected right now.
---@return lcursor.ChatAttachment? nil where it must not be given away; tells
function M.visual()
  local buf = api.nvim_get_current_buf()
  local first, last = M.selected(buf)
  return first and last and M.range(buf, first, last) or nil
end

return M
