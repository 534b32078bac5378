-- Draws open hunks: old lines are highlighted where they stand, new ones are virtual lines below
-- them, in the colors of code. What is on the screen comes first. Long work is done in slices, so
-- that a proposal of 500 lines does not hold the editor up.

local diff = require("lcursor.text.diff")
local hints = require("lcursor.edit.hints")
local log = require("lcursor.ui.log")
local notes = require("lcursor.ui.notes")
local notify = require("lcursor.ui.notify")
local slices = require("lcursor.ui.slices")
local syntax = require("lcursor.edit.syntax")
local virt_lines = require("lcursor.ui.virt_lines")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit")

local SLICE_MS, PAUSE_MS = 4, 3
local PREPARE_MS = 60 -- after the question was sent
local REDRAW_MS = 8
local NEAR_LINES = 100 -- of a window; hunks further away get their colors when they come near
local PRIORITY = 150 -- above treesitter's

---@class (exact) lcursor.EditDrawn what is drawn of a hunk
---@field buf integer
---@field state lcursor.HunkState
---@field new string[]
---@field first integer where it was when it was drawn
---@field last integer
---@field row? integer of its first mark then
---@field marks integer[]
---@field blocks lcursor.EditBlock[]
---@field words table<integer, { [1]: lcursor.EditBytes[], [2]: lcursor.EditBytes[] }> by new row
---@field is_plain boolean drawn without colors
---@field colors? lcursor.EditColors|false nil: not asked for yet

---@type table<lcursor.Hunk, lcursor.EditDrawn>
local drawn = setmetatable({}, { __mode = "k" })
---@type table<integer, lcursor.Hunk[]> by buffer
local shown = {}
---@type table<integer, lcursor.EditWindowOptions>
local options = {}
---@type table<integer, true> buffers whose parser is to be loaded
local unprepared = {}
---@type table<integer, true> buffers in which nothing is drawn
local hidden = {}
local work ---@type lcursor.Slices

local function erase(buf, hunk)
  local view = drawn[hunk]
  drawn[hunk] = nil
  for _, id in ipairs(view and api.nvim_buf_is_loaded(buf) and view.marks or {}) do
    api.nvim_buf_del_extmark(buf, namespace, id)
  end
end

---@param opts vim.api.keyset.set_extmark
local function mark(view, row, col, opts)
  opts.strict, opts.undo_restore = false, false
  opts.priority = opts.priority or PRIORITY
  table.insert(view.marks, api.nvim_buf_set_extmark(view.buf, namespace, row, col, opts))
  view.row = view.row or row
end

local function mark_rows(view, first, last, group)
  if last > first then
    mark(view, first, 0, { end_row = last, hl_group = group, hl_eol = true })
  end
end

---@return lcursor.EditDrawn
local function new_view(buf, hunk)
  local is_open = hunk.state == "open"
  ---@type lcursor.EditDrawn
  local view = {
    buf = buf,
    state = hunk.state,
    new = hunk.new,
    first = hunk.first,
    last = hunk.last,
    marks = {},
    blocks = is_open and diff.blocks(hunk.old, hunk.new, true) or {},
    words = {},
    is_plain = false,
  }
  if not is_open then
    view.colors = false
  end
  return view
end

local function draw_conflict(view, hunk)
  local text = { { " conflict: the original lines were modified", "LCursorEditConflict" } }
  local row = hints.row(view.buf, hunk)
  view.row = row
  local opts = { priority = PRIORITY }
  local id = notes.set(view.buf, namespace, row, text, opts)
  table.insert(view.marks, id)
  mark_rows(view, hunk.first, hunk.last, "LCursorEditDisputed")
end

