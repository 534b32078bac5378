-- The autocommands of completion.

local notify = require("lcursor.ui.notify")

local M = {}

---@class (exact) lcursor.Handlers
---@field update fun() text, cursor or menu may have changed
---@field enter fun() insert mode was entered
---@field leave fun() insert mode or the buffer is being left
---@field forget fun(buf: integer) a buffer was unloaded
---@field host fun(state: lcursor.HostState) the host's state changed

local INSERT = { i = true, R = true }

---@return boolean whether it is insert or replace mode
function M.is_insert(mode)
  return INSERT[mode:sub(1, 1)] or false
end

local is_watching_cmp = false

--- Call a function whenever the menu of nvim-cmp opens or closes, once that plugin is loaded.
local function watch_cmp(fn)
  local cmp = package.loaded["cmp"]
  if is_watching_cmp or type(cmp) ~= "table" or type(cmp.event) ~= "table" then
    return
  end
  is_watching_cmp = true
  for _, event in ipairs({ "menu_opened", "menu_closed" }) do
    cmp.event:on(event, fn)
  end
end

--- Call handlers until Neovim ends.
---@param handlers lcursor.Handlers
function M.listen(handlers)
  local on = notify.autocmds("complete")
  -- The menu is still open, or not open yet, while its events run.
  local update_later = vim.schedule_wrap(notify.guarded(handlers.update))
  on({ "TextChangedI", "TextChangedP", "CursorMovedI", "CompleteChanged" }, function()
    watch_cmp(update_later)
    handlers.update()
  end)
  on("CompleteDone", update_later)
  on("User", update_later, { pattern = { "BlinkCmpMenuOpen", "BlinkCmpMenuClose" } })
  on("ModeChanged", function()
    local old, new = vim.v.event.old_mode, vim.v.event.new_mode
    if M.is_insert(old) and (not M.is_insert(new) or old:sub(1, 1) ~= new:sub(1, 1)) then
      handlers.leave()
    end
    if M.is_insert(new) and old:sub(1, 1) ~= new:sub(1, 1) then
      handlers.enter()
    end
  end)
  on({ "BufLeave", "VimLeavePre" }, handlers.leave)
  on("BufUnload", function(event)
    handlers.forget(event.buf)
  end)
  on("User", function(event)
    handlers.host(event.data.state)
  end, { pattern = "LCursorHostState" })
end

return M
