-- Lets the host evaluate the text around a cursor that rests in Normal mode, so that the first
-- suggestion there comes sooner. Only in buffers that were edited: reading code must cost nothing.
-- What requests never read is not read here either.

local by_buffer = require("lcursor.editor.by_buffer")
local config = require("lcursor.config")
local context = require("lcursor.editor.context")
local gate = require("lcursor.complete.gate")
local notify = require("lcursor.ui.notify")
local fim = require("lcursor.complete.fim")
local status = require("lcursor.host.status")
local timers = require("lcursor.editor.timer")
local trigger = require("lcursor.complete.trigger")

local M = {}

local api = vim.api

local REST_MS = 250 -- so that scrolling evaluates nothing

---@type table<integer, true> buffers that were changed, or in which Insert mode began
local edited = by_buffer.new()
---@type { id: integer, buf: integer, tick: integer, row: integer }? sent last
local sent

---@return boolean whether the host has evaluated the text at the cursor, or does so
local function is_evaluated()
  local latest = sent or fim.last_answered()
  local buf = api.nvim_get_current_buf()
  if not latest or latest.buf ~= buf or latest.tick ~= api.nvim_buf_get_changedtick(buf) then
    return false
  end
  return latest.row == api.nvim_win_get_cursor(0)[1] - 1
end

local function cancel()
  if sent then
    fim.cancel_warm(sent.id)
    sent = nil
  end
end

local evaluate
local evaluate_later, stop = timers.new(function()
  evaluate()
end)

--- Wait until the cursor rests. Runs at each cursor movement in Normal mode.
local function wait()
  if is_evaluated() then
    return
  end
  cancel()
  evaluate_later(REST_MS)
end

evaluate = function()
  local buf = api.nvim_get_current_buf()
  if not edited[buf] or api.nvim_get_mode().mode ~= "n" then
    return
  elseif status.get().state ~= "ready" or is_evaluated() then
    return
  end
  local settings = config.for_buffer(buf).completion
  if not settings.auto_trigger or not settings.read_ahead or config.completion_server() then
    return
  elseif gate.buffer_block_reason(buf, wait) then
    return
  end
  -- At the end of the line, where `A` and `o` continue; elsewhere in it the text begins the same.
  local row, line = api.nvim_win_get_cursor(0)[1] - 1, api.nvim_get_current_line()
  local request = context.read(buf, row, #line)
  local id = fim.warm(request)
  if id then
    sent = { id = id, buf = buf, tick = request.tick, row = row }
  end
end

---@param mode string that was entered
local function enter_mode(mode)
  if mode == "n" then
    return wait()
  end
  stop()
  if trigger.is_insert(mode) then
    sent = nil -- it continues until a request replaces it
  else
    cancel()
  end
end

function M.start()
  local on = notify.autocmds("prefetch")
  edited[api.nvim_get_current_buf()] = true -- an insert there started this module
  on({ "TextChanged", "InsertEnter" }, function(event)
    edited[event.buf] = true
  end)
  on({ "BufEnter", "CursorMoved", "TextChanged" }, wait)
  on("ModeChanged", function()
    enter_mode(vim.v.event.new_mode)
  end)
  on("User", function(event)
    sent = nil -- another host, or another model
    if event.data.state == "ready" then
      wait()
    end
  end, { pattern = "LCursorHostState" })
end

return M
