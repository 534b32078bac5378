-- When something may have to be done: the autocommands and the one timer of the debounce.
-- Knows nothing of suggestions; calls who asked to be called.

local notify = require("lcursor.notify")

local M = {}

local api = vim.api

---@class (exact) lcursor.Listener
---@field look fun() text, cursor or menu may have changed
---@field enter fun() insert mode was entered
---@field leave fun() insert mode or the buffer is being left
---@field forget fun(buf: integer) a buffer was unloaded
---@field host fun(state: lcursor.HostState) the host's state changed

---@type uv.uv_timer_t?
local timer
local INSERT = { i = true, R = true }

M.guarded = notify.guarded

--- Call `fn` when nothing has happened for a while; a later call replaces an earlier one.
---@param ms integer 0 calls it at once
---@param fn fun()
function M.later(ms, fn)
  M.cancel()
  if ms == 0 then
    return fn()
  end
  timer = timer or assert(vim.uv.new_timer())
  timer:start(ms, 0, vim.schedule_wrap(M.guarded(fn)))
end

--- Forget the call that `later` holds.
function M.cancel()
  if timer then
    timer:stop()
  end
end

---@param mode string
---@return boolean whether it is insert or replace mode
function M.is_insert(mode)
  return INSERT[mode:sub(1, 1)] or false
end

--- Listen until Neovim ends.
---@param on lcursor.Listener
function M.listen(on)
  local group = api.nvim_create_augroup("lcursor.complete", {})
  ---@param events string|string[]
  ---@param pattern? string|string[]
  ---@param callback fun(event: vim.api.keyset.create_autocmd.callback_args)
  local function at(events, pattern, callback)
    api.nvim_create_autocmd(
      events,
      { group = group, pattern = pattern, callback = M.guarded(callback) }
    )
  end
  at({ "TextChangedI", "TextChangedP", "CursorMovedI", "CompleteChanged" }, nil, on.look)
  -- The menu is still there while these run.
  at("CompleteDone", nil, vim.schedule_wrap(on.look))
  at("User", { "BlinkCmpMenuOpen", "BlinkCmpMenuClose" }, vim.schedule_wrap(on.look))
  at("ModeChanged", nil, function()
    local old, new = vim.v.event.old_mode, vim.v.event.new_mode
    if M.is_insert(old) and (not M.is_insert(new) or old:sub(1, 1) ~= new:sub(1, 1)) then
      on.leave()
    end
    if M.is_insert(new) and old:sub(1, 1) ~= new:sub(1, 1) then
      on.enter()
    end
  end)
  at({ "BufLeave", "VimLeavePre" }, nil, on.leave)
  at("BufUnload", nil, function(event)
    on.forget(event.buf)
  end)
  at("User", "LCursorHostState", function(event)
    on.host(event.data.state)
  end)
end

return M
