-- Draws open hunks: old lines marked where they stand, new ones as virtual lines below them, in the
-- colours of code; badges at their ends. What is on the screen comes first; no slice is longer than
-- a few milliseconds. Owns the extmarks, decides nothing.

local badge = require("lcursor.edit.badge")
local colours = require("lcursor.edit.colours")
local diff = require("lcursor.edit.diff")
local flush = require("lcursor.edit.flush")
local near = require("lcursor.edit.near")
local notify = require("lcursor.notify")
local stack = require("lcursor.edit.stack")
local virtual = require("lcursor.edit.virtual")

local M = {}

local api, uv = vim.api, vim.uv
local namespace = api.nvim_create_namespace("lcursor.edit")

local SLICE_NS = 4e6
local YOUNG_NS = 1.5e6 -- a slice that may still look for colours
local PAUSE_MS = 3
local FAR_PAUSE_MS = 8 -- where nothing is left to do that is on the screen
local FEW = 5 -- hunks that are drawn in colours at once
local AHEAD_LINES = 100 -- of a window: what is further away has no colours before it comes near
local MUCH = 60 -- new lines that have no colours yet when they are seen first
local PIECE_LINES = 25 -- virtual lines that are made at once
local PRIORITY = 150 -- above tree-sitter's

---@class (exact) lcursor.EditPiece a part of a hunk that is drawn at once
---@field block lcursor.EditBlock
---@field first integer row of `new`
---@field last integer
---@field is_drawn? boolean
---@field stack? lcursor.EditStack where its new lines stand
---@field place? integer in it

---@class (exact) lcursor.EditDrawn what is on the screen of a hunk
---@field buf integer
---@field state lcursor.HunkState
---@field pieces lcursor.EditPiece[]
---@field plain integer pieces that are drawn
---@field painted integer pieces that are drawn in colours
---@field is_close boolean whether it was on the screen, or near it: colours are wanted
---@field is_asked boolean whether they were asked for
---@field words table<integer, lcursor.EditBytes[]> by the row of `new`
---@field row integer where it was when it was drawn
---@field last integer
---@field at? integer row of its first mark then

---@type table<lcursor.Hunk, lcursor.EditDrawn>
local drawn = setmetatable({}, { __mode = "k" })
---@type table<integer, lcursor.Hunk[]> by the buffer
local shown = {}
---@type table<integer, lcursor.EditWindowOptions>
local looks = {}
local is_due = false

---@param buf integer
---@return lcursor.EditWindowOptions
local function look_of(buf)
  local width, is_wrapped = nil, false
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local info = vim.fn.getwininfo(win)[1]
    width = math.min(width or math.huge, info.width - info.textoff)
    is_wrapped = is_wrapped or vim.wo[win].wrap
  end
  local stops = vim.bo[buf].vartabstop
  return {
    tabstop = vim.bo[buf].tabstop,
    stops = stops == "" and {} or vim.tbl_map(tonumber, vim.split(stops, ",")),
    width = math.max(width or vim.o.columns, 10),
    is_wrapped = is_wrapped,
  }
end

---@param hunk lcursor.Hunk
---@param buf integer
---@param row integer
---@param col integer
---@param opts table
---@return integer
local function mark(hunk, buf, row, col, opts)
  opts.strict, opts.undo_restore = false, false
  local id = api.nvim_buf_set_extmark(buf, namespace, row, col, opts)
  if not opts.id then
    table.insert(hunk.marks, id)
    drawn[hunk].at = drawn[hunk].at or row
  end
  return id
end

---@param buf integer
---@param hunks lcursor.Hunk[]
---@return boolean whether they are many, and nothing else is drawn in the buffer
local function is_all(buf, hunks)
  if #hunks <= FEW or #hunks < #(shown[buf] or {}) then
    return false
  end
  local is_one = {}
  for _, hunk in ipairs(hunks) do
    is_one[hunk] = true
  end
  for hunk, now in pairs(drawn) do
    if now.buf == buf and not is_one[hunk] then
      return false
    end
  end
  return true
end

--- Take hunks off the screen.
---@param buf integer
---@param hunks lcursor.Hunk[]
function M.clear(buf, hunks)
  local is_loaded = api.nvim_buf_is_loaded(buf)
  if is_loaded and is_all(buf, hunks) then
    api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    is_loaded = false
  end
  for _, hunk in ipairs(hunks) do
    for _, id in ipairs(is_loaded and hunk.marks or {}) do
      api.nvim_buf_del_extmark(buf, namespace, id)
    end
    hunk.marks = {}
    drawn[hunk] = nil
  end
end

---@param hunk lcursor.Hunk
---@return lcursor.EditPiece[]
local function pieces_of(hunk)
  local pieces = {}
  for _, block in ipairs(hunk.blocks) do
    local first = block.new_first
    repeat
      local last = math.min(first + PIECE_LINES, block.new_last)
      table.insert(pieces, { block = block, first = first, last = last })
      first = last
    until first >= block.new_last
  end
  stack.build(pieces)
  return pieces
