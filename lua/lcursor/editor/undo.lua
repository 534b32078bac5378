-- The undo history of a buffer.

local M = {}

local api = vim.api

--- Return the number of the latest change that is not undone.
function M.number(buf)
  return api.nvim_buf_call(buf, vim.fn.changenr)
end

--- End the current undo step of a buffer: what follows is undone on its own.
function M.end_step(buf)
  api.nvim_buf_call(buf, function()
    vim.cmd("noautocmd let &g:undolevels = &g:undolevels")
  end)
end

return M
