-- Sends the index of a project unsaved text, files that were entered or written, and typing.
-- Only if there is an index, and never what privacy.lua excludes. Modified text is sent as a whole,
-- so not while the user types: when a buffer is left, and before a search.

local config = require("lcursor.config")
local context = require("lcursor.editor.context")
local notify = require("lcursor.ui.notify")
local privacy = require("lcursor.editor.privacy")
local rpc = require("lcursor.host.rpc")
local states = require("lcursor.index.states")
local text = require("lcursor.text")

local M = {}

local api = vim.api

local ENTER_MS, TYPING_MS = 100, 1000
local MAX_BYTES = 1024 * 1024 -- larger files are not indexed

---@type table<integer, string> buffer -> path whose unsaved text the host has
local sent = {}
---@type table<integer, boolean> buffers whose text may have changed since it was sent
local dirty = {}
local typed_ms = 0

local function is_on()
  local settings = config.get()
  return settings.enabled and settings.index.enabled
end

---@return string? path of its file; nil for what is in none
local function path_of(buf)
  return api.nvim_buf_is_loaded(buf) and context.file(buf) or nil
end

local function withdraw(buf)
  local path = sent[buf]
  if path then
    sent[buf] = nil
    rpc.notify("index.buffer", { path = path, is_changed = false, text = "" })
  end
end

local function send(buf, path)
  local count = api.nvim_buf_line_count(buf)
  local bytes = api.nvim_buf_get_offset(buf, count)
  if bytes > MAX_BYTES then
    return withdraw(buf)
  end
  local all = text.join(api.nvim_buf_get_lines(buf, 0, count, false)) .. "\n"
  if privacy.has_private_key(all) then
    return withdraw(buf)
  end
  if rpc.notify("index.buffer", { path = path, is_changed = true, text = all }) then
    sent[buf] = path
  end
end

--- Bring what the host has of a buffer up to date.
local function update(buf)
  local path = path_of(buf)
  if not path or sent[buf] and sent[buf] ~= path then
    withdraw(buf)
  end
  if not path or not is_on() or not states.is_alive(states.of(path)) then
    return
  end
  if not vim.bo[buf].modified then
    return withdraw(buf)
  end
  local more = config.for_buffer(buf).privacy.exclude
  local code = privacy.block_reason(buf, more, function()
    update(buf)
  end)
  if not code then
    send(buf, path)
  elseif code ~= "checking" then
    withdraw(buf)
  end
end

--- Send the texts that have changed.
function M.flush()
  local bufs = vim.tbl_keys(dirty)
  dirty = {}
  for _, buf in ipairs(bufs) do
    if api.nvim_buf_is_valid(buf) then
      update(buf)
    end
  end
end

local flush_later = vim.schedule_wrap(notify.guarded(M.flush))

local function enter(buf)
  local path = path_of(buf)
  if path and is_on() and buf == api.nvim_get_current_buf() then
    rpc.notify("index.enter", { path = path })
  end
end

--- Send the modified buffers of a project.
local function send_all(state)
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local path = path_of(buf)
    if path and vim.bo[buf].modified and states.of(path) == state then
      dirty[buf] = true
    end
  end
  flush_later()
end

--- Start over: a new host has no text.
function M.on_new_host()
  sent = {}
  enter(api.nvim_get_current_buf())
end

function M.start()
  local on = notify.autocmds("index")
  on({ "TextChanged", "TextChangedI", "TextChangedP" }, function(event)
    dirty[event.buf] = true
    local now = vim.uv.now()
    if event.event:find("^TextChanged[IP]") and now - typed_ms > TYPING_MS and states.is_busy() then
      typed_ms = now
      rpc.notify("index.typing")
    end
  end)
  on("BufReadPost", function(event)
    dirty[event.buf] = true
    flush_later()
  end)
  on("BufLeave", M.flush)
  on("BufEnter", function(event)
    notify.later(ENTER_MS, function()
      if api.nvim_buf_is_valid(event.buf) then
        enter(event.buf)
      end
    end)
  end)
  on("BufWritePost", function(event)
    local path = path_of(event.buf)
    dirty[event.buf] = nil
    if path and is_on() and states.is_alive(states.of(path)) then
      rpc.notify("index.saved", { path = path })
      withdraw(event.buf)
    end
  end)
  on("BufUnload", function(event)
    dirty[event.buf] = nil
    withdraw(event.buf)
  end)
  states.on_start(send_all)
end

return M
