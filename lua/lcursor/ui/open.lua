-- Opens a file in a window that may show it, else in a split. Left alone are windows with
-- 'winfixbuf' or 'diff', previews, floats, windows that are not for files, and those whose unsaved
-- changes would be lost. `:buffer` also raises an error when the user answers a question about a
-- swap file, or when an autocommand fails. The file is shown nevertheless, so what counts is what
-- the window shows.

local log = require("lcursor.ui.log")

local M = {}

local api = vim.api
local SPLITS = { split = "split", vsplit = "vsplit", tabedit = "tab split" }

---@class lcursor.OpenOpts
---@field row? integer 0-based; by default the cursor stays where it was in the file
---@field col? integer in bytes, 0-based; by default the first character of the row
---@field command? lcursor.OpenCommand other than "edit": always in a new window
---@field win? integer the window to use, if it may show the file
---@field create? boolean begin a new file if there is none

---@return boolean
local function is_float(win)
  return api.nvim_win_get_config(win).relative ~= ""
end

--- Return whether another buffer may be shown in a window.
---@param win integer
---@param types string[] values of 'buftype' that its buffer may have
---@return boolean
local function may_show(win, types)
  local wo, buf = vim.wo[win], api.nvim_win_get_buf(win)
  local is_fixed = wo.winfixbuf or wo.diff or wo.previewwindow
  local is_own = vim.startswith(api.nvim_buf_get_name(buf), "lcursor://")
  return not is_fixed and not is_own and vim.list_contains(types, vim.bo[buf].buftype)
end

--- Return the first window that shows a file; else the first one as wide as the screen that shows
--- something else, such as the start page of another plugin.
---@param wins integer[]
---@return integer?
local function choose(wins)
  return vim.iter(wins):find(function(win)
    return may_show(win, { "" })
  end) or vim.iter(wins):find(function(win)
    local is_wide = api.nvim_win_get_width(win) == vim.o.columns
    return is_wide and may_show(win, { "nofile", "acwrite" })
  end)
end

--- Return whether leaving the buffer of a window would lose unsaved changes, so that `:edit` fails.
---@return boolean
local function has_unsaved(win)
  local buf = api.nvim_win_get_buf(win)
  local hides = vim.bo[buf].bufhidden == "hide" or vim.bo[buf].bufhidden == "" and vim.o.hidden
  local is_only = #vim.fn.win_findbuf(buf) == 1
  return vim.bo[buf].modified and is_only and not hides and not vim.o.autowriteall
end

--- Split a window for a file; the new window shows the same buffer at first.
---@param win integer
---@return integer
local function split(win)
  local direction = vim.o.splitbelow and "below" or "above"
  local is_narrow = vim.bo[api.nvim_win_get_buf(win)].buftype ~= ""
    and api.nvim_win_get_width(win) < vim.o.columns
  if is_narrow then
    direction = "left"
  end
  return api.nvim_open_win(api.nvim_win_get_buf(win), true, { split = direction, win = win })
end

--- Enter the window in which a buffer is to be shown.
---@param buf integer
---@param opts lcursor.OpenOpts
local function enter(buf, opts)
  local here = api.nvim_get_current_win()
  local wins = { opts.win or here, here, vim.fn.win_getid(vim.fn.winnr("#")) }
  vim.list_extend(wins, api.nvim_tabpage_list_wins(0))
  wins = vim.tbl_filter(function(win)
    return api.nvim_win_is_valid(win) and not is_float(win)
  end, wins)
  local shown = vim.iter(wins):find(function(win)
    return api.nvim_win_get_buf(win) == buf
  end)
  local win = choose(wins)
  if SPLITS[opts.command] then
    api.nvim_set_current_win(wins[1])
    vim.cmd(SPLITS[opts.command])
  elseif shown or (win and not has_unsaved(win)) then
    api.nvim_set_current_win(shown or win)
  else
    split(win or wins[1])
  end
  vim.cmd("normal! m'")
end

--- Return what an error says, without where it was raised.
---@return string
local function reason(err)
  local line = tostring(err):match("[^\n]*"):gsub("^.-:%d+: ", ""):gsub("^.*(E%d+: )", "%1")
  return (line:gsub("^E325:.*", "E325: a swap file exists"))
end

--- Open a file, or go to the window of this tab page that shows it, and enter that window.
---@param file string|integer absolute path, or a buffer
---@param opts? lcursor.OpenOpts
---@return integer? win nil if the file cannot be shown
---@return string? message why it cannot
function M.file(file, opts)
  opts = opts or {}
  local path = type(file) == "string" and file or api.nvim_buf_get_name(file --[[@as integer]])
  local name, is_new = vim.fn.fnamemodify(path, ":~:."), vim.fn.bufexists(file) == 0
  if vim.fn.bufloaded(file) == 0 and not opts.create and not vim.uv.fs_stat(path) then
    return nil, name .. " no longer exists"
  end
  local buf = type(file) == "number" and file or vim.fn.bufadd(vim.fn.fnamemodify(path, ":."))
  local from, count = api.nvim_get_current_win(), #api.nvim_list_wins()
  local ok, err = pcall(function()
    enter(buf, opts)
    if api.nvim_get_current_buf() ~= buf then
      vim.bo[buf].buflisted = true
      vim.cmd.buffer(buf)
    end
  end)
  if api.nvim_get_current_buf() ~= buf or not api.nvim_buf_is_loaded(buf) then
    if #api.nvim_list_wins() > count then
      api.nvim_win_close(0, true)
    end
    pcall(api.nvim_set_current_win, from)
    if is_new and api.nvim_buf_is_valid(buf) and not api.nvim_buf_is_loaded(buf) then
      pcall(api.nvim_buf_delete, buf, { force = true }) -- impossible in the command-line window
    end
    return nil, ("cannot open %s: %s"):format(name, ok and "it was not loaded" or reason(err))
  elseif not ok then
    log.debug("opening %s: %s", name, err)
  end
  if opts.row then
    local line = math.min(opts.row + 1, api.nvim_buf_line_count(buf))
    api.nvim_win_set_cursor(0, { line, opts.col or 0 })
    vim.cmd(opts.col and "normal! zvzz" or "normal! ^zvzz")
  end
  return api.nvim_get_current_win()
end

return M
