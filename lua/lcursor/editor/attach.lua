-- Calls the user's functions in the options should_attach, which excludes buffers, and on_attach,
-- which gets those that are read.

local by_buffer = require("lcursor.editor.by_buffer")
local config = require("lcursor.config")
local notify = require("lcursor.ui.notify")

local M = {}

local api = vim.api

---@class (exact) lcursor.Attached
---@field fn fun(buf: integer): any should_attach
---@field key string the name and the filetype for which it was called
---@field is_wanted boolean what it returned

---@type table<integer, lcursor.Attached> by buffer
local asked = by_buffer.new()
---@type table<integer, true> buffers for which on_attach was called
local reported = by_buffer.new()

--- Call a function of the user with a buffer, and report its failure.
---@param name "should_attach"|"on_attach" an option
---@param fn fun(buf: integer): any
---@return any result nil if it failed
local function call(name, fn, buf)
  local ok, result = pcall(fn, buf)
  if ok then
    return result
  end
  local message = ("%s failed: %s"):format(name, result)
  local hint = "See :help lcursor-" .. name
  notify.error({ code = "config_invalid", message = message, hint = hint, level = "warn" })
end

--- Return whether the user's should_attach accepts a buffer. It is called once for each name and
--- filetype of the buffer.
function M.is_wanted(buf)
  local fn = config.get().should_attach
  if not fn then
    return true
  end
  local key = vim.bo[buf].filetype .. "\0" .. api.nvim_buf_get_name(buf)
  if not asked[buf] or asked[buf].key ~= key or asked[buf].fn ~= fn then
    local is_wanted = call("should_attach", fn, buf) and true or false
    asked[buf] = { fn = fn, key = key, is_wanted = is_wanted }
  end
  return asked[buf].is_wanted
end

--- Call the user's on_attach for a buffer that may be read, once.
function M.report(buf)
  local fn = config.get().on_attach
  if not fn or reported[buf] then
    return
  end
  reported[buf] = true
  vim.schedule(function()
    if api.nvim_buf_is_loaded(buf) then
      call("on_attach", fn, buf)
    end
  end)
end

return M
