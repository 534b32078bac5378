-- Inserts accepted text as one undo step, repeatable with `.`: nvim_paste is the only call that
-- also writes to the redo buffer (K_PASTE).

local M = {}

local api = vim.api

---@class (exact) lcursor.Pending
---@field text string
---@field buf integer
---@field tick integer
---@field after fun()
---@field replaces integer

---@type lcursor.Pending?
local pending

--- Return keys that insert `text` when they are typed, or returned from an <expr> map.
---@param after fun() called once the text is in the buffer
---@param replaces? integer bytes right of the cursor that it replaces
function M.keys(text, after, replaces)
  local buf = api.nvim_get_current_buf()
  local tick = api.nvim_buf_get_changedtick(buf)
  pending = { text = text, buf = buf, tick = tick, after = after, replaces = replaces or 0 }
  return '<C-g>u<Cmd>lua require("lcursor.complete.accept").apply()<CR><C-g>u'
end

--- Insert text. Replaces `vim.paste` during our call: that one redraws before the ghost is updated,
--- and users override it.
local function put(lines)
  api.nvim_put(lines, "c", false, true)
  return true
end

--- Open the folds of inserted lines where 'foldopen' says so, as if they were typed.
---@param first integer
---@param last integer
local function open_folds(first, last)
  local when = vim.opt.foldopen:get()
  if
    vim.wo.foldenable and (vim.list_contains(when, "insert") or vim.list_contains(when, "all"))
  then
    vim.cmd(("silent! %d,%dfoldopen!"):format(first, last))
  end
end

--- Insert the text of `keys`, unless the buffer has changed in between.
function M.apply()
  local job = pending
  pending = nil
  if not job or job.buf ~= api.nvim_get_current_buf() then
    return
  elseif job.tick ~= api.nvim_buf_get_changedtick(job.buf) then
    return
  end
  local row, col = unpack(api.nvim_win_get_cursor(0))
  if job.replaces > 0 then
    api.nvim_buf_set_text(job.buf, row - 1, col, row - 1, col + job.replaces, {})
  end
  if vim.fn.getcurpos()[4] > 0 then -- beyond the end of the line; the text begins with blanks
    api.nvim_win_set_cursor(0, { row, col })
  end
  local handler = vim.paste
  vim.paste = put
  local ok, err = pcall(api.nvim_paste, job.text, false, -1)
  vim.paste = handler
  if not ok then
    error(err, 0)
  end
  open_folds(row, api.nvim_win_get_cursor(0)[1])
  job.after()
end

return M
