-- Where the code is that a chat is about: the file one was in last, and the window to go back to.
-- Reads the editor; opens a window only where it is asked to.

local state = require("lcursor.chat.state")

local M = {}

local api = vim.api

---@param buf integer
---@return boolean whether it holds a text of the user's
local function is_code(buf)
  return api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" and not state.of(buf)
end

--- The buffer that a path is open in.
---@param path string absolute
---@return integer? buf
function M.buffer(path)
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local name = api.nvim_buf_get_name(buf)
    if is_code(buf) and name ~= "" and vim.fs.abspath(name) == path then
      return buf
    end
  end
end

--- The window of this tab page that one was in before the chat.
---@return integer?
function M.window()
  local here = M.buffer(state.here())
  local candidates = { api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr("#")) }
  vim.list_extend(candidates, api.nvim_tabpage_list_wins(0))
  local other
  for _, win in ipairs(candidates) do
    local is_float = win ~= 0 and api.nvim_win_get_config(win).relative ~= ""
    local buf = win ~= 0 and not is_float and api.nvim_win_get_buf(win)
    if buf and buf == here then
      return win
    elseif buf and not other and is_code(buf) then
      other = win
    end
  end
  return other
end

--- The buffer one is in, or was in before the chat.
---@return integer? buf
function M.code()
  local now = api.nvim_get_current_buf()
  if is_code(now) then
    return now
  end
  local buf = M.buffer(state.here())
  if buf then
    return buf
  end
  local win = M.window()
  return win and api.nvim_win_get_buf(win)
end

--- Enter the window that one was in before the chat, or a new one beside the chat.
---@return integer win
function M.enter()
  local win = M.window()
  if not win then
    local session = state.of(api.nvim_get_current_buf())
    local is_float = api.nvim_win_get_config(0).relative ~= ""
    local buf = M.buffer(state.here()) or api.nvim_create_buf(true, false)
    win = api.nvim_open_win(buf, true, {
      split = session and not is_float and "left" or "above",
      win = is_float and -1 or 0,
    })
  end
  api.nvim_set_current_win(win)
  return win
end

--- Go to a place in a file, in the window of the code.
---@param path string absolute
---@param row integer 0-based
---@return boolean whether it is open
function M.jump(path, row)
  if not vim.uv.fs_stat(path) and not M.buffer(path) then
    require("lcursor.notify").warn(
      ("there is no %s any more"):format(vim.fn.fnamemodify(path, ":~:."))
    )
    return false
  end
  M.enter()
  vim.cmd("normal! m'")
  local buf = M.buffer(path)
  if buf ~= api.nvim_get_current_buf() then
    local name = vim.fn.fnameescape(vim.fn.fnamemodify(path, ":."))
    local is_stuck = vim.bo.modified and not vim.o.hidden and not vim.o.autowriteall
    local ok, err = pcall(vim.cmd[is_stuck and "split" or "edit"], { name })
    if not ok then
      local why = tostring(err):gsub("^.-:", "")
      require("lcursor.notify").warn(("cannot open %s: %s"):format(name, why))
      return false
    end
  end
  api.nvim_win_set_cursor(0, { math.min(row + 1, api.nvim_buf_line_count(0)), 0 })
  vim.cmd("normal! ^zvzz")
  return true
end

--- A path as it is shown in the project of a chat.
---@param path string absolute
---@return string
function M.name(path)
  local root = vim.fs.root(path, { ".git", ".hg", ".svn" })
  local session = state.current()
  if session and session.root ~= "" and vim.startswith(path, session.root .. "/") then
    root = session.root
  end
  return root and vim.fs.relpath(root, path) or vim.fn.fnamemodify(path, ":~:.")
end

return M
