-- Lets the host evaluate the text around the cursor in advance, when it rests in Normal mode, so
-- that the first suggestion there comes sooner. The rules of what is never read are those of the
-- requests. Nothing answers, nothing is shown.

local config = require("lcursor.config")
local context = require("lcursor.context")
local gate = require("lcursor.complete.gate")
local requests = require("lcursor.complete.requests")
local status = require("lcursor.status")
local trigger = require("lcursor.complete.trigger")

local M = {}

local api = vim.api

local REST_MS = 250 -- so that nothing is evaluated for who only scrolls through

---@type uv.uv_timer_t?
local timer
---@type { id: integer, buf: integer, tick: integer, row: integer }? sent last
local sent

---@return boolean whether the host has, or evaluates, the text at the cursor
local function is_read()
  local place = sent or requests.last_answered()
  local buf = api.nvim_get_current_buf()
  if not place or place.buf ~= buf or place.tick ~= api.nvim_buf_get_changedtick(buf) then
    return false
  end
  return place.row == api.nvim_win_get_cursor(0)[1] - 1
end

--- Stop what was sent last.
local function cancel()
  if sent then
    requests.cancel_warm(sent.id)
    sent = nil
  end
end

---@type fun()
local rest
local later = vim.schedule_wrap(trigger.guarded(function()
  rest()
end))

--- Wait until the cursor has rested. Runs at each cursor movement in Normal mode.
local function wait()
  if is_read() then
    return
  end
  cancel()
  timer = timer or assert(vim.uv.new_timer())
  timer:start(REST_MS, 0, later)
end

rest = function()
  if api.nvim_get_mode().mode ~= "n" or status.get().state ~= "ready" or is_read() then
    return
  end
  local buf = api.nvim_get_current_buf()
  local own = config.for_buffer(buf)
  local settings = own.completion
  if not (settings.read_ahead and settings.auto_trigger and settings.backend == "inproc") then
    return
  elseif gate.buffer_refusal(buf, own, wait) then
    return
  end
  -- At the end of the line, where `A` and `o` go on; elsewhere in it the text begins alike.
  local row, line = api.nvim_win_get_cursor(0)[1] - 1, api.nvim_get_current_line()
  local request = context.read(buf, row, #line)
  local id = requests.warm(request)
  if id then
    sent = { id = id, buf = buf, tick = request.tick, row = row }
  end
end

---@param mode string that was entered
local function enter_mode(mode)
  if mode == "n" then
    return wait()
  elseif timer then
    timer:stop()
  end
  if trigger.is_insert(mode) then
    sent = nil -- it goes on until a request takes its place
  else
    cancel()
  end
end

--- Begin to read ahead.
function M.start()
  local group = api.nvim_create_augroup("lcursor.warm", {})
  api.nvim_create_autocmd({ "BufEnter", "CursorMoved", "TextChanged" }, {
    group = group,
    callback = trigger.guarded(wait),
  })
  api.nvim_create_autocmd("ModeChanged", {
    group = group,
    callback = trigger.guarded(function()
      enter_mode(vim.v.event.new_mode)
    end),
  })
  api.nvim_create_autocmd("User", {
    group = group,
    pattern = "LCursorHostState",
    callback = trigger.guarded(function(event)
      sent = nil -- another host, or another model
      if event.data.state == "ready" then
        wait()
      end
    end),
  })
end

return M
