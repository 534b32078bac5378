-- The code window of a chat or an agent: the file the user was in last, its window, and jumps to
-- files.

local buffers = require("lcursor.editor.buffers")
local context = require("lcursor.editor.context")
local notify = require("lcursor.ui.notify")
local open = require("lcursor.ui.open")

local M = {}

local api = vim.api

---@type table<string, true> folders of projects, as the host reported them
local roots = {}

--- Whether a buffer is the text of a chat.
function M.is_chat(buf)
  return vim.startswith(api.nvim_buf_get_name(buf), "lcursor://chat/")
end

---@return boolean whether it is a normal buffer
local function is_code(buf)
  return api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" and not M.is_chat(buf)
end

---@param path string absolute
---@return integer? buf
local function buffer_of(path)
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local name = api.nvim_buf_get_name(buf)
    if is_code(buf) and name ~= "" and vim.fs.abspath(name) == path then
      return buf
    end
  end
end

--- Return the window of this tab page that the user was in before the chat.
---@return integer?
function M.window()
  local preferred = buffer_of(buffers.here())
  local candidates = { api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr("#")) }
  vim.list_extend(candidates, api.nvim_tabpage_list_wins(0))
  local other
  for _, win in ipairs(candidates) do
    local is_split = win ~= 0 and api.nvim_win_get_config(win).relative == ""
    local buf = is_split and api.nvim_win_get_buf(win)
    if buf and buf == preferred then
      return win
    elseif buf and not other and is_code(buf) then
      other = win
    end
  end
  return other
end

--- Return the current buffer, or the one the user was in before the chat.
---@return integer? buf
function M.buffer()
  local now = api.nvim_get_current_buf()
  if is_code(now) then
    return now
  end
  local win = M.window()
  return buffer_of(buffers.here()) or (win and api.nvim_win_get_buf(win)) or nil
end

--- Go to a row of a file, in the code window.
---@param path string absolute
function M.jump(path, row)
  local win, message = open.file(path, { win = M.window(), row = row })
  if not win then
    notify.warn(message)
  end
end

--- Remember the folder of a project; "" is none.
---@param root string absolute
function M.add_root(root)
  roots[root] = root ~= "" or nil
end

--- Return a path relative to its project.
---@param path string absolute
function M.name(path)
  local root = vim.iter(vim.fs.parents(path)):find(function(folder)
    return roots[folder]
  end) or context.repository(path)
  return root and vim.fs.relpath(root, path) or vim.fn.fnamemodify(path, ":~:.")
end

---@param bases string[] folders
---@return string? absolute
local function find(bases, name)
  for _, base in ipairs(vim.list_extend(bases, { vim.uv.cwd() })) do
    local path = vim.startswith(name, "/") and name or vim.fs.joinpath(base, name)
    if base ~= "" and (vim.fn.filereadable(path) == 1 or buffer_of(path)) then
      return vim.fs.normalize(path)
    end
  end
end

--- Go to the file named under or after the cursor: `src/a.py:12`, `src/a.py`, `src/a.py#L12`.
---@param bases string[] folders in which it may be
---@param line? string
---@param col? integer from 1
function M.follow_name(bases, line, col)
  line = line or api.nvim_get_current_line()
  col = col or api.nvim_win_get_cursor(0)[2] + 1
  for word, last in line:gmatch("([%w_%.%-/~+@\128-\255]+[%w_#:%-]*)()") do
    local name, row = word:match("^(.-):L?(%d+)")
    if not name then
      name, row = word:match("^(.-)#L(%d+)")
    end
    name = (name or word):gsub("[:%.%-]+$", ""):gsub("^@%l+:", "")
    local path = col < last and name ~= "" and find(vim.deepcopy(bases), name)
    if path then
      return M.jump(path, math.max((tonumber(row) or 1) - 1, 0))
    end
  end
  notify.info("no file name under the cursor")
end

return M
