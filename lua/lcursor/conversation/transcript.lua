-- Markdown buffers into which a model writes above the user's draft: of chats and of agents. Their
-- filetype and folds, changes without undo, and text that is written while it comes: what arrives
-- within an interval is one write, so that a fast model costs no more than a slow one. After each
-- write, tree-sitter works for 5 ms in a buffer of 100 lines and for 20 ms in one of 4000 (0.11.4),
-- so the interval grows with the buffer; the agents' longer buffers are highlighted by
-- `syntax/lcursor_agent.vim`. Moves no cursor and no view.

local log = require("lcursor.ui.log")
local menu = require("lcursor.ui.menu")
local notify = require("lcursor.ui.notify")
local window = require("lcursor.ui.window")

local M = {}

local api, uv = vim.api, vim.uv
local folds = api.nvim_create_namespace("lcursor.folds")
local tails = api.nvim_create_namespace("lcursor.tails")
local INTERVAL_MS, INTERVAL_MS_PER_LINE = 150, 0.1
local RETRY_MS = 40

--- Create a buffer that stays when no window shows it.
---@param name string in lcursor://
---@return integer buf
function M.create(name)
  local buf = window.create(name)
  vim.bo[buf].bufhidden, vim.bo[buf].swapfile = "hide", false
  return buf
end

--- Set the filetype. It is not `markdown`, so that nothing that is meant for files applies; the
--- options are the same. Nor is the language registered for it: plugins would take what a model
--- wrote for a document of the user, and fetch its images.
---@param buf integer
---@param filetype string
---@param is_parsed boolean whether tree-sitter highlights it
function M.set_filetype(buf, filetype, is_parsed)
  local bo = vim.bo[buf]
  local is_highlighted = not is_parsed or pcall(vim.treesitter.start, buf, "markdown")
  bo.comments, bo.commentstring = "fb:*,fb:-,fb:+,n:>", "<!-- %s -->"
  bo.formatoptions, bo.formatlistpat = "tcqjln", [[^\s*\d\+\.\s\+\|^\s*[-*+]\s\+]]
  bo.filetype = filetype
  if not is_highlighted then
    bo.syntax = "markdown"
  end
end

--- Set the options of a window while it shows such a buffer.
---@param win integer
---@param foldtext string
function M.set_window_options(win, foldtext)
  local wo = vim.wo[win][0]
  wo.wrap, wo.linebreak, wo.breakindent = true, true, true
  wo.number, wo.relativenumber, wo.signcolumn, wo.foldcolumn = false, false, "no", "0"
  wo.foldmethod, wo.foldenable, wo.foldlevel = "manual", true, 0
  wo.foldtext = foldtext
  wo.fillchars = (vim.go.fillchars ~= "" and vim.go.fillchars .. "," or "") .. "fold: "
  wo.conceallevel = 0 -- with 2, long answers are slow to draw
  wo.colorcolumn, wo.scrollbind, wo.cursorbind = "", false, false
end

--- Change the buffer without undo: `u` neither reverts this nor anything before it.
---@param buf integer
---@param change fun(buf: integer)
function M.without_undo(buf, change)
  local bo = vim.bo[buf]
  local levels, modifiable = bo.undolevels, bo.modifiable
  bo.undolevels, bo.modifiable = -1, true
  local ok, err = pcall(change, buf)
  bo.undolevels, bo.modifiable, bo.modified = levels, modifiable, false
  if not ok then
    error(err, 0)
  end
end

local function fold_in(win, first, last)
  api.nvim_win_call(win, function()
    if vim.wo.foldmethod == "manual" and last > first then
      local view = vim.fn.winsaveview()
      vim.cmd(("silent! %d,%dfold"):format(first + 1, last + 1))
      vim.fn.winrestview(view)
    end
  end)
end

--- Fold some rows. Folds are manual: an expression would be evaluated for each line of a stream.
---@param buf integer
---@param first integer
---@param last integer
function M.fold(buf, first, last)
  api.nvim_buf_set_extmark(buf, folds, first, 0, { end_row = last, strict = false })
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    fold_in(win, first, last)
  end
end

