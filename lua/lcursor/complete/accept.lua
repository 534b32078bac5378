-- Puts accepted text into the buffer, as one undo step and so that `.` repeats it.
-- `nvim_paste` is the one call that also writes into the redo buffer (K_PASTE).

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

--- Keys that insert `text` when they are typed, or returned from an <expr> map, in insert mode.
---@param text string
---@param after fun() called when the text stands in the buffer
---@param replaces? integer bytes right of the cursor that it takes the place of
---@return string
function M.keys(text, after, replaces)
  local buf = api.nvim_get_current_buf()
  local tick = api.nvim_buf_get_changedtick(buf)
  pending = { text = text, buf = buf, tick = tick, after = after, replaces = replaces or 0 }
  return '<C-g>u<Cmd>lua require("lcursor.complete.accept").apply()<CR><C-g>u'
end

--- Insert plainly. Stands in for `vim.paste` during our own call: that one draws the screen before
--- the ghost could follow, and may be overridden by anything.
---@param lines string[]
---@return boolean
local function put(lines)
  api.nvim_put(lines, "c", false, true)
  return true
end

--- Do what `keys` promised, unless the buffer has changed in between.
function M.apply()
  local job = pending
  pending = nil
  if not job or job.buf ~= api.nvim_get_current_buf() then
    return
  elseif job.tick ~= api.nvim_buf_get_changedtick(job.buf) then
    return
  end
  if job.replaces > 0 then
    local row, col = unpack(api.nvim_win_get_cursor(0))
    api.nvim_buf_set_text(job.buf, row - 1, col, row - 1, col + job.replaces, {})
  end
  local handler = vim.paste
  vim.paste = put
  local ok, err = pcall(api.nvim_paste, job.text, false, -1)
  vim.paste = handler
  if not ok then
    error(err, 0)
  end
  job.after()
end

return M
