-- The colours of lines that are in no buffer yet: by tree-sitter where there is a parser, else by
-- the regular expressions of 'syntax', in a hidden buffer. A little at a time; knows no extmarks.

local notify = require("lcursor.notify")

local M = {}

local api, uv = vim.api, vim.uv

local ABOVE, BELOW = 200, 40 -- lines around that say what the new ones are within
local AT_ONCE = 60 -- lines; more are parsed while others have their turn
local WITHIN = 150 -- lines; in more, languages within others are left out
local SLICE_NS = 3e6
local PAUSE_MS = 2
local LONG_BYTES = 1000 -- no colours behind that byte of a line
local MOST_LINES = 5000
local AHEAD_MS = 60 -- until what will be needed is looked for: what was asked for is sent first
local FIRST_LINES = 20 -- of a buffer, that its parser shows itself with
local SKIPPED = { spell = true, nospell = true, conceal = true, none = true }

---@alias lcursor.EditColours table<integer, lcursor.EditColour[]> by the row, 0-based

--- A piece of text around the new lines, from a line that is not indented to the next such one.
---@param buf integer
---@param hunk lcursor.Hunk
---@return string[] lines
---@return integer head how many of them come before the new ones
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
  local head = #above
  return vim.list_extend(vim.list_extend(above, hunk.new), below), head
end

--- Run a function for row after row, a few milliseconds at a time.
---@param count integer
---@param fn fun(row: integer)
---@param done fun()
local function slices(count, fn, done)
  local row = 0
  local function step()
    local began = uv.hrtime()
    while row < count do
      fn(row)
      row = row + 1
      if row < count and uv.hrtime() - began > SLICE_NS then
        return vim.defer_fn(notify.guarded(step), PAUSE_MS)
      end
    end
    done()
  end
  step()
end

---@param out lcursor.EditColours
---@param row integer
---@param first integer
---@param last integer
---@param group string
local function add(out, row, first, last, group)
  out[row] = out[row] or {}
  table.insert(out[row], { first = first, last = last, group = group })
end

local STEP_ROWS = 8

---@param parser vim.treesitter.LanguageTree
---@param text string
---@param head integer
---@param count integer
---@param done fun(colours: lcursor.EditColours?)
local function captures(parser, text, head, count, done)
  local out = {} ---@type lcursor.EditColours
  local function rows(from, to)
    parser:for_each_tree(function(tree, language_tree)
      local language = language_tree:lang()
      local query = vim.treesitter.query.get(language, "highlights")
      if not query then
        return
      end
      for id, node, metadata in query:iter_captures(tree:root(), text, from, to) do
        local name = query.captures[id]
        if not SKIPPED[name] and name:sub(1, 1) ~= "_" then
          local range = vim.treesitter.get_range(node, text, metadata[id])
          local group = ("@%s.%s"):format(name, language)
          for row = math.max(range[1], from), math.min(range[4], to - 1) do
            local first = row == range[1] and range[2] or 0
            add(out, row - head, first, row == range[4] and range[5] or LONG_BYTES, group)
          end
        end
      end
    end)
  end
  slices(math.ceil(count / STEP_ROWS), function(step)
    local from = head + step * STEP_ROWS
    -- A query that does not fit its parser throws: then there are fewer colours.
    pcall(rows, from, math.min(from + STEP_ROWS, head + count))
  end, function()
    done(out)
  end)
end

---@type table<string, string|false> by the filetype: its language, where that can be had
local languages = {}

---@param filetype string
---@return string|false
local function language_of(filetype)
  if languages[filetype] == nil then
    local language = vim.treesitter.language.get_lang(filetype)
    -- A parser of another Neovim's throws.
    local can, is_there = pcall(vim.treesitter.language.add, language or "")
    local ok, query = pcall(vim.treesitter.query.get, language or "", "highlights")
    languages[filetype] = can and is_there and ok and query and language or false
  end
  return languages[filetype]
end

---@class (exact) lcursor.EditExcerpt
---@field lines string[]
---@field head integer how many lines come before those that are to be coloured
---@field count integer of those
---@field done fun(colours: lcursor.EditColours?)

---@type fun()[] what waits; one is worked at at a time, or together they would be busy for long
local jobs = {}
local is_busy = false

local function next_job()
  local job = table.remove(jobs, 1)
  is_busy = job ~= nil
  if job then
    job()
  end
end

---@param job fun()
local function queue(job)
  table.insert(jobs, job)
  if not is_busy then
    next_job()
  end
end

---@param excerpt lcursor.EditExcerpt
---@param colours lcursor.EditColours?
local function finish(excerpt, colours)
  excerpt.done(colours)
  vim.defer_fn(notify.guarded(next_job), PAUSE_MS)
end