--- Remove the folds of all rows, or only those that begin in some rows.
---@param buf integer
---@param first? integer
---@param last? integer after the last
function M.unfold(buf, first, last)
  local range = first and { { first, 0 }, { last - 1, -1 } } or { 0, -1 }
  local marks = api.nvim_buf_get_extmarks(buf, folds, range[1], range[2], {})
  for _, mark in ipairs(marks) do
    api.nvim_buf_del_extmark(buf, folds, mark[1])
  end
  for _, win in ipairs((not first or #marks > 0) and vim.fn.win_findbuf(buf) or {}) do
    api.nvim_win_call(win, function()
      local view = vim.fn.winsaveview()
      for _, mark in ipairs(first and marks or {}) do
        vim.cmd(("silent! keepjumps normal! %dGzD"):format(mark[2] + 1))
      end
      if not first then
        vim.cmd("silent! normal! zE")
      end
      vim.fn.winrestview(view)
    end)
  end
end

--- Make the folds of a buffer in a window that begins to show it.
---@param buf integer
---@param win integer
function M.fold_window(buf, win)
  api.nvim_win_call(win, function()
    vim.cmd("silent! normal! zE")
  end)
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, folds, 0, -1, { details = true })) do
    fold_in(win, mark[2], mark[4].end_row)
  end
end

--- Move the end to the bottom of the windows that show it with the cursor there: a change that made
--- folds may have left them half empty.
---@param buf integer
function M.show_end(buf)
  local last = api.nvim_buf_line_count(buf)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local cursor = api.nvim_win_get_cursor(win)
    if vim.fn.line("w0", win) > 1 and cursor[1] == last then
      api.nvim_win_call(win, function()
        vim.cmd("normal! zb")
      end)
      api.nvim_win_set_cursor(win, cursor) -- `:normal` moves it left in Insert mode
    end
  end
end

--- Whether a change now would close a completion menu.
---@param buf integer
---@return boolean
function M.is_completing(buf)
  return buf == api.nvim_get_current_buf() and menu.is_visible()
end

---@class (exact) lcursor.TextStream writes a text into a buffer while it comes
---@field buf integer
---@field mark integer extmark where it continues
---@field change fun(change: fun(buf: integer)) how the buffer is changed
---@field pending string text to be written
---@field is_scheduled boolean a write is scheduled
---@field last_ms integer vim.uv.now() of the last write

--- Begin to write at an empty line.
---@param buf integer
---@param row integer
---@param change fun(change: fun(buf: integer))
---@return lcursor.TextStream
function M.stream(buf, row, change)
  local mark = api.nvim_buf_set_extmark(buf, tails, row, 0, {})
  ---@type lcursor.TextStream
  local stream = { buf = buf, mark = mark, change = change, pending = "", last_ms = 0 }
  stream.is_scheduled = false
  return stream
end

--- Return where a stream continues.
---@param stream lcursor.TextStream
---@return integer? row
---@return integer? col
function M.tail(stream)
  local mark = api.nvim_buf_get_extmark_by_id(stream.buf, tails, stream.mark, {})
  return mark[1], mark[2]
end

--- Write what is pending, if that is possible now.
---@param stream lcursor.TextStream
---@return boolean whether all of it is written
function M.write(stream)
  local buf, text = stream.buf, stream.pending
  if text == "" or not api.nvim_buf_is_loaded(buf) then
    return true
  end
  local row, col = M.tail(stream)
  if not row or M.is_completing(buf) then
    return false
  end
  local ok, err = pcall(stream.change, function()
    api.nvim_buf_set_text(buf, row, col, row, col, vim.split(text, "\n", { plain = true }))
  end)
  if not ok then
    log.debug("%s: cannot write now: %s", api.nvim_buf_get_name(buf), err)
    return false
  end
  stream.pending = ""
  return true
end

--- Write now, or later if that is not possible.
---@param stream lcursor.TextStream
---@param wait_ms? integer
function M.flush(stream, wait_ms)
  if not wait_ms then
    stream.last_ms = uv.now()
    wait_ms = not M.write(stream) and RETRY_MS or nil
  end
  if wait_ms and not stream.is_scheduled then
    stream.is_scheduled = true
    notify.later(wait_ms, function()
      stream.is_scheduled = false
      M.flush(stream)
    end)
  end
end

--- Add a text, which is written when the interval is over.
---@param stream lcursor.TextStream
---@param text string
function M.add(stream, text)
  stream.pending = stream.pending .. text
  local is_parsed = vim.treesitter.highlighter.active[stream.buf] ~= nil
  local lines = is_parsed and api.nvim_buf_line_count(stream.buf) or 0
  local due_ms = stream.last_ms + INTERVAL_MS + INTERVAL_MS_PER_LINE * lines - uv.now()
  M.flush(stream, due_ms > 0 and math.ceil(due_ms) or nil)
end

return M
