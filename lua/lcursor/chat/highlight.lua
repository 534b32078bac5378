-- Highlights a chat with treesitter, block by block and in short slices. Neovim's own highlighter
-- reparses a whole Markdown buffer after each change: while an answer streams into a long chat that
-- takes 10 to 50 % of the main thread (measured on 0.11.4).

local markdown = require("lcursor.chat.markdown")
local notify = require("lcursor.notify")

local M = {}

local api, uv = vim.api, vim.uv
local namespace = api.nvim_create_namespace("lcursor.chat.highlight")
local anchors = api.nvim_create_namespace("lcursor.chat.highlight.anchors")

local SLICE_MS, PAUSE_MS = 2, 5
local BATCH_ROWS = 30
local MIN_BLOCK_ROWS = 20
local COST_FACTOR = 100 -- an open block is highlighted again after this many times its cost
local SKIPPED = { spell = true, nospell = true, conceal = true, none = true }

---@class (exact) lcursor.HighlightJob a block to be highlighted
---@field buf integer
---@field anchor integer extmark at its first row; without it the job ends
---@field row? integer where that is now
---@field rows integer
---@field text string
---@field language? string nil without a parser
---@field is_fence boolean
---@field slices integer that it took
---@field done? fun()

---@type table<integer, lcursor.HighlightJob[]> stacks by buffer: the newest job runs first
local stacks = {}
---@type table<integer, thread> by buffer
local workers = {}
local slice_ends_ns = 0

---@type boolean?
local is_available

---@return boolean whether there is a parser for Markdown
local function has_parser()
  if is_available == nil then
    is_available = vim.treesitter.language.add("markdown") == true
      and vim.treesitter.query.get("markdown", "highlights") ~= nil
  end
  return is_available
end

--- Stop any other highlighter in the buffer.
---@param buf integer
function M.attach(buf)
  if has_parser() then
    vim.treesitter.stop(buf)
    vim.bo[buf].syntax = ""
  end
end

---@type table<string, string|false> treesitter language by the name after a fence
local languages = {}

---@param info string
---@return string?
local function language_of(info)
  local name = info:match("^[%w_+#%-]+") or ""
  if languages[name] == nil then
    local language = vim.treesitter.language.get_lang(markdown.filetype(name))
    languages[name] = language and vim.treesitter.language.add(language) and language or false
  end
  return languages[name] or nil
end

---@param job lcursor.HighlightJob
---@return boolean whether its rows are still there
local function locate(job)
  job.row = api.nvim_buf_is_loaded(job.buf)
      and api.nvim_buf_get_extmark_by_id(job.buf, anchors, job.anchor, {})[1]
    or nil
  return job.row ~= nil
end

--- Let Neovim do other things if the slice is over.
---@param job lcursor.HighlightJob
---@return boolean whether the job's rows are still there
local function pause(job)
  if uv.hrtime() > slice_ends_ns then
    job.slices = job.slices + 1
    coroutine.yield()
    locate(job)
  end
  return job.row ~= nil
end

---@param job lcursor.HighlightJob
---@param tree TSTree
---@param language string
---@param first integer row of the text
---@param last integer row after the last
local function highlight_tree(job, tree, language, first, last)
  local query = vim.treesitter.query.get(language, "highlights")
  if not query or not pause(job) then
    return
  end
  for id, node, metadata in query:iter_captures(tree:root(), job.text, first, last) do
    local name = query.captures[id]
    local range = vim.treesitter.get_range(node, job.text, metadata[id])
    local is_here = range[1] >= first and range[1] < last
    if is_here and not SKIPPED[name] and name:sub(1, 1) ~= "_" then
      api.nvim_buf_set_extmark(job.buf, namespace, job.row + range[1], range[2], {
        end_row = job.row + range[4],
        end_col = range[5],
        hl_group = ("@%s.%s"):format(name, language),
        priority = tonumber(metadata.priority) or vim.hl.priorities.treesitter,
        strict = false,
        undo_restore = false,
      })
    end
    if not pause(job) then
      return
    end
  end
end

---@param job lcursor.HighlightJob
---@param parser? vim.treesitter.LanguageTree
---@param first integer row of the text
---@param last integer row after the last
local function highlight_rows(job, parser, first, last)
  local from, to = { job.row + first, 0 }, { job.row + last - 1, -1 }
  local old = api.nvim_buf_get_extmarks(job.buf, namespace, from, to, {})
  if job.is_fence and first == 0 then
    api.nvim_buf_set_extmark(job.buf, namespace, job.row, 0, {
      end_row = job.row + job.rows,
      hl_group = "@markup.raw.block.markdown",
      priority = vim.hl.priorities.treesitter - 1,
      strict = false,
      undo_restore = false,
    })
  end
  local trees = {}
  if parser then
    parser:for_each_tree(function(tree, language_tree)
      local top, _, bottom = tree:root():range()
      if top < last and bottom >= first then
        table.insert(trees, { tree, language_tree:lang() })
      end
    end)
  end
  for _, each in ipairs(trees) do
    -- A query that does not fit its parser throws: the rest is highlighted without it.
    pcall(highlight_tree, job, each[1], each[2], first, last)
  end
  for _, mark in ipairs(old) do -- last, so that nothing flickers
    if pause(job) then
      api.nvim_buf_del_extmark(job.buf, namespace, mark[1])
    end
  end
