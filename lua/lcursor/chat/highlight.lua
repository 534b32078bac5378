-- Highlights a chat with treesitter, block by block and in short slices. Neovim's own highlighter
-- reparses a whole Markdown buffer after each change: while an answer streams into a long chat that
-- takes 10 to 50 % of the main thread (measured on 0.11.4).

local markdown = require("lcursor.chat.markdown")
local slices = require("lcursor.ui.slices")
local treesitter = require("lcursor.ui.treesitter")

local M = {}

local api, uv = vim.api, vim.uv
local namespace = api.nvim_create_namespace("lcursor.chat.highlight")
local anchors = api.nvim_create_namespace("lcursor.chat.highlight.anchors")

local SLICE_MS, PAUSE_MS = 2, 5
local BATCH_ROWS = 30
local MIN_BLOCK_ROWS = 20
local COST_FACTOR = 100 -- an open block is highlighted again after this many times its cost

---@class (exact) lcursor.HighlightJob a block to be highlighted
---@field buf integer
---@field anchor integer extmark at its first row; without it the job ends
---@field row? integer where that is now
---@field rows integer
---@field text string
---@field fence? lcursor.Fence
---@field slices integer that it took
---@field done? fun()

---@type lcursor.HighlightJob[] the newest runs first
local jobs = {}
local work ---@type lcursor.Slices

---@return boolean whether there is a parser for Markdown
local function has_parser()
  return treesitter.language("markdown") ~= nil
end

--- Stop any other highlighter in the buffer.
---@param buf integer
function M.attach(buf)
  if has_parser() then
    vim.treesitter.stop(buf)
    vim.bo[buf].syntax = ""
  end
end

---@return boolean whether its rows are still there
local function locate(job)
  job.row = api.nvim_buf_is_loaded(job.buf)
      and api.nvim_buf_get_extmark_by_id(job.buf, anchors, job.anchor, {})[1]
    or nil
  return job.row ~= nil
end

--- Let Neovim do other things if the slice is over.
---@return boolean whether the job's rows are still there
local function pause(job)
  if work.pause() then
    job.slices = job.slices + 1
    locate(job)
  end
  return job.row ~= nil
end

---@param row integer of the text
---@param opts vim.api.keyset.set_extmark
local function set_mark(job, row, col, opts)
  opts.strict, opts.undo_restore = false, false
  api.nvim_buf_set_extmark(job.buf, namespace, job.row + row, col, opts)
end

---@param parser? vim.treesitter.LanguageTree
---@param first integer row of the text
---@param last integer row after the last
local function highlight_rows(job, parser, first, last)
  local from, to = { job.row + first, 0 }, { job.row + last - 1, -1 }
  local old = api.nvim_buf_get_extmarks(job.buf, namespace, from, to, {})
  local default_priority = vim.hl.priorities.treesitter
  if job.fence and first == 0 then
    set_mark(job, 0, 0, {
      end_row = job.row + job.rows,
      hl_group = "@markup.raw.block.markdown",
      priority = default_priority - 1,
    })
  end
  if parser then
    treesitter.each_highlight(parser, job.text, first, last, function(group, range, priority)
      if range[1] >= first and range[1] < last then
        set_mark(job, range[1], range[2], {
          end_row = job.row + range[4],
          end_col = range[5],
          hl_group = group,
          priority = priority or default_priority,
        })
      end
      return pause(job)
    end)
  end
  for _, mark in ipairs(old) do -- last, so that nothing flickers
    if pause(job) then
      api.nvim_buf_del_extmark(job.buf, namespace, mark[1])
    end
  end
end

local function highlight(job)
  local fence = job.fence
  local name = fence and (fence.info:match("^[%w_+#%-]+") or "")
  local language = treesitter.language(name and markdown.filetype(name) or "markdown", work.pause)
  local parser = language and treesitter.parse(job.text, language, not fence, work.wait)
  for first = 0, job.rows - 1, BATCH_ROWS do
    if not pause(job) or not locate(job) then
      return
    end
    highlight_rows(job, parser, first, math.min(first + BATCH_ROWS, job.rows))
  end
end

work = slices.new(function()
  while #jobs > 0 do
    local job = table.remove(jobs)
    if locate(job) then
      highlight(job)
    end
    if job.row then
      api.nvim_buf_del_extmark(job.buf, anchors, job.anchor)
    end
    if job.done then
      job.done()
    end
  end
end, SLICE_MS, PAUSE_MS)

---@param row integer of the first of the lines
---@return lcursor.HighlightJob
local function push(buf, row, lines, block, done)
  local text, fence = vim.list_slice(lines, block.first + 1, block.last), block.fence
  if fence then
    text[1], text[#text] = "", fence.is_closed and "" or text[#text]
  end
  ---@type lcursor.HighlightJob
  local job = {
    buf = buf,
    anchor = api.nvim_buf_set_extmark(buf, anchors, row + block.first, 0, {
      right_gravity = false,
    }),
    rows = block.last - block.first,
    text = table.concat(text, "\n") .. "\n",
    fence = fence,
    slices = 1,
    done = done,
  }
  table.insert(jobs, job)
  return job
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
  work.start()
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
  work.start()
end

return M
