-- The window of a chat: a split or a float. Owns the window options.

local config = require("lcursor.config")
local buffer = require("lcursor.chat.buffer")
local sessions = require("lcursor.chat.sessions")
local winbar = require("lcursor.chat.winbar")

local M = {}

local api = vim.api
local MIN_COLUMNS, MIN_LINES = 30, 5

--- Return a window of this tab page that shows a chat.
---@param session lcursor.ChatSession
---@return integer?
function M.find(session)
  if api.nvim_get_current_buf() == session.buf then
    return api.nvim_get_current_win()
  end
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    if api.nvim_win_get_buf(win) == session.buf then
      return win
    end
  end
end

--- Set the options of a window while it shows the chat.
---@param session lcursor.ChatSession
---@param win integer
function M.set_options(session, win)
  local wo = vim.wo[win][0]
  wo.wrap, wo.linebreak, wo.breakindent = true, true, true
  wo.number, wo.relativenumber, wo.signcolumn, wo.foldcolumn = false, false, "no", "0"
  wo.foldmethod, wo.foldenable, wo.foldlevel = "manual", true, 0
  wo.foldtext = "v:lua.require'lcursor.chat.buffer'.foldtext()"
  wo.fillchars = (vim.go.fillchars ~= "" and vim.go.fillchars .. "," or "") .. "fold: "
  wo.conceallevel = 0 -- with 2, long answers are slow to draw
  wo.colorcolumn, wo.scrollbind, wo.cursorbind = "", false, false
  buffer.fold_window(session, win)
  winbar.draw(session)
end

---@return integer
local function part(share, total, minimum)
  local size = math.min(math.floor(total * share + 0.5), total - minimum)
  return math.max(size, math.min(minimum, total), 1)
end

---@return string
local function float_title(session)
  return (" chat %d "):format(session.number)
end

---@return vim.api.keyset.win_config
local function layout(session, opts)
  local wanted = vim.tbl_extend("force", config.get().chat.window, opts.window or {})
  local position, size = wanted.position, wanted.size
  if position == "float" then
    local lines = vim.o.lines - vim.o.cmdheight
    local width = part(math.max(size, 0.6), vim.o.columns - 4, MIN_COLUMNS)
    local height = part(0.8, lines - 2, MIN_LINES)
    return {
      relative = "editor",
      row = math.max(math.floor((lines - height) / 2) - 1, 0),
      col = math.max(math.floor((vim.o.columns - width) / 2), 0),
      width = width,
      height = height,
      border = "rounded",
      title = float_title(session),
    }
  elseif position == "left" or position == "right" then
    return { split = position, win = -1, width = part(size, vim.o.columns, MIN_COLUMNS) }
  end
  return { split = position, win = -1, height = part(size, vim.o.lines, MIN_LINES) }
end

--- Move the cursor of a window to the end of the draft: from there the view follows an answer.
---@param session lcursor.ChatSession
---@param win integer
function M.to_end(session, win)
  local last = api.nvim_buf_line_count(session.buf)
  local line = api.nvim_buf_get_lines(session.buf, last - 1, last, false)[1]
  api.nvim_win_set_cursor(win, { last, #line })
end

--- Return the window of another chat, which is used again unless a position was given.
---@return integer?
local function window_of_other(opts)
  if opts.window then
    return nil
  end
  return vim.iter(sessions.all()):map(M.find):next()
end

--- Show a chat in this tab page.
---@param session lcursor.ChatSession
---@param opts lcursor.ChatOpts
function M.open(session, opts)
  local win = M.find(session)
  if not win then
    win = window_of_other(opts)
    if win then
      api.nvim_win_set_buf(win, session.buf)
      if api.nvim_win_get_config(win).relative ~= "" then
        api.nvim_win_set_config(win, { title = float_title(session) })
      end
    else
      win = api.nvim_open_win(session.buf, false, layout(session, opts))
    end
    M.set_options(session, win)
    M.to_end(session, win)
  end
  if opts.enter ~= false then
    api.nvim_set_current_win(win)
  end
  session.win = win
end

--- Close the windows of a chat in this tab page; a running answer continues.
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