end

---@param buf integer
---@param hunk lcursor.Hunk
local function begin(buf, hunk)
  M.clear(buf, { hunk })
  local is_open = hunk.state == "open"
  if is_open and not hunk.blocks then
    hunk.blocks = diff.blocks(hunk.old, hunk.new, true)
  end
  drawn[hunk] = {
    buf = buf,
    state = hunk.state,
    pieces = is_open and pieces_of(hunk) or {},
    plain = 0,
    painted = 0,
    is_close = false,
    is_asked = false,
    words = {},
    row = hunk.first,
    last = hunk.last,
  }
  if is_open then
    return
  end
  local why = " conflict: these are not the lines that were to be changed"
  mark(hunk, buf, badge.row(buf, hunk), 0, {
    virt_text = { { why, "LCursorEditConflict" } },
    priority = PRIORITY,
  })
  if hunk.last > hunk.first then
    mark(hunk, buf, hunk.first, 0, {
      end_row = hunk.last,
      hl_group = "LCursorEditDisputed",
      hl_eol = true,
      priority = PRIORITY,
    })
  end
end

---@param buf integer
---@param hunk lcursor.Hunk
---@param block lcursor.EditBlock
local function mark_old(buf, hunk, block)
  mark(hunk, buf, hunk.first + block.first, 0, {
    end_row = hunk.first + block.last,
    hl_group = "LCursorEditRemoved",
    hl_eol = true,
    priority = PRIORITY,
  })
end

--- Mark words that are others in the old lines that go with the new ones of a piece, one to one;
--- keep those of the new ones.
---@param buf integer
---@param hunk lcursor.Hunk
---@param piece lcursor.EditPiece
local function mark_words(buf, hunk, piece)
  local by = piece.block.first - piece.block.new_first
  for row = piece.first, piece.last - 1 do
    local spans, words = diff.words(hunk.old[row + by + 1], hunk.new[row + 1])
    drawn[hunk].words[row] = words
    for _, span in ipairs(spans) do
      mark(hunk, buf, hunk.first + row + by, span[1], {
        end_col = span[2],
        hl_group = "LCursorEditRemovedWord",
        priority = PRIORITY + 1,
      })
    end
  end
end

--- Lines above the first one are not seen before the window is scrolled.
---@param buf integer
---@param count integer
local function uncover(buf, count)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    api.nvim_win_call(win, function()
      local view = vim.fn.winsaveview()
      if view.topline == 1 and view.topfill < count then
        local most = api.nvim_win_get_height(win) - vim.fn.winline()
        vim.fn.winrestview({ topfill = math.min(count, math.max(most, 1)) })
      end
    end)
  end
end

