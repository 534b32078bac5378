-- Notes next to the lines of a buffer, which are never cut off: at the end of a line where they
-- fit, else in rows of their own, wrapped.

local wrap = require("lcursor.text.wrap")

local M = {}

local api = vim.api
local INDENT = 2 -- of a wrapped note

---@type table<integer, true> namespaces of short-lived notes: others make no room for them
M.transient = {}

--- Return how wide the text is in the narrowest window that shows a buffer.
---@param buf integer
---@return integer cells
function M.width(buf)
  local width = math.huge
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    width = math.min(width, api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff)
  end
  return math.max(width == math.huge and vim.o.columns or width, 2)
end

--- Return whether a note fits between the end of a line, with the notes that are there, and the
--- edge of each window that shows it.
---@param buf integer
---@param row integer
---@param chunks lcursor.Chunk[]
---@param namespace integer whose notes do not count
---@return boolean
function M.fits(buf, row, chunks, namespace)
  local wide = wrap.width(chunks) + 1
  local range = { { row, 0 }, { row, -1 }, { details = true } }
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, -1, unpack(range))) do
    local text = mark[4].virt_text_pos == "eol" and mark[4].virt_text
    if text and mark[4].ns_id ~= namespace and not M.transient[mark[4].ns_id] then
      wide = wide + wrap.width(text) + 1
    end
  end
  return vim.iter(vim.fn.win_findbuf(buf)):all(function(win)
    local info = vim.fn.getwininfo(win)[1]
    local width = math.max(info.width - info.textoff, 1)
    local used = vim.fn.virtcol({ row + 1, "$" }, 0, win) - 1
    used = vim.wo[win].wrap and used % width or used - info.leftcol
    return used + wide <= width
  end)
end

--- Scroll the windows of a buffer so that virtual lines above its first line are visible.
---@param buf integer
function M.reveal_top(buf)
  local count = 0
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, -1, 0, { 0, -1 }, { details = true })) do
    count = count + (mark[4].virt_lines_above and #mark[4].virt_lines or 0)
  end
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    api.nvim_win_call(win, function()
      local view = vim.fn.winsaveview()
      if view.topline == 1 and view.topfill < count then
        local room = api.nvim_win_get_height(win) - vim.fn.winline()
        vim.fn.winrestview({ topfill = math.min(count, math.max(room, 1)) })
      end
    end)
  end
end

--- Show a note at the end of a line, or where it does not fit above it, or below it with
--- `virt_lines_above = false`.
---@param buf integer
---@param namespace integer
---@param row integer
---@param chunks lcursor.Chunk[]
---@param opts? vim.api.keyset.set_extmark
---@param is_apart? boolean in rows of its own, even where it fits
---@return integer id of its extmark
---@return boolean is_apart
function M.set(buf, namespace, row, chunks, opts, is_apart)
  opts = vim.tbl_extend("keep", opts or {}, { strict = false, undo_restore = false })
  is_apart = is_apart or not M.fits(buf, row, chunks, namespace)
  if not is_apart then
    opts.virt_text = chunks
  else
    opts.virt_lines = wrap.rows(chunks, M.width(buf), INDENT)
    opts.virt_lines_above = opts.virt_lines_above ~= false
  end
  local id = api.nvim_buf_set_extmark(buf, namespace, row, 0, opts)
  if row == 0 and opts.virt_lines_above then
    M.reveal_top(buf)
  end
  return id, is_apart
end

return M
