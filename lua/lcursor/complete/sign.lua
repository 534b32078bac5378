-- Shows at the end of the cursor's line what the first suggestion waits for: the host starts, loads
-- the model, or reads the file. Only in a pause: the next key hides it.

local config = require("lcursor.config")
local keymaps = require("lcursor.editor.keymaps")
local notify = require("lcursor.ui.notify")
local status = require("lcursor.host.status")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.sign")
M.pause_ms = 700

local timer
---@type integer? buffer in which it is drawn
local drawn
---@type number? when the user began to wait, in ms
local began_ms
---@type boolean whether the host has answered a request since it started
local is_answered = false

---@return string? what the host is doing; nil if it is not the first suggestion that waits for it
local function text()
  local it = status.get()
  if it.state == "ready" then
    return not is_answered and "reading this file" or nil
  elseif it.state == "starting" then
    return "starting"
  elseif it.state ~= "loading_model" then
    return nil
  end
  return config.completion_server() and "connecting to the model" or "loading the model"
end

--- Hide it until the user waits again.
---@param has_left? boolean Insert mode was left, so that another wait begins
function M.hide(has_left)
  began_ms = not has_left and began_ms or nil
  if timer then
    timer:stop()
  end
  if drawn then
    pcall(api.nvim_buf_clear_namespace, drawn, namespace, 0, -1)
    drawn = nil
  end
end

local draw = vim.schedule_wrap(notify.guarded(function()
  local what, buf = text(), api.nvim_get_current_buf()
  local is_other = keymaps.is_mapped("next_edit", buf) -- a next edit is shown
  if not what or not began_ms or is_other or not api.nvim_get_mode().mode:find("^i") then
    return M.hide()
  end
  drawn = buf
  local seconds = (vim.uv.hrtime() / 1e6 - began_ms) / 1000
  api.nvim_buf_set_extmark(drawn, namespace, api.nvim_win_get_cursor(0)[1] - 1, 0, {
    id = 1,
    virt_text = { { (" lcursor is %s, %.0f s"):format(what, seconds), "LCursorGhostCount" } },
    virt_text_pos = "eol",
    undo_restore = false,
  })
end))

--- Show it after a pause, as long as nothing was answered.
function M.wait()
  if text() then
    began_ms = began_ms or vim.uv.hrtime() / 1e6
    timer = timer or assert(vim.uv.new_timer())
    timer:start(M.pause_ms, 1000, draw)
  end
end

--- Note that the host has answered a request.
function M.answered()
  is_answered, began_ms = true, nil
  M.hide()
end

--- Note that the state of the host changed: the next request is the first one again.
function M.changed()
  is_answered = false
end

return M