--- Compute the virtual lines of a hunk. All that stand below the same row are for one extmark:
--- Neovim keeps no order among several at one place.
---@return { row: integer, rows: lcursor.EditChunk[][] }[] rows of the hunk below which they stand
local function virtual_lines(view, hunk, opts)
  local stacks = {}
  for _, block in ipairs(view.blocks) do
    local is_pair = block.last - block.first == block.new_last - block.new_first
    local by = block.first - block.new_first
    local stack = stacks[#stacks]
    if not stack or stack.row ~= block.last then
      stack = { row = block.last, rows = {} }
      table.insert(stacks, stack)
    end
    for row = block.new_first, block.new_last - 1 do
      if is_pair and not view.words[row] then
        view.words[row] = { diff.words(hunk.old[row + by + 1], hunk.new[row + 1]) }
      end
      local words = view.words[row] and view.words[row][2]
      local colors = view.colors and view.colors[row] or nil
      local line = hunk.new[row + 1]
      vim.list_extend(stack.rows, virt_lines.rows(line, opts, colors, words))
      work.pause()
    end
  end
  return stacks
end

---@param stacks { row: integer, rows: lcursor.EditChunk[][] }[]
local function draw_open(view, hunk, opts, stacks)
  for _, block in ipairs(view.blocks) do
    local first, last = hunk.first + block.first, hunk.first + block.last
    mark_rows(view, first, last, "LCursorEditRemoved")
    for row = first, opts.has_signs and last - 1 or -1 do
      local sign = { "- ", "LCursorEditRemoved" }
      mark(view, row, 0, { virt_text = { sign }, virt_text_pos = "inline" })
    end
    for row = block.new_first, block.new_last - 1 do
      for _, span in ipairs(view.words[row] and view.words[row][1] or {}) do
        mark(view, first + row - block.new_first, span[1], {
          end_col = span[2],
          hl_group = "LCursorEditRemovedWord",
          priority = PRIORITY + 1,
        })
      end
    end
  end
  for _, stack in ipairs(stacks) do
    if #stack.rows > 0 then
      local is_above = hunk.first + stack.row < 1
      mark(view, math.max(hunk.first + stack.row - 1, 0), 0, {
        virt_lines = stack.rows,
        virt_lines_above = is_above,
        virt_lines_overflow = opts.is_wrapped and "trunc" or "scroll",
      })
      if is_above and not view.colors then
        notes.reveal_top(view.buf)
      end
    end
  end
end

--- Draw a hunk without its new lines: no test needs it.
local function draw_folded(view, hunk)
  local words = ("−%d +%d lines that no test needs"):format(#hunk.old, #hunk.new)
  local chunks = { { " ▸ " .. words, "LCursorEditBadge" } }
  if hints.diff_key(view.buf) then
    table.insert(chunks, { "  " .. hints.diff_key(view.buf), "LCursorEditKey" })
    table.insert(chunks, { " compare", "LCursorEditBadge" })
  end
  view.row = hints.row(view.buf, hunk)
  table.insert(
    view.marks,
    notes.set(view.buf, namespace, view.row, chunks, { priority = PRIORITY })
  )
  mark_rows(view, hunk.first, hunk.last, "LCursorEditDisputed")
end

--- Draw a hunk, or draw it again with its colors.
local function draw(buf, hunk)
  local opts = options[buf] or virt_lines.options(buf)
  options[buf] = opts
  local view = drawn[hunk] or new_view(buf, hunk)
  drawn[hunk] = view
  local stacks = hunk.is_unneeded and {} or virtual_lines(view, hunk, opts)
  if drawn[hunk] ~= view or not api.nvim_buf_is_loaded(buf) then
    return
  end
  view.is_plain = true
  erase(buf, hunk)
  drawn[hunk] = view
  view.marks, view.row, view.first, view.last = {}, nil, hunk.first, hunk.last
  if view.state == "open" and hunk.is_unneeded then
    draw_folded(view, hunk)
  elseif view.state == "open" then
    draw_open(view, hunk, opts, stacks)
  else
    draw_conflict(view, hunk)
  end
end

local is_redraw_due = false

--- Show soon what was drawn: Neovim draws only when nothing is scheduled, and a parser that reads a
--- long file schedules its next slice for a third of a second.
local function redraw_soon()
  if is_redraw_due then
    return
  end
  is_redraw_due = true
  notify.later(REDRAW_MS, function()
    is_redraw_due = false
    local mode = api.nvim_get_mode()
    if not mode.blocking and mode.mode:find("^[niRvV\22]") then
      vim.cmd.redraw()
    end
  end)
end

---@class (exact) lcursor.EditDrawing a job of the coroutine
---@field buf integer
---@field hunk? lcursor.Hunk nil: load the parser of the buffer
---@field is_visible? boolean

--- Return what to draw next: first what is on the screen, then its colors, then the rest.
---@return lcursor.EditDrawing?
local function next_job()
  local near, far
  for buf, hunks in pairs(shown) do
    local windows = vim.tbl_map(function(win)
      return vim.fn.getwininfo(win)[1]
    end, vim.fn.win_findbuf(buf))
    local function is_within(hunk, margin)
      for _, info in ipairs(windows) do
        if hunk.first <= info.botline + margin and hunk.last >= info.topline - 1 - margin then
          return true
        end
      end
      return false
    end
    for _, hunk in ipairs(hunks) do
      local view = drawn[hunk]
      if not view or not view.is_plain then
        if is_within(hunk, 0) then
          return { buf = buf, hunk = hunk, is_visible = true }
        end
        far = far or { buf = buf, hunk = hunk }
      elseif not near and view.colors == nil and is_within(hunk, NEAR_LINES) then
        near = { buf = buf, hunk = hunk }
      end
    end
  end
  local unprepared_buf = next(unprepared)
  return near or unprepared_buf and { buf = unprepared_buf } or far
end

local function run_job(job)
  local buf, hunk = job.buf, job.hunk
  local view = hunk and drawn[hunk]
  if not api.nvim_buf_is_loaded(buf) then
    shown[buf], unprepared[buf] = nil, nil
  elseif not hunk then
    unprepared[buf] = nil
    syntax.prepare(buf, work)
  elseif view and view.is_plain then
    local ok, colors = pcall(syntax.colors, buf, hunk, work)
    view.colors = ok and colors or false
    if not ok then
      log.warn("no colors for %s: %s", vim.bo[buf].filetype, colors)
    end
    if view.colors and drawn[hunk] == view then
      draw(buf, hunk)
    end
  else
    draw(buf, hunk)
    if job.is_visible then
      redraw_soon()
    end
  end
end

work = slices.new(function()
  for job in next_job do
    run_job(job)
    work.pause()
  end
end, SLICE_MS, PAUSE_MS)

---@return boolean whether what is drawn of it is what it is now
local function is_right(buf, hunk)
  local view = drawn[hunk]
  if not view or view.state ~= hunk.state or view.buf ~= buf or view.new ~= hunk.new then
    return false
  end
  local id, by = view.marks[1], hunk.first - view.first
  local row = id and api.nvim_buf_get_extmark_by_id(buf, namespace, id, {})[1]
  return hunk.last - view.last == by and (not id or (row ~= nil and row - view.row == by))
end

--- Draw the open hunks of a buffer, those on the screen at once.
---@param buf integer
---@param hunks lcursor.Hunk[] in the order of their rows
function M.update(buf, hunks)
  hunks = hidden[buf] and {} or hunks
  local is_shown = {}
  for _, hunk in ipairs(hunks) do
    is_shown[hunk] = true
    if not is_right(buf, hunk) then
      erase(buf, hunk)
    end
  end
  for _, hunk in ipairs(shown[buf] or {}) do
    if not is_shown[hunk] then
      erase(buf, hunk)
    end
  end
  shown[buf] = #hunks > 0 and hunks or nil
  if api.nvim_buf_is_loaded(buf) then
    hints.show_checks(buf, hunks)
  end
  if not shown[buf] then
    options[buf] = nil
    return hints.clear(buf)
  end
  work.start()
  M.point(buf)
end

--- Draw nothing in a buffer, or draw again, from the next update on.
---@param buf integer
---@param is_hidden boolean
function M.set_hidden(buf, is_hidden)
  hidden[buf] = is_hidden or nil
end

--- Load what the colors of a buffer need, while a model writes.
---@param buf integer
function M.prepare(buf)
  unprepared[buf] = true
  work.later(PREPARE_MS)
end

--- Show the keys at the cursor.
---@param buf integer
function M.point(buf)
  if shown[buf] and buf == api.nvim_get_current_buf() then
    hints.show(buf, shown[buf])
  end
end

--- Draw again after windows were scrolled or resized.
function M.refresh()
  if not next(shown) then
    return
  end
  for buf, hunks in pairs(shown) do
    if options[buf] and api.nvim_buf_is_loaded(buf) then
      local now = virt_lines.options(buf)
      if not vim.deep_equal(options[buf], now) then
        options[buf] = now
        for _, hunk in ipairs(hunks) do
          erase(buf, hunk)
        end
      end
    end
  end
  M.point(api.nvim_get_current_buf()) -- its keys may fit now, or no longer
  work.later(PAUSE_MS)
end

--- Whether everything is drawn, with its colors.
---@return boolean
function M.is_done()
  return work.is_idle() and not next_job()
end

--- Draw again when windows or the cursor change.
function M.start()
  local on = notify.autocmds("edit.render")
  on({ "VimResized", "WinResized", "BufWinEnter", "WinScrolled" }, M.refresh)
  on("CursorMoved", function(event)
    M.point(event.buf)
  end)
end

return M
