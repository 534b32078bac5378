-- Runs long work on the main loop in short slices: Neovim handles keys in between.

local notify = require("lcursor.ui.notify")

local M = {}

local uv = vim.uv

---@class (exact) lcursor.Slices
---@field run fun() works for one slice; continues by itself
---@field start fun() runs unless the work has begun already
---@field later fun(delay_ms: integer) runs after a delay, unless that is due already
---@field pause fun(): boolean for the work: yields if the slice is over; returns whether it did
---@field wait fun(start: fun(done: fun())) for the work: yields until `done` is called
---@field is_idle fun(): boolean

--- Prepare work that is done in slices; it starts from the beginning whenever it has ended.
---@param work fun() runs in a coroutine
---@param slice_ms number
---@param pause_ms integer between two slices
---@return lcursor.Slices
function M.new(work, slice_ms, pause_ms)
  local self = {} ---@type lcursor.Slices
  local thread ---@type thread?
  local is_due, is_waiting, ends_ns = false, false, 0

  function self.later(delay_ms)
    if not is_due then
      is_due = true
      notify.later(delay_ms, function()
        is_due = false
        self.run()
      end)
    end
  end

  function self.pause()
    local is_over = uv.hrtime() > ends_ns
    if is_over then
      self.later(pause_ms)
      coroutine.yield()
    end
    return is_over
  end

  function self.wait(start)
    local is_done = false
    start(function()
      is_done = true
      if is_waiting then
        is_waiting = false
        self.later(0)
      end
    end)
    if not is_done then
      is_waiting = true
      coroutine.yield()
    end
  end

  function self.run()
    if is_waiting then
      return
    end
    thread = thread or coroutine.create(work)
    ends_ns = uv.hrtime() + slice_ms * 1e6
    local ok, err = coroutine.resume(thread)
    local trace = not ok and debug.traceback(thread, tostring(err))
    if coroutine.status(thread) == "dead" then
      thread = nil
    end
    if trace then
      error(trace, 0)
    end
  end

  function self.start()
    if not thread then
      self.run()
    end
  end

  function self.is_idle()
    return not thread and not is_due
  end

  return self
end

return M
