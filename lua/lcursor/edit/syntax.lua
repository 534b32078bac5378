-- The colors of lines that are in no buffer yet: by treesitter where there is a parser, else by
-- 'syntax' in a hidden buffer. The work is done in slices.

local M = {}

local api = vim.api

local ABOVE, BELOW = 200, 40 -- context lines around the new ones
local MAX_LINES_INJECTED = 150 -- in more, languages within others are left out
local MAX_LINE_BYTES = 1000 -- the rest of a line has no colors
local MAX_LINES = 5000
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

---@type table<string, string|false> by filetype: its language, if it can be highlighted
local languages = {}

--- Return the language of a filetype if its parser and its highlight query can be loaded.
---@param filetype string
---@param work lcursor.Slices
---@return string?
local function language_of(filetype, work)
  if languages[filetype] == nil then
    local language = vim.treesitter.language.get_lang(filetype) or ""
    work.pause()
    -- A parser built for another Neovim throws.
    local can_add, is_added = pcall(vim.treesitter.language.add, language)
    work.pause()
    local ok, query = pcall(vim.treesitter.query.get, language, "highlights")
    languages[filetype] = can_add and is_added and ok and query and language or false
    work.pause()
  end
  return languages[filetype] or nil
end

--- Parse a text; long ones take several slices.
---@param text string
---@param language string
---@param with_injected boolean also parse languages within others; these take no pause
---@param work lcursor.Slices
---@return vim.treesitter.LanguageTree? nil if that is not possible
local function parse(text, language, with_injected, work)
  local ok, parser = pcall(vim.treesitter.get_string_parser, text, language)
  if not ok then
    return nil
  end
  local problem
  work.wait(function(done)
    parser:parse(with_injected or nil, function(err)
      problem = err
      done()
    end)
  end)
  return not problem and parser or nil
end

---@param work lcursor.Slices
---@return lcursor.EditColors?
local function by_tree(language, lines, head, count, work)
  local text, out = table.concat(lines, "\n") .. "\n", {}
  local parser = parse(text, language, #lines <= MAX_LINES_INJECTED, work)
  if not parser then
    return nil
  end
  local last_row, trees = head + count - 1, {}
  parser:for_each_tree(function(tree, language_tree)
    local top, _, bottom = tree:root():range()
    if top <= last_row and bottom >= head then
      table.insert(trees, { root = tree:root(), language = language_tree:lang() })
    end
  end)
  local function highlight(tree)
    local query = vim.treesitter.query.get(tree.language, "highlights")
    for id, node, metadata in query:iter_captures(tree.root, text, head, head + count) do
      local name = query.captures[id]
      if not SKIPPED[name] and name:sub(1, 1) ~= "_" then
        local range = vim.treesitter.get_range(node, text, metadata[id])
        local group = ("@%s.%s"):format(name, tree.language)
        for row = math.max(range[1], head), math.min(range[4], last_row) do
          local first = row == range[1] and range[2] or 0
          local last = row == range[4] and range[5] or MAX_LINE_BYTES
          add(out, row - head, first, last, group)
        end
        work.pause()
      end
    end
  end
  for _, tree in ipairs(trees) do
    pcall(highlight, tree) -- a query that does not fit its parser throws
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
local function by_syntax(filetype, lines, head, count, work)
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
    work.pause()
  end
  return out
end

--- Load what the colors of a buffer need. The first time that takes a while.
---@param buf integer
---@param work lcursor.Slices
function M.prepare(buf, work)
  local filetype = vim.bo[buf].filetype
  local language = filetype ~= "" and language_of(filetype, work)
  if language and api.nvim_buf_is_loaded(buf) then
    local text = table.concat(api.nvim_buf_get_lines(buf, 0, 20, false), "\n")
    parse(text, language, true, work)
  end
end

--- Find the colors of the new lines of a hunk.
---@param buf integer
---@param hunk lcursor.Hunk
---@param work lcursor.Slices
---@return lcursor.EditColors|false
function M.colors(buf, hunk, work)
  local filetype, count = vim.bo[buf].filetype, #hunk.new
  if count == 0 or count > MAX_LINES or filetype == "" then
    return false
  end
  local language = language_of(filetype, work)
  if not api.nvim_buf_is_loaded(buf) or (not language and vim.g.syntax_on == nil) then
    return false
  end
  local lines, head = excerpt_of(buf, hunk)
  if language then
    return by_tree(language, lines, head, count, work) or false
  end
  return by_syntax(filetype, lines, head, count, work)
end

return M