---@param buf integer
---@param hunk lcursor.Hunk
---@param piece lcursor.EditPiece
local function draw_piece(buf, hunk, piece)
  local block, now = piece.block, drawn[hunk]
  local count, new_count = block.last - block.first, block.new_last - block.new_first
  local is_new = not piece.is_drawn
  piece.is_drawn = true
  if is_new and piece.first == block.new_first and count > 0 then
    mark_old(buf, hunk, block)
  end
  if is_new and count == new_count then
    mark_words(buf, hunk, piece)
  end
  if piece.last == piece.first then
    return
  end
  local look = looks[buf]
  local lines = {}
  for row = piece.first, piece.last - 1 do
    local painted = hunk.colours and hunk.colours[row] or nil
    vim.list_extend(lines, virtual.line(hunk.new[row + 1], look, painted, now.words[row]))
  end
  local pile, all = assert(piece.stack), stack.put(piece, lines)
  if not all then
    return
  end
  local is_first = hunk.first + block.last < 1
  pile.mark = mark(hunk, buf, math.max(hunk.first + block.last - 1, 0), 0, {
    id = pile.mark,
    virt_lines = all,
    virt_lines_above = is_first,
    virt_lines_overflow = look.is_wrapped and "trunc" or "scroll",
  })
  if is_first and is_new then
    uncover(buf, #all)
  end
end

local slice

---@param pause_ms? integer
local function later(pause_ms)
  if not is_due then
    is_due = true
    vim.defer_fn(
      notify.guarded(function()
        is_due = false
        slice()
      end),
      pause_ms or PAUSE_MS
    )
  end
end

---@param buf integer
---@param hunk lcursor.Hunk
local function ask_colours(buf, hunk)
  drawn[hunk].is_asked = true
  if hunk.colours ~= nil then
    return
  end
  local is_now = true
  colours.of(buf, hunk, function(found)
    hunk.colours = found or false
    if not is_now then
      later()
    end
  end)
  is_now = false
end

---@param buf integer
---@param hunk lcursor.Hunk
local function do_one(buf, hunk)
  local now = drawn[hunk]
  if now.plain < #now.pieces then
    now.plain = now.plain + 1
    draw_piece(buf, hunk, now.pieces[now.plain])
    if hunk.colours then
      now.painted = now.plain
    end
  elseif now.is_close and not now.is_asked then
    ask_colours(buf, hunk)
  elseif hunk.colours then
    now.painted = now.painted + 1
    draw_piece(buf, hunk, now.pieces[now.painted])
  end
end

---@param hunk lcursor.Hunk
---@return boolean
local function is_unfinished(hunk)
  local now = drawn[hunk]
  if not now or hunk.state ~= "open" then
    return now == nil
  end
  return now.plain < #now.pieces
    or (now.is_close and not now.is_asked)
    or (hunk.colours and now.painted < #now.pieces or false)
end

---@class (exact) lcursor.EditDrawing
---@field buf integer
---@field hunk lcursor.Hunk
---@field is_close boolean

---@return lcursor.EditDrawing[] what is to be drawn, what is on the screen first
---@return integer count how many of them are
local function work()
  local seen, unseen = {}, {}
  for buf, hunks in pairs(shown) do
    if api.nvim_buf_is_loaded(buf) then
      local windows = near.windows(buf)
      for _, hunk in ipairs(hunks) do
        local is_close = near.is_within(hunk, windows, AHEAD_LINES)
        if drawn[hunk] and is_close then
          drawn[hunk].is_close = true
        end
        if is_unfinished(hunk) then
          local is_seen = is_close and near.is_within(hunk, windows, 0)
          table.insert(is_seen and seen or unseen, { buf = buf, hunk = hunk, is_close = is_close })
        end
      end
    else
      shown[buf] = nil
    end
  end
  local count = #seen
  return vim.list_extend(seen, unseen), count
end

---@param paint? "now"|"next" colours; nil: they are asked for where the slice has done little yet
slice = function(paint)
  local began = uv.hrtime()
  local jobs, seen = work()
  for i, job in ipairs(jobs) do
    if not looks[job.buf] then
      looks[job.buf] = look_of(job.buf)
    end
    if not drawn[job.hunk] then
      begin(job.buf, job.hunk)
      drawn[job.hunk].is_close = job.is_close
      if i <= seen then
        flush.soon()
      end
    end
    while is_unfinished(job.hunk) do
      if uv.hrtime() - began > SLICE_NS then
        return later(i > seen and FAR_PAUSE_MS or nil)
      end
      local now, spent = drawn[job.hunk], uv.hrtime() - began
      local is_late = not paint and not now.is_asked and spent > YOUNG_NS
      if now.plain == #now.pieces and (paint == "next" or is_late) then
        later()
        break
      end
      do_one(job.buf, job.hunk)
    end
  end
end

---@param buf integer
---@param hunk lcursor.Hunk
---@return boolean whether what is drawn of it is what it is now
local function is_right(buf, hunk)
  local now = drawn[hunk]
  if not now or now.state ~= hunk.state or now.buf ~= buf then
    return false
  end
  local id, by = hunk.marks[1], hunk.first - now.row
  local at = id and api.nvim_buf_get_extmark_by_id(buf, namespace, id, {})[1]
  return hunk.last - now.last == by and (not id or (at ~= nil and at - now.at == by))
end

--- The cursor of the current window is somewhere else.
---@param buf integer
function M.point(buf)
  if shown[buf] and buf == api.nvim_get_current_buf() then
    badge.point(buf, shown[buf])
  end
end

--- Draw the open hunks of a buffer, those on the screen at once.
---@param buf integer
---@param hunks lcursor.Hunk[] in the order of their rows
function M.update(buf, hunks)
  local is_there = {}
  for _, hunk in ipairs(hunks) do
    is_there[hunk] = true
    if not is_right(buf, hunk) then
      M.clear(buf, { hunk })
    end
  end
  local gone = vim.tbl_filter(function(hunk)
    return not is_there[hunk]
  end, shown[buf] or {})
  M.clear(buf, gone)
  shown[buf] = #hunks > 0 and hunks or nil
  badge.files(buf, hunks)
  if shown[buf] then
    slice((#hunks > FEW or #hunks[1].new > MUCH) and "next" or "now")
    M.point(buf)
  else
    looks[buf] = nil
    badge.leave(buf)
  end
end

--- Windows were scrolled or have another size: other hunks are on the screen, or lines are wrapped
--- elsewhere.
function M.seen()
  if not next(shown) then
    return
  end
  for buf, hunks in pairs(shown) do
    local look = looks[buf]
    if look and api.nvim_buf_is_loaded(buf) then
      looks[buf] = look_of(buf)
      if not vim.deep_equal(look, looks[buf]) then
        M.clear(buf, hunks)
      end
    end
  end
  M.point(api.nvim_get_current_buf()) -- its keys may fit now, or no longer
  later()
end

--- Whether all is drawn, with its colours.
---@return boolean
function M.is_done()
  for _, hunks in pairs(shown) do
    for _, hunk in ipairs(hunks) do
      local now = drawn[hunk]
      if is_unfinished(hunk) then
        return false
      elseif now and now.is_close and hunk.state == "open" and hunk.colours == nil then
        return false
      elseif now and hunk.colours and now.painted < #now.pieces then
        return false
      end
    end
  end
  return true
end

return M
