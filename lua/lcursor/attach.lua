-- The options should_attach and on_attach, functions of the user: the first one excludes buffers,
-- the second one is called with those that are read.

local config = require("lcursor.config")
local notify = require("lcursor.notify")

local M = {}

local api = vim.api

---@class (exact) lcursor.Attached what the user's functions decided about a buffer
---@field key string its name and filetype, which they may have asked for
---@field is_wanted boolean
---@field is_reported boolean whether on_attach was called

---@type table<integer, lcursor.Attached> by buffer
local attached = {}

--- Call a function of the user with a buffer; a failure is reported.
---@param name "should_attach"|"on_attach" an option
---@return any result true if there is no such function, nil if it failed
local function call_option(name, buf)
  local fn = config.get()[name]
  if not fn then
    return true
  end
  local ok, result = pcall(fn, buf)
  if ok then
    return result
  end
  local message = ("%s failed: %s"):format(name, result)
  local hint = "See :help lcursor-" .. name
  notify.error({ code = "config_invalid", message = message, hint = hint, level = "warn" })
end

---@return lcursor.Attached
local function decided(buf)
  local key = vim.bo[buf].filetype .. "\0" .. api.nvim_buf_get_name(buf)
  local entry = attached[buf]
  if not entry or entry.key ~= key then
    local is_wanted = call_option("should_attach", buf) and true or false
    entry = { key = key, is_wanted = is_wanted, is_reported = entry ~= nil and entry.is_reported }
    attached[buf] = entry
  end
  return entry
end

--- Return whether the user's should_attach accepts a buffer. It is called once for each name and
--- filetype of it.
---@param buf integer
---@return boolean
function M.is_wanted(buf)
  return decided(buf).is_wanted
end

--- Call the user's on_attach for a buffer that may be read, once.
---@param buf integer
function M.report(buf)
  local entry = decided(buf)
  if not entry.is_reported then
    entry.is_reported = true
    vim.schedule(function()
      if api.nvim_buf_is_loaded(buf) then
        call_option("on_attach", buf)
      end
    end)
  end
end

notify.autocmds("attach")("BufUnload", function(event)
  attached[event.buf] = nil
end)

return M
