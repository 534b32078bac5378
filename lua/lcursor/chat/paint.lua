-- Colours a chat as treesitter would, block by block, each block once. Treesitter's own highlighter
-- goes over all of a markdown buffer at each change: a stream into a long chat takes most of the
-- main thread then. Owns the marks of the colours; a parser that is not there is done without.

local notify = require("lcursor.notify")
local words = require("lcursor.chat.words")

local M = {}

local api, uv = vim.api, vim.uv
local namespace = api.nvim_create_namespace("lcursor.chat.paint")
local anchors = api.nvim_create_namespace("lcursor.chat.paint.anchors")

local SHARE = 50 -- an open block is painted again when that many times its cost has passed
local LEAST_MS = 4 -- what painting is taken to cost at least
local OPEN_ROWS = 200 -- of a longer one the colours come when it is whole
local AT_ONCE_ROWS = 30 -- more are parsed while others have their turn
local PIECE_ROWS = 200 -- that are one text for the parser: to end one is a single call
local LINE_NS = 0.1e6 -- about what that takes for one line
local PART_ROWS = 30 -- that are parsed, and lose their old colours, at a time
local SLICE_NS = 2e6
local PAUSE_MS = 5

local SKIPPED = { spell = true, nospell = true, conceal = true, none = true }

---@type boolean?
local is_there

---@return boolean whether there is a parser for markdown
function M.is_there()
  if is_there == nil then
    is_there = vim.treesitter.language.add("markdown") == true
      and vim.treesitter.query.get("markdown", "highlights") ~= nil
  end
  return is_there
end

--- Let no other highlighter run in the buffer, whoever started it for all of markdown.
---@param buf integer
function M.take(buf)
  if not M.is_there() then
    return
  end
  if vim.treesitter.highlighter.active[buf] then
    vim.treesitter.stop(buf)
  end
  vim.bo[buf].syntax = ""
end

---@class lcursor.ChatPaint some rows that are being painted
---@field buf integer
---@field anchor integer extmark where they begin: rows move
---@field at integer row where that is now
---@field lead integer 1 where the text begins with a line that does not stand in the buffer
---@field text string
---@field count integer of rows
---@field parser vim.treesitter.LanguageTree
---@field row integer of the text, that the part begins at
---@field work? fun(...): boolean? paints the part for a while; true when that is done
---@field ends_ns integer when it lets others have their turn
---@field spent_ns integer
---@field done fun(ms: number)

--- Let others have their turn, if it is time.
---@param job lcursor.ChatPaint
local function rest(job)
  if uv.hrtime() > job.ends_ns then
    coroutine.yield()
  end
end

---@param job lcursor.ChatPaint
---@param tree TSTree
---@param language string
---@param from integer row of the text
---@param to integer the row behind
local function colour(job, tree, language, from, to)
  local query = vim.treesitter.query.get(language, "highlights")
  if not query then
    return
  end
  rest(job) -- the first time it was read and compiled, which takes longer than all else
  for id, node, metadata in query:iter_captures(tree:root(), job.text, from, to) do
    local name = query.captures[id]
    local range = vim.treesitter.get_range(node, job.text, metadata[id])
    if range[1] < job.lead and range[4] > job.lead and from == job.lead then
      range[1], range[2] = job.lead, 0 -- it began with the code, of which this is a later part
    end
    local is_here = range[1] >= from and range[1] < to
    if is_here and not SKIPPED[name] and name:sub(1, 1) ~= "_" then
      api.nvim_buf_set_extmark(job.buf, namespace, job.at + range[1], range[2], {
        end_row = job.at + range[4],
        end_col = range[5],
        hl_group = ("@%s.%s"):format(name, language),
        priority = (tonumber(metadata.priority) or vim.hl.priorities.treesitter),
        strict = false,
        undo_restore = false,
      })
    end
    rest(job)
  end
end

