-- The window of a chat: a split or a float. Owns the window options.

local sessions = require("lcursor.chat.sessions")
local transcript = require("lcursor.ui.transcript")
local ui = require("lcursor.ui.window")
local winbar = require("lcursor.chat.winbar")

local M = {}

local api = vim.api

--- Return a window of this tab page that shows a chat.
---@param session lcursor.ChatSession
---@return integer?
function M.find(session)
  return ui.find(session.buf)
end

--- Set the options of a window while it shows the chat.
---@param session lcursor.ChatSession
---@param win integer
function M.set_options(session, win)
  transcript.set_window_options(win, "v:lua.require'lcursor.chat.buffer'.foldtext()")
  transcript.fold_window(session.buf, win)
  winbar.draw(session)
end

---@return string
local function float_title(session)
  return (" chat %d "):format(session.number)
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
      win = api.nvim_open_win(session.buf, false, ui.dock(opts.window, float_title(session)))
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
  ui.close_all(session.buf)
  session.win = nil
end

return M