---@param language string
---@param excerpt lcursor.EditExcerpt
local function by_tree(language, excerpt)
  local text = table.concat(excerpt.lines, "\n") .. "\n"
  local ok, parser = pcall(vim.treesitter.get_string_parser, text, language)
  if not ok then
    return excerpt.done(nil)
  end
  if #excerpt.lines <= AT_ONCE then
    ok = pcall(parser.parse, parser, true)
    if not ok then
      return excerpt.done(nil)
    end
    return captures(parser, text, excerpt.head, excerpt.count, excerpt.done)
  end
  -- Languages within others are parsed without a pause.
  local range = #excerpt.lines <= WITHIN or nil
  queue(function()
    parser:parse(range, function(err)
      if err then
        return finish(excerpt, nil)
      end
      captures(parser, text, excerpt.head, excerpt.count, function(colours)
        finish(excerpt, colours)
      end)
    end)
  end)
end

---@type table<string, integer> by the filetype: a hidden buffer with its syntax
local buffers = {}
---@type table<integer, string>
local names = {}

---@param filetype string
---@return integer? buf
local function buffer_of(filetype)
  local known = buffers[filetype]
  if known and api.nvim_buf_is_loaded(known) then
    return known
  end
  if filetype == "" or vim.g.syntax_on == nil then
    return nil
  end
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].undolevels = -1
  api.nvim_buf_call(buf, function()
    vim.bo[buf].syntax = filetype
  end)
  buffers[filetype] = buf
  return buf
end

---@param out lcursor.EditColours
---@param row integer of the hidden buffer, the current one
---@param into integer
---@param line string
local function ids(out, row, into, line)
  local first, before = 0, 0
  for col = 1, math.min(#line, LONG_BYTES) + 1 do
    local id = col <= #line and col <= LONG_BYTES and vim.fn.synID(row + 1, col, 1) or 0
    if id ~= before then
      if before ~= 0 then
        names[before] = names[before] or vim.fn.synIDattr(before, "name")
        add(out, into, first, col - 1, names[before])
      end
      first, before = col - 1, id
    end
  end
end

---@param filetype string
---@param excerpt lcursor.EditExcerpt
local function by_syntax(filetype, excerpt)
  queue(function()
    local buf = buffer_of(filetype)
    if not buf then
      return finish(excerpt, nil)
    end
    local out = {} ---@type lcursor.EditColours
    api.nvim_buf_set_lines(buf, 0, -1, false, excerpt.lines)
    slices(excerpt.count, function(row)
      if api.nvim_buf_is_loaded(buf) then
        api.nvim_buf_call(buf, function()
          ids(out, excerpt.head + row, row, excerpt.lines[excerpt.head + row + 1])
        end)
      end
    end, function()
      finish(excerpt, out)
    end)
  end)
end

--- Have what the colours of a buffer need, while a model writes: the first time it takes a while.
---@param buf integer
function M.prepare(buf)
  local function wanted()
    local filetype = api.nvim_buf_is_loaded(buf) and vim.bo[buf].filetype or ""
    local language = languages[filetype] == nil and vim.treesitter.language.get_lang(filetype)
    return filetype ~= "" and language or nil, filetype
  end
  local steps = {
    function(language)
      pcall(vim.treesitter.language.add, language)
    end,
    function(language)
      pcall(vim.treesitter.query.get, language, "highlights")
    end,
    function(language, filetype)
      if language_of(filetype) then
        local text = table.concat(api.nvim_buf_get_lines(buf, 0, FIRST_LINES, false), "\n")
        pcall(function()
          vim.treesitter.get_string_parser(text, language):parse(true)
        end)
      end
    end,
  }
  local function step()
    local language, filetype = wanted()
    if language then
      table.remove(steps, 1)(language, filetype)
    end
    vim.defer_fn(notify.guarded(language and steps[1] and step or next_job), PAUSE_MS)
  end
  vim.defer_fn(
    notify.guarded(function()
      queue(step)
    end),
    AHEAD_MS
  )
end

--- Find the colours of the new lines of a hunk.
---@param buf integer
---@param hunk lcursor.Hunk
---@param done fun(colours: lcursor.EditColours?) at once where it is little work; nil for none
function M.of(buf, hunk, done)
  if #hunk.new == 0 or #hunk.new > MOST_LINES then
    return done(nil)
  end
  local filetype = vim.bo[buf].filetype
  if filetype == "" then
    return done(nil)
  end
  local function go()
    local language = language_of(filetype)
    if hunk.state ~= "open" or not api.nvim_buf_is_loaded(buf) then
      return -- who draws it again asks again
    elseif not language and vim.g.syntax_on == nil then
      return done(nil)
    end
    local lines, head = excerpt_of(buf, hunk)
    for i, line in ipairs(lines) do
      if line:find("[\n\r]") then
        lines[i] = line:gsub("[\n\r]", " ")
      end
    end
    ---@type lcursor.EditExcerpt
    local excerpt = { lines = lines, head = head, count = #hunk.new, done = done }
    if language then
      by_tree(language, excerpt)
    else
      by_syntax(filetype, excerpt)
    end
  end
  if languages[filetype] ~= nil then
    return go()
  end
  queue(function() -- the first of a filetype: finding its parser and query takes a while
    language_of(filetype)
    vim.defer_fn(
      notify.guarded(function()
        go()
        next_job()
      end),
      PAUSE_MS
    )
  end)
end

return M