--- Colour one part anew.
---@param job lcursor.ChatPaint
---@param from integer row of the text
---@param to integer the row behind
---@return boolean
local function paint(job, from, to)
  for row = from, to - 1 do
    api.nvim_buf_clear_namespace(job.buf, namespace, job.at + row, job.at + row + 1)
    rest(job)
  end
  local trees = {}
  job.parser:for_each_tree(function(tree, language_tree)
    local first, _, last = tree:root():range()
    if first < to and last >= from then
      table.insert(trees, { tree = tree, language = language_tree:lang() })
    end
  end)
  for _, one in ipairs(trees) do
    rest(job)
    -- A query that does not fit its parser throws: then there are fewer colours.
    pcall(colour, job, one.tree, one.language, from, to)
  end
  return true
end

---@param job lcursor.ChatPaint
---@param fn fun(job: lcursor.ChatPaint)
local function later(job, fn)
  vim.defer_fn(
    notify.guarded(function()
      fn(job)
    end),
    PAUSE_MS
  )
end

local advance ---@type fun(job: lcursor.ChatPaint)

--- Paint for a moment, and go on later.
---@param job lcursor.ChatPaint
local function slice(job)
  local began = uv.hrtime()
  local at = api.nvim_buf_is_loaded(job.buf)
    and api.nvim_buf_get_extmark_by_id(job.buf, anchors, job.anchor, {})[1]
  if not at then
    return job.done(job.spent_ns / 1e6)
  end
  local to = math.min(job.row + PART_ROWS, job.count)
  job.at, job.ends_ns = at - job.lead, began + SLICE_NS
  job.work = job.work or coroutine.wrap(paint)
  local is_done = job.work(job, job.row, to)
  job.spent_ns = job.spent_ns + (uv.hrtime() - began)
  if not is_done then
    return later(job, slice)
  elseif to < job.count then
    job.row, job.work = to, nil
    return later(job, advance)
  end
  api.nvim_buf_del_extmark(job.buf, anchors, job.anchor)
  job.done(job.spent_ns / 1e6)
end

--- Parse the next part, with others having their turn meanwhile, and paint it. Part by part, since
--- Neovim looks for other languages in all of what it is told to parse at one go.
---@param job lcursor.ChatPaint
function advance(job)
  local to = math.min(job.row + PART_ROWS, job.count)
  job.parser:parse({ job.row, to }, function(err)
    if err then
      return job.done(0)
    end
    later(job, slice)
  end)
end

---@param buf integer
---@param anchor integer where they begin
---@param lines string[]
---@param opening? string the line that opened the code that they are in
---@param done fun(ms: number)
local function piece(buf, anchor, lines, opening, done)
  local began, lead = uv.hrtime(), opening and 1 or 0
  local text = (opening and opening .. "\n" or "") .. table.concat(lines, "\n") .. "\n"
  local ok, parser = pcall(vim.treesitter.get_string_parser, text, "markdown")
  if not ok then
    return done(0)
  end
  ---@type lcursor.ChatPaint
  local job = {
    buf = buf,
    anchor = anchor,
    text = text,
    count = #lines + lead,
    parser = parser,
    at = 0,
    lead = lead,
    row = lead,
    ends_ns = 0,
    spent_ns = 0,
    done = done,
  }
  if #lines <= AT_ONCE_ROWS then
    ok = pcall(parser.parse, parser, true)
    job.spent_ns = uv.hrtime() - began
    if not ok then
      return done(0)
    end
    return slice(job)
  end
  job.spent_ns = #lines * LINE_NS -- others have their turn meanwhile: not all of the time is ours
  advance(job)
end

