-- Timers that call a function once, after a while; its errors are reported.

local notify = require("lcursor.ui.notify")

local M = {}

--- Return the functions of a new timer.
---@param fn function
---@return fun(ms: number, ...) start with the arguments of `fn`; replaces a call that is to come
---@return fun() stop
function M.new(fn)
  local timer ---@type uv.uv_timer_t?
  local arguments = {}
  local number = 0 -- of the last start or stop: what has fired already cannot be stopped
  local call = notify.guarded(function(own)
    if own == number then
      fn(unpack(arguments))
    end
  end)
  local function fire()
    local own = number
    vim.schedule(function()
      call(own)
    end)
  end
  local function start(ms, ...)
    number, arguments = number + 1, { ... }
    timer = timer or assert(vim.uv.new_timer())
    timer:start(math.ceil(ms), 0, fire)
  end
  local function stop()
    number = number + 1
    if timer then
      timer:stop()
    end
  end
  return start, stop
end

return M
