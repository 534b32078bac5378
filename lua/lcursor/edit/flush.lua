-- Sees to it that what was drawn is seen: Neovim draws when it has nothing else to do, and a parser
-- that reads a long file gives it to do, slice after slice, for a third of a second. Draws nothing
-- itself.

local notify = require("lcursor.notify")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.flush")
local WAIT_MS = 8

local is_waiting = false

api.nvim_set_decoration_provider(namespace, {
  on_start = function()
    is_waiting = false
    return false
  end,
})

--- Something on the screen is other than it was.
function M.soon()
  if is_waiting then
    return
  end
  is_waiting = true
  vim.defer_fn(
    notify.guarded(function()
      local mode = api.nvim_get_mode()
      local is_free = not mode.blocking and mode.mode:find("^[niRvV\22]") ~= nil
      if is_waiting and is_free then
        vim.cmd.redraw()
      end
      is_waiting = false
    end),
    WAIT_MS
  )
end

return M