end

---@param job lcursor.HighlightJob
local function highlight(job)
  local parser
  if job.language then
    parser = vim.treesitter.get_string_parser(job.text, job.language)
    local is_done
    parser:parse(not job.is_fence or nil, function() -- only prose needs injections
      is_done = true
    end)
    while not is_done do -- Neovim parses in slices of its own
      coroutine.yield()
    end
  end
  for first = 0, job.rows - 1, BATCH_ROWS do
    if not pause(job) or not locate(job) then
      return
    end
    highlight_rows(job, parser, first, math.min(first + BATCH_ROWS, job.rows))
  end
end

---@param buf integer
local function work(buf)
  while #stacks[buf] > 0 do
    local job = table.remove(stacks[buf])
    if locate(job) then
      highlight(job)
    end
    if job.row then
      api.nvim_buf_del_extmark(buf, anchors, job.anchor)
    end
    if job.done then
      job.done()
    end
  end
end

--- Work for one slice, and again after a pause until all is done.
---@param buf integer
local function resume(buf)
  workers[buf] = workers[buf] or coroutine.create(work)
  slice_ends_ns = uv.hrtime() + SLICE_MS * 1e6
  local ok, err = coroutine.resume(workers[buf], buf)
  if coroutine.status(workers[buf]) == "dead" then
    workers[buf], stacks[buf] = nil, nil
    assert(ok, err)
    return
  end
  vim.defer_fn(
    notify.guarded(function()
      resume(buf)
    end),
    PAUSE_MS
  )
end

---@param buf integer
---@param row integer of the first of the lines
---@param lines string[]
---@param block lcursor.MarkdownBlock
---@param done? fun()
---@return lcursor.HighlightJob
local function push(buf, row, lines, block, done)
  local fence = block.fence
  local text = vim.list_slice(lines, block.first + 1, block.last)
  local language = "markdown" ---@type string?
  if fence then
    text[1], text[#text] = "", fence.is_closed and "" or text[#text]
    language = language_of(fence.info)
  end
  ---@type lcursor.HighlightJob
  local job = {
    buf = buf,
    anchor = api.nvim_buf_set_extmark(buf, anchors, row + block.first, 0, {
      right_gravity = false,
    }),
    rows = block.last - block.first,
    text = table.concat(text, "\n") .. "\n",
    language = language,
    is_fence = fence ~= nil,
    slices = 1,
    done = done,
  }
  stacks[buf] = stacks[buf] or {}
  table.insert(stacks[buf], job)
  return job
end

---@param buf integer
local function start(buf)
  if stacks[buf] and not workers[buf] then
    resume(buf)
  end
end

--- Highlight some rows, the last ones first.
---@param buf integer
---@param first integer
---@param last integer row after the last
---@param done? fun()
function M.rows(buf, first, last, done)
  if last <= first or not has_parser() then
    return
  end
  local lines = api.nvim_buf_get_lines(buf, first, last, false)
  for i, block in ipairs(markdown.blocks(lines, MIN_BLOCK_ROWS)) do
    push(buf, first, lines, block, i == 1 and done or nil)
  end
  start(buf)
end

--- Highlight a whole buffer again.
---@param buf integer
function M.all(buf)
  M.attach(buf)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  api.nvim_buf_clear_namespace(buf, anchors, 0, -1)
  M.rows(buf, 0, api.nvim_buf_line_count(buf))
end

--- Highlight what a stream has written: complete blocks once, the last one now and then.
---@param stream lcursor.ChatStream
---@param row integer where it continues
---@param is_end? boolean
function M.follow(stream, row, is_end)
  if not has_parser() then
    return
  end
  local buf = stream.session.buf
  local first = stream.open_mark
      and api.nvim_buf_get_extmark_by_id(buf, anchors, stream.open_mark, {})[1]
    or row
  local lines = api.nvim_buf_get_lines(buf, first, row + 1, false)
  local blocks = markdown.blocks(lines, 1)
  local open = table.remove(blocks)
  if not open then
    return
  end
  if (#blocks > 0 or is_end) and stream.highlight then
    api.nvim_buf_del_extmark(buf, anchors, stream.highlight.anchor)
    stream.highlight = nil
  end
  for _, block in ipairs(blocks) do
    push(buf, first, lines, block)
  end
  if #blocks > 0 or not stream.open_mark then
    stream.open_mark = api.nvim_buf_set_extmark(buf, anchors, first + open.first, 0, {
      id = stream.open_mark,
      right_gravity = false,
    })
    stream.highlight_due_ms = 0
  end
  if is_end or (not stream.highlight and uv.now() >= stream.highlight_due_ms) then
    local job
    job = push(buf, first, lines, open, function()
      if stream.highlight == job then
        stream.highlight = nil
        stream.highlight_due_ms = uv.now() + job.slices * SLICE_MS * COST_FACTOR
      end
    end)
    stream.highlight = job
  end
  start(buf)
end

return M
