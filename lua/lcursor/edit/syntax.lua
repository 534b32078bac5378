-- The colors of lines that are in no buffer yet: by treesitter where there is a parser, else by
-- 'syntax' in a hidden buffer. Runs in a coroutine and calls `pause` often, which may yield.

local M = {}

local api = vim.api

local ABOVE, BELOW = 200, 40 -- context lines around the new ones
local MAX_LINES_AT_ONCE = 60 -- more are parsed asynchronously
local MAX_LINES_INJECTED = 150 -- in more, languages within others are left out
local MAX_LINE_BYTES = 1000 -- the rest of a line has no colors
local MAX_LINES = 5000
local CAPTURED_ROWS = 8
local SKIPPED = { spell = true, nospell = true, conceal = true, none = true }

---@alias lcursor.EditColors table<integer, lcursor.EditColor[]> by row, 0-based

--- Return the new lines of a hunk with those around them, from one that is not indented to another.
---@return string[] lines
---@return integer head how many come before the new ones
local function excerpt_of(buf, hunk)
  local first = math.max(hunk.first - ABOVE, 0)
  local above = api.nvim_buf_get_lines(buf, first, hunk.first, false)
  for i = #above, 1, -1 do
    if above[i]:find("^[^%s})%]]") then
      above = vim.list_slice(above, i)
      break
    end
  end
  local below = api.nvim_buf_get_lines(buf, hunk.last, hunk.last + BELOW, false)
  for i, line in ipairs(below) do
    if line:find("^%S") then
      below = vim.list_slice(below, 1, i)
      break
    end
  end
  local lines = vim.list_extend(vim.list_slice(above), hunk.new)
  for i, line in ipairs(vim.list_extend(lines, below)) do
    lines[i] = line:find("[\n\r]") and line:gsub("[\n\r]", " ") or line
  end
  return lines, #above
end

---@param out lcursor.EditColors
local function add(out, row, first, last, group)
  out[row] = out[row] or {}
  table.insert(out[row], { first = first, last = last, group = group })
end

---@type table<string, string|false> by filetype: its language, where its parser can be loaded
local languages = {}

--- Load the parser and the highlight query of a filetype.
---@return string|false
local function language_of(filetype, pause)
  if languages[filetype] == nil then
    local language = vim.treesitter.language.get_lang(filetype) or ""
    pause()
    -- A parser built for another Neovim throws.
    local can_add, is_added = pcall(vim.treesitter.language.add, language)
    pause()
    local ok, query = pcall(vim.treesitter.query.get, language, "highlights")
    languages[filetype] = can_add and is_added and ok and query and language or false
    pause()
  end
  return languages[filetype]
end

---@param parser vim.treesitter.LanguageTree
---@param count integer lines
---@param wait fun(start: fun(done: fun())) yields until `done` is called
---@return boolean ok
local function parse(parser, count, wait)
  if count <= MAX_LINES_AT_ONCE then
    return (pcall(parser.parse, parser, true))
  end
  local problem
  wait(function(done)
    -- Injected languages are parsed without a pause.
    parser:parse(count <= MAX_LINES_INJECTED or nil, function(err)
      problem = err
      done()
    end)
  end)
  return not problem
end

---@param language string
---@param wait fun(start: fun(done: fun()))
---@return lcursor.EditColors?
local function by_tree(language, lines, head, count, pause, wait)
  local text = table.concat(lines, "\n") .. "\n"
  local ok, parser = pcall(vim.treesitter.get_string_parser, text, language)
  if not ok or not parse(parser, #lines, wait) then
    return nil
  end
  local out = {} ---@type lcursor.EditColors
  local function capture(from, to)
    parser:for_each_tree(function(tree, language_tree)
      local lang = language_tree:lang()
      local query = vim.treesitter.query.get(lang, "highlights")
      if not query then
        return
      end
      for id, node, metadata in query:iter_captures(tree:root(), text, from, to) do
        local name = query.captures[id]
        if not SKIPPED[name] and name:sub(1, 1) ~= "_" then
          local range = vim.treesitter.get_range(node, text, metadata[id])
          for row = math.max(range[1], from), math.min(range[4], to - 1) do
            local first = row == range[1] and range[2] or 0
            local last = row == range[4] and range[5] or MAX_LINE_BYTES
            add(out, row - head, first, last, ("@%s.%s"):format(name, lang))
          end
        end
      end
    end)
  end
  for from = head, head + count - 1, CAPTURED_ROWS do
    pcall(capture, from, math.min(from + CAPTURED_ROWS, head + count)) -- a query may not fit
    pause()
  end
  return out
end

---@type table<string, integer> by filetype: a hidden buffer with its syntax
local hidden = {}

---@return integer buf
local function hidden_buffer(filetype)
  local buf = hidden[filetype]
  if not buf or not api.nvim_buf_is_loaded(buf) then
    buf = api.nvim_create_buf(false, true)
    vim.bo[buf].bufhidden, vim.bo[buf].undolevels = "hide", -1
    api.nvim_buf_call(buf, function()
      vim.bo[buf].syntax = filetype
    end)
    hidden[filetype] = buf
  end
  return buf
end

---@return lcursor.EditColors
local function by_syntax(filetype, lines, head, count, pause)
  local buf, out = hidden_buffer(filetype), {}
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  for row = 0, count - 1 do
    local size = math.min(#lines[head + row + 1], MAX_LINE_BYTES)
    api.nvim_buf_call(buf, function()
      local first, before = 0, 0
      for col = 1, size + 1 do
        local id = col <= size and vim.fn.synID(head + row + 1, col, 1) or 0
        if id ~= before and before ~= 0 then
          add(out, row, first, col - 1, vim.fn.synIDattr(before, "name"))
        end
        if id ~= before then
          first, before = col - 1, id
        end
      end
    end)
    pause()
  end
  return out
end

--- Load what the colors of a buffer need. The first time that takes a while.
---@param buf integer
---@param pause fun()
function M.prepare(buf, pause)
  local filetype = vim.bo[buf].filetype
  if filetype == "" or languages[filetype] ~= nil then
    return
  end
  local language = language_of(filetype, pause)
  if language and api.nvim_buf_is_loaded(buf) then
    local text = table.concat(api.nvim_buf_get_lines(buf, 0, 20, false), "\n")
    pcall(function()
      vim.treesitter.get_string_parser(text, language):parse(true)
    end)
  end
end

--- Find the colors of the new lines of a hunk.
---@param buf integer
---@param hunk lcursor.Hunk
---@param pause fun()
---@param wait fun(start: fun(done: fun()))
---@return lcursor.EditColors|false
function M.colors(buf, hunk, pause, wait)
  local filetype, count = vim.bo[buf].filetype, #hunk.new
  if count == 0 or count > MAX_LINES or filetype == "" then
    return false
  end
  local language = language_of(filetype, pause)
  if not api.nvim_buf_is_loaded(buf) or (not language and vim.g.syntax_on == nil) then
    return false
  end
  local lines, head = excerpt_of(buf, hunk)
  if language then
    return by_tree(language, lines, head, count, pause, wait) or false
  end
  return by_syntax(filetype, lines, head, count, pause)
end

return M
