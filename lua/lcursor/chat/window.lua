-- Where a chat is shown: a split at a side, or a float. Owns the windows' options; never the text.

local config = require("lcursor.config")
local folds = require("lcursor.chat.folds")
local winbar = require("lcursor.chat.winbar")

local M = {}

local api = vim.api
local LEAST_COLUMNS, LEAST_LINES = 30, 5

---@param session lcursor.ChatSession
---@return integer? win in this tab page
function M.find(session)
  local here = api.nvim_get_current_win()
  if api.nvim_win_get_buf(here) == session.buf then
    return here
  end
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    if api.nvim_win_get_buf(win) == session.buf then
      return win
    end
  end
end

--- Set a window's options as a chat wants them, for this buffer only.
---@param session lcursor.ChatSession
---@param win integer
function M.dress(session, win)
  local wo = vim.wo[win][0]
  wo.wrap, wo.linebreak, wo.breakindent = true, true, true
  wo.number, wo.relativenumber, wo.signcolumn, wo.foldcolumn = false, false, "no", "0"
  wo.foldmethod, wo.foldenable, wo.foldlevel = "manual", true, 0
  wo.foldtext = "v:lua.require'lcursor.chat.folds'.text()"
  wo.fillchars = (vim.go.fillchars ~= "" and vim.go.fillchars .. "," or "") .. "fold: "
  wo.conceallevel = 0 -- 2 makes long answers slow to draw
  wo.colorcolumn, wo.scrollbind, wo.cursorbind = "", false, false
  folds.apply(session, win)
  winbar.draw(session)
end

---@param share number
---@param all integer
---@param least integer
---@return integer
local function part(share, all, least)
  return math.max(math.min(math.floor(all * share + 0.5), all - least), math.min(least, all), 1)
end

---@param session lcursor.ChatSession
---@param opts lcursor.ChatOpts
---@return vim.api.keyset.win_config
local function layout(session, opts)
  local chat = config.get().chat
  local side, size = opts.side or chat.side, opts.size or chat.size
  local is_float = chat.float
  if opts.float ~= nil then
    is_float = opts.float
  end
  if is_float then
    local lines = vim.o.lines - vim.o.cmdheight
    local width = part(math.max(size, 0.6), vim.o.columns - 4, LEAST_COLUMNS)
    local height = part(0.8, lines - 2, LEAST_LINES)
    return {
      relative = "editor",
      row = math.max(math.floor((lines - height) / 2) - 1, 0),
      col = math.max(math.floor((vim.o.columns - width) / 2), 0),
      width = width,
      height = height,
      border = "rounded",
      title = (" chat %d "):format(session.number),
    }
  elseif side == "left" or side == "right" then
    return { split = side, win = -1, width = part(size, vim.o.columns, LEAST_COLUMNS) }
  end
  return { split = side, win = -1, height = part(size, vim.o.lines, LEAST_LINES) }
end

--- Put the cursor where the next question is written: whoever is there follows the answer.
---@param session lcursor.ChatSession
---@param win integer
function M.to_end(session, win)
  local last = api.nvim_buf_line_count(session.buf)
  local line = api.nvim_buf_get_lines(session.buf, last - 1, last, false)[1]
  api.nvim_win_set_cursor(win, { last, #line })
end

--- The window of another chat, which this one can be shown in instead of a further one.
---@param opts lcursor.ChatOpts
---@return integer?
local function other(opts)
  if opts.side or opts.size or opts.float ~= nil then
    return nil -- a place was asked for
  end
  for _, session in ipairs(require("lcursor.chat.state").all()) do
    local win = M.find(session)
    if win then
      return win
    end
  end
end

--- Show a chat in this tab page.
---@param session lcursor.ChatSession
---@param opts lcursor.ChatOpts
---@return integer win
function M.open(session, opts)
  local win = M.find(session)
  if not win then
    win = other(opts)
    if win then
      api.nvim_win_set_buf(win, session.buf)
      if api.nvim_win_get_config(win).relative ~= "" then
        api.nvim_win_set_config(win, { title = (" chat %d "):format(session.number) })
      end
    else
      win = api.nvim_open_win(session.buf, false, layout(session, opts))
    end
    M.dress(session, win)
    M.to_end(session, win)
  end
  if opts.enter ~= false then
    api.nvim_set_current_win(win)
  end
  session.win = win
  return win
end

--- Close a chat's windows in this tab page; what it does goes on.
---@param session lcursor.ChatSession
function M.close(session)
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    if api.nvim_win_get_buf(win) == session.buf then
      if #api.nvim_tabpage_list_wins(0) == 1 then
        vim.cmd.enew() -- the last window cannot be closed
      else
        api.nvim_win_close(win, false)
      end
    end
  end
  session.win = nil
end

return M
