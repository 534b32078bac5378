-- A suggestion for a completion menu or a language client, under the same rules as ghost text. The
-- caller decides when, so `auto_trigger`, the debounce and an open menu do not matter here.

local complete = require("lcursor.complete")
local config = require("lcursor.config")
local context = require("lcursor.editor.context")
local gate = require("lcursor.complete.gate")
local fim = require("lcursor.complete.fim")
local text = require("lcursor.text")

local M = {}

local api = vim.api

--- Return whether a buffer may have suggestions at all; cheap enough for each key.
function M.is_offered(buf)
  local code = gate.buffer_block_reason(buf)
  return code == nil or code == "checking"
end

---@param spot lcursor.Spot
---@return string? code
---@return boolean single_line
local function block_reason(spot)
  local buf, own = spot.buf, config.for_buffer(spot.buf)
  if buf ~= api.nvim_get_current_buf() then
    return "left", false
  end
  -- There is no suggestion until git has answered; the next key tries again.
  local code = gate.buffer_block_reason(buf) or gate.mode_block_reason(true) or fim.block_reason()
  if code then
    return code, false
  end
  local line = api.nvim_buf_get_lines(buf, spot.row, spot.row + 1, false)[1]
  if not line or spot.col > #line then
    return "left", false
  end
  return gate.position_block_reason(buf, spot.row, spot.col, own, spot.is_manual)
end

--- Request a suggestion at a position of the current buffer.
---@param spot lcursor.Spot
---@param done fun(text: string, replaces: integer) called once, later, unless cancelled: "" if
---there is none; bytes to the right that it replaces, all of the line or 0
---@param first_line? fun(text: string) called once the first of several lines is complete
---@return fun() cancel
function M.ask(spot, done, first_line)
  complete.start()
  local is_over, id = false, nil
  ---@param replaces? integer
  local function finish(suggested, replaces)
    if not is_over then
      is_over = true
      done(text.is_visible(suggested) and suggested or "", replaces or 0)
    end
  end
  local code, single_line = block_reason(spot)
  local listener = {
    partial = function(_, so_far)
      local line = text.first_line(so_far)
      if first_line and not is_over and #line < #so_far and text.is_visible(line) then
        local callback = first_line
        first_line = nil
        callback(line)
      end
    end,
    done = function(_, answer)
      finish(single_line and text.first_line(answer.text) or answer.text, answer.replaces)
    end,
  }
  if not code then
    local request = context.read(spot.buf, spot.row, spot.col)
    request.trigger, request.single_line = spot.is_manual and "manual" or "auto", single_line
    id = fim.ask(request, listener)
  end
  if not id then
    vim.schedule(function()
      finish("")
    end)
  end
  return function()
    if not is_over then
      is_over = true
      if id then
        fim.cancel(id, listener)
      end
    end
  end
end

return M