--- Paint some rows anew; where they are many, a little later.
---@param buf integer
---@param first integer
---@param last integer the row behind
---@param done? fun(ms: number) what it took in all
---@return integer? anchor extmark without which it ends
function M.rows(buf, first, last, done)
  done = done or function() end
  if last <= first or not M.is_there() then
    done(0)
    return nil
  end
  local lines = api.nvim_buf_get_lines(buf, first, last, false)
  local pieces = words.pieces(lines, PIECE_ROWS)
  local marks = vim.tbl_map(function(one)
    local opts = { right_gravity = false }
    return api.nvim_buf_set_extmark(buf, anchors, first + one.first, 0, opts)
  end, pieces)
  local spent_ms, at = 0, 0
  local function next_one(ms)
    spent_ms, at = spent_ms + ms, at + 1
    local one = pieces[at]
    if not one or not api.nvim_buf_is_loaded(buf) then
      return done(spent_ms)
    end
    piece(buf, marks[at], vim.list_slice(lines, one.first + 1, one.last), one.opening, next_one)
  end
  next_one(0)
  return marks[1]
end

--- Say where the block begins that is not whole yet.
---@param stream lcursor.ChatStream
---@param row integer
function M.open(stream, row)
  local opts = { right_gravity = false }
  stream.open_mark = api.nvim_buf_set_extmark(stream.session.buf, anchors, row, 0, opts)
end

---@param stream lcursor.ChatStream
---@param row integer
local function reopen(stream, row)
  api.nvim_buf_set_extmark(stream.session.buf, anchors, row, 0, {
    id = stream.open_mark,
    right_gravity = false,
  })
end

--- The stream has written: paint the blocks that are whole, and the open one now and then.
---@param stream lcursor.ChatStream
---@param row integer where it goes on
function M.follow(stream, row)
  if not M.is_there() then
    return
  end
  local buf = stream.session.buf
  local mark = api.nvim_buf_get_extmark_by_id(buf, anchors, stream.open_mark or 0, {})
  local first = mark[1] or row
  if row > first then
    local lines = api.nvim_buf_get_lines(buf, first, row + 1, false)
    local whole = words.whole(lines)
    if whole > 0 then
      if stream.is_painting and stream.paint_mark then
        api.nvim_buf_del_extmark(buf, anchors, stream.paint_mark)
      end
      M.rows(buf, first, first + whole)
      first = first + whole
      stream.painted_ms, stream.paint_ms = 0, 0
      reopen(stream, first)
    end
  end
  local due = stream.painted_ms + stream.paint_ms * SHARE
  if stream.is_painting or uv.now() < due or row - first > OPEN_ROWS then
    return
  end
  stream.is_painting = true
  stream.paint_mark = M.rows(buf, first, row + 1, function(ms)
    stream.is_painting = false
    stream.painted_ms, stream.paint_ms = uv.now(), math.max(ms, LEAST_MS)
  end)
end

--- The stream has ended: paint what is left of it.
---@param stream lcursor.ChatStream
---@param row integer its last
function M.finish(stream, row)
  local buf = stream.session.buf
  local mark = api.nvim_buf_get_extmark_by_id(buf, anchors, stream.open_mark or 0, {})
  if mark[1] then
    M.rows(buf, mark[1], row + 1)
  end
end

---@type table<integer, integer> by the buffer: number of the newest queue
local queues = {}

--- Paint all of a buffer, from its end on, without holding anyone up.
---@param buf integer
function M.all(buf)
  if not M.is_there() then
    return
  end
  M.take(buf)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  api.nvim_buf_clear_namespace(buf, anchors, 0, -1)
  queues[buf] = (queues[buf] or 0) + 1
  local number = queues[buf]
  local marks = {}
  local blocks = words.blocks(api.nvim_buf_get_lines(buf, 0, -1, false))
  for i, block in ipairs(blocks) do
    marks[i] = api.nvim_buf_set_extmark(buf, anchors, block.first, 0, { right_gravity = false })
  end
  local function step()
    local block, mark = table.remove(blocks), table.remove(marks)
    if not block or queues[buf] ~= number or not api.nvim_buf_is_loaded(buf) then
      return
    end
    local first = api.nvim_buf_get_extmark_by_id(buf, anchors, mark, {})[1]
    if not first then
      return
    end
    api.nvim_buf_del_extmark(buf, anchors, mark)
    M.rows(buf, first, first + block.last - block.first, function()
      vim.defer_fn(notify.guarded(step), PAUSE_MS)
    end)
  end
  step()
end

return M
