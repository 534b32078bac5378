-- Compares a buffer with its text after all open hunks, in Neovim's diff mode, in a new tab page.
-- The buffer can be edited there, and its hunks accepted and rejected.

local keymaps = require("lcursor.editor.keymaps")
local notify = require("lcursor.ui.notify")
local positions = require("lcursor.edit.positions")
local proposals = require("lcursor.edit.proposals")
local render = require("lcursor.edit.render")
local window = require("lcursor.ui.window")

local M = {}

local api = vim.api
local MIN_COLUMNS = 100 -- with fewer, one window is below the other

---@class (exact) lcursor.SideBySide
---@field buf integer
---@field win integer
---@field proposed_buf integer
---@field proposed_win integer
---@field from integer window to return to

---@type table<integer, lcursor.SideBySide> by buffer
local views = {}
local is_started = false

--- Return the lines of a buffer after all open hunks.
---@param buf integer
---@return string[]
local function proposed_lines(buf)
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  local proposed, row = {}, 0
  for _, hunk in ipairs(proposals.hunks(buf)) do
    if hunk.first >= row and positions.is_sure(buf, hunk) then -- several proposals may overlap
      vim.list_extend(proposed, lines, row + 1, hunk.first)
      vim.list_extend(proposed, hunk.new)
      row = hunk.last
    end
  end
  return vim.list_extend(proposed, lines, row + 1)
end

local function refresh(buf)
  local proposed_buf = views[buf] and views[buf].proposed_buf
  if not proposed_buf or not api.nvim_buf_is_valid(proposed_buf) then
    return
  end
  local lines = proposed_lines(buf)
  if not vim.deep_equal(lines, api.nvim_buf_get_lines(proposed_buf, 0, -1, false)) then
    window.set_lines(proposed_buf, lines)
  end
end

--- Close both windows. The options of the diff mode are reset first: Neovim would remember them.
---@param view lcursor.SideBySide
local function close(view)
  if views[view.buf] ~= view then
    return
  end
  views[view.buf] = nil
  local here = api.nvim_get_current_win()
  local is_here = here == view.win or here == view.proposed_win
  pcall(api.nvim_win_call, view.win, function() -- it may be gone
    vim.cmd.diffoff()
  end)
  vim.schedule(notify.guarded(function() -- one of the windows may be closing
    for _, win in ipairs({ view.proposed_win, view.win }) do
      if api.nvim_win_is_valid(win) then
        pcall(api.nvim_win_close, win, true) -- not the last window
      end
    end
    if is_here and api.nvim_win_is_valid(view.from) then
      api.nvim_set_current_win(view.from)
    end
    render.set_hidden(view.buf, false)
    proposals.changed(view.buf)
  end))
end

--- Follow changes of hunks and of the text.
local function start()
  if is_started then
    return
  end
  is_started = true
  proposals.on_changed(notify.guarded(refresh))
  notify.autocmds("edit.side_by_side")({ "TextChanged", "InsertLeave" }, function(event)
    refresh(event.buf)
  end)
end

--- Show the current buffer next to its proposed text, or close that view.
function M.toggle()
  local buf, from = api.nvim_get_current_buf(), api.nvim_get_current_win()
  for _, view in pairs(views) do
    if view.buf == buf or view.proposed_buf == buf then
      return close(view)
    end
  end
  if #proposals.hunks(buf) == 0 then
    return notify.info("no open hunks in this buffer")
  end
  start()
  local proposed_buf = window.buffer(("proposed/%d"):format(buf))
  window.set_code(proposed_buf, proposed_lines(buf), api.nvim_buf_get_name(buf))
  vim.cmd("tab split")
  local win = api.nvim_get_current_win()
  local is_wide = vim.o.columns >= MIN_COLUMNS
  local split = { split = is_wide and "right" or "below", win = win }
  local proposed_win = api.nvim_open_win(proposed_buf, false, split)
  local view = { buf = buf, win = win, from = from }
  view.proposed_buf, view.proposed_win = proposed_buf, proposed_win
  views[buf] = view
  for _, each in ipairs({ win, proposed_win }) do
    api.nvim_win_call(each, function()
      vim.cmd.diffthis()
    end)
    api.nvim_create_autocmd("WinClosed", {
      pattern = tostring(each),
      once = true,
      callback = notify.guarded(function()
        close(view)
      end),
    })
  end
  local quit = notify.guarded(function()
    close(view)
  end)
  vim.keymap.set("n", "q", quit, { buffer = proposed_buf, nowait = true })
  vim.wo[proposed_win][0].statusline = " proposed text · q close"
  render.set_hidden(buf, true) -- virtual lines would move one side
  proposals.changed(buf)
  local lhs = keymaps.shown("hunk", "diff", buf) or ":tabclose"
  local where = is_wide and "on the right" or "below"
  notify.info(("proposed text %s; %s closes the view"):format(where, lhs))
end

return M
