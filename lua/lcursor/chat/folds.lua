-- Folds what one seldom reads: what went into a prompt, what a model thinks, summaries. By hand: an
-- expression would be asked for each line that is streamed. Owns the marks of what is folded.

local words = require("lcursor.chat.words")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.chat.folds")

---@param win integer
---@param first integer
---@param last integer
local function fold(win, first, last)
  api.nvim_win_call(win, function()
    if vim.wo.foldmethod == "manual" and last > first then
      local view = vim.fn.winsaveview()
      vim.cmd(("silent! %d,%dfold"):format(first + 1, last + 1))
      vim.fn.winrestview(view)
    end
  end)
end

--- Fold some rows, in each window that shows them and in those that will.
---@param session lcursor.ChatSession
---@param first integer
---@param last integer
function M.add(session, first, last)
  api.nvim_buf_set_extmark(session.buf, namespace, first, 0, { end_row = last, strict = false })
  for _, win in ipairs(vim.fn.win_findbuf(session.buf)) do
    fold(win, first, last)
  end
end

--- Fold in a window what is to be folded, as in one that shows the chat only now.
---@param session lcursor.ChatSession
---@param win integer
function M.apply(session, win)
  api.nvim_win_call(win, function()
    vim.cmd("silent! normal! zE")
  end)
  local marks = api.nvim_buf_get_extmarks(session.buf, namespace, 0, -1, { details = true })
  for _, mark in ipairs(marks) do
    fold(win, mark[2], mark[4].end_row)
  end
end

--- Forget all folds: the text is written anew.
---@param session lcursor.ChatSession
function M.clear(session)
  api.nvim_buf_clear_namespace(session.buf, namespace, 0, -1)
  for _, win in ipairs(vim.fn.win_findbuf(session.buf)) do
    api.nvim_win_call(win, function()
      vim.cmd("silent! normal! zE")
    end)
  end
end

--- 'foldtext'.
---@return string
function M.text()
  local line = vim.fn.getline(vim.v.foldstart)
  return words.fold(line, vim.v.foldend - vim.v.foldstart + 1)
end

return M
