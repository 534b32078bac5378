-- Draws the ghost text in the current window: one extmark with its first line at the cursor and the
-- others below, and a second one for what follows the text right of the cursor.

local text = require("lcursor.text")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.ghost")
local MARK, BEHIND = 1, 2 -- the ids of the extmarks: updating them does not flicker
local PRIORITY = 1 -- lower than that of inlay hints, so that these come after it
local GROUP, COUNT_GROUP = "LCursorGhost", "LCursorGhostCount"

---@class (exact) lcursor.Shown
---@field buf integer
---@field tick integer
---@field row integer
---@field col integer
---@field rest string
---@field count? string
---@field behind string
---@field pad integer
---@field is_diff boolean

---@type lcursor.Shown?
local shown
---@type integer? the only window in which it is drawn
local window

--- Draw it only in the current window, where Neovim can do that.
local function bind()
  local win = api.nvim_get_current_win()
  if win ~= window and pcall(api.nvim__ns_set, namespace, { wins = { win } }) then
    window = win
  end
end

--- Return how many cells the cursor is right of the end of its line, because of 'virtualedit'. Text
--- that is typed there comes after as many blanks.
function M.pad()
  local _, _, col, offset = unpack(vim.fn.getcurpos())
  return offset > 0 and col > #api.nvim_get_current_line() and offset or 0
end

---@return integer[] 'vartabstop'
local function stops_of(buf)
  local value = vim.bo[buf].vartabstop
  return value == "" and {} or vim.tbl_map(tonumber, vim.split(value, ","))
end

---@return integer cells of the current window, in which long lines are wrapped
local function text_width()
  if not vim.wo.wrap then
    return math.huge
  end
  local info = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  return math.max(info.width - info.textoff, 1)
end

--- Show `rest` at the cursor of the current window.
---@param buf integer the current buffer
---@param count? string which of several it is, shown after the first line
---@param behind? string shown after the end of the line
---@return boolean drawn
function M.draw(buf, row, col, rest, count, behind)
  behind = behind or ""
  local tick = api.nvim_buf_get_changedtick(buf)
  local now = { buf = buf, tick = tick, row = row, col = col, rest = rest, count = count }
  now.behind, now.pad, now.is_diff = behind, M.pad(), vim.wo.diff
  bind()
  if shown and vim.deep_equal(shown, now) then
    return true
  end
  local tabstop, stops = vim.bo[buf].tabstop, stops_of(buf)
  local column = col > 0 and vim.fn.virtcol({ row + 1, col }) or 0
  local lines = vim.split(rest, "\n", { plain = true })
  if now.is_diff and #lines > 1 then -- lines below would move the rows of the other window
    count = vim.trim(("%s (%d more lines)"):format(count or "", #lines - 1))
    lines = { lines[1] }
  end
  local below, width = {}, text_width()
  for i = 2, #lines do
    local line = text.expand(lines[i], 0, tabstop, stops)
    while #line > width and api.nvim_strwidth(line) > width do
      local head, after = text.fit(line, width)
      table.insert(below, { { head, GROUP } })
      line = after
    end
    table.insert(below, { { line == "" and " " or line, GROUP } })
  end
  column = column + now.pad
  local first = { { text.expand(lines[1], column, tabstop, stops), GROUP } }
  local last = first
  if behind ~= "" then
    last = { { text.expand(behind, 0, tabstop, stops), GROUP } }
  end
  if count then
    table.insert(last, { " " .. count, COUNT_GROUP })
  end
  if now.pad > 0 then
    table.insert(first, 1, { (" "):rep(now.pad) })
  end
  local ok = pcall(api.nvim_buf_set_extmark, buf, namespace, row, col, {
    id = MARK,
    priority = PRIORITY,
    virt_text = first,
    virt_text_pos = "inline",
    virt_lines = below,
    virt_lines_overflow = "scroll",
    hl_mode = "replace",
    undo_restore = false,
  })
  if ok and behind ~= "" then
    local line = api.nvim_buf_get_lines(buf, row, row + 1, true)[1]
    api.nvim_buf_set_extmark(buf, namespace, row, #line, {
      id = BEHIND,
      priority = PRIORITY,
      virt_text = last,
      virt_text_pos = "inline",
      hl_mode = "replace",
      undo_restore = false,
    })
  elseif shown and shown.behind ~= "" then
    pcall(api.nvim_buf_del_extmark, shown.buf, namespace, BEHIND)
  end
  shown = ok and now or nil
  return ok
end

--- Remove it from the screen.
function M.hide()
  if shown then
    pcall(api.nvim_buf_del_extmark, shown.buf, namespace, MARK) -- the buffer may be gone
    pcall(api.nvim_buf_del_extmark, shown.buf, namespace, BEHIND)
    shown = nil
  end
end

function M.is_visible()
  return shown ~= nil
end

return M
