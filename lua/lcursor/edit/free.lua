-- Waits for a moment at which a window may take the cursor: not while somebody types, whose keys
-- would be lost, or taken for an answer.

local notify = require("lcursor.notify")

local M = {}

local api = vim.api
local group = api.nvim_create_augroup("lcursor.edit.free", { clear = true })

--- Do what takes the cursor away, now or as soon as one is in Normal mode.
---@param what string that waits, for people
---@param is_wanted fun(): boolean whether it still is then
---@param fn fun()
function M.when(what, is_wanted, fn)
  if api.nvim_get_mode().mode == "n" then
    return fn()
  end
  notify.info(what .. " waits until you are in Normal mode")
  local function look()
    if not is_wanted() then
      return true
    elseif api.nvim_get_mode().mode ~= "n" then
      return false
    end
    fn()
    return true
  end
  api.nvim_create_autocmd("ModeChanged", {
    group = group,
    pattern = "*:n",
    callback = function(event)
      vim.schedule(notify.guarded(function()
        if look() then
          pcall(api.nvim_del_autocmd, event.id)
        end
      end))
    end,
  })
end

return M
