-- Tells the index of a project what the editor knows better: text that is not saved, files that
-- were entered or written, and that the user types. Only where there is an index, and never what
-- privacy.lua keeps back. Changed text is sent as a whole, so not while the user types: when a
-- buffer is left, and before a search.

local config = require("lcursor.config")
local context = require("lcursor.context")
local notify = require("lcursor.notify")
local privacy = require("lcursor.privacy")
local rpc = require("lcursor.rpc")
local states = require("lcursor.index.states")
local text = require("lcursor.text")

local M = {}

local api = vim.api

local ENTER_MS, TYPING_MS = 100, 1000
local MOST_BYTES = 1024 * 1024 -- larger files are not indexed

---@type table<integer, string> buffer -> path of which the host has its text
local sent = {}
---@type table<integer, boolean> buffers that may have another text than was sent
local dirty = {}
local typed_ms = 0

---@return boolean
local function is_on()
  local settings = config.get()
  return settings.enabled and settings.index.enabled
end

---@param buf integer
---@return string? path of its file; nil for what is in none
local function path_of(buf)
  return api.nvim_buf_is_loaded(buf) and context.file(buf) or nil
end

---@param buf integer
local function take_back(buf)
  local path = sent[buf]
  if path then
    sent[buf] = nil
    rpc.notify("index.buffer", { path = path, is_changed = false, text = "" })
  end
end

---@param buf integer
---@param path string
local function send(buf, path)
  local count = api.nvim_buf_line_count(buf)
  local bytes = api.nvim_buf_get_offset(buf, count)
  if bytes > MOST_BYTES then
    return take_back(buf)
  end
  local all = text.join(api.nvim_buf_get_lines(buf, 0, count, false)) .. "\n"
  if privacy.has_private_key(all) then
    return take_back(buf)
  end
  if rpc.notify("index.buffer", { path = path, is_changed = true, text = all }) then
    sent[buf] = path
  end
end

---@param buf integer
local function look(buf)
  local path = path_of(buf)
  if not path or sent[buf] and sent[buf] ~= path then
    take_back(buf)
  end
  if not path or not is_on() or not states.is_alive(states.of(path)) then
    return
  end
  if not vim.bo[buf].modified or not config.get().index.unsaved then
    return take_back(buf)
  end
  local more = config.for_buffer(buf).completion.secrets
  local code = privacy.refusal(buf, more, function()
    look(buf)
  end)
  if not code then
    send(buf, path)
  elseif code ~= "checking" then
    take_back(buf)
  end
end

--- Send the texts that have changed since they were sent.
function M.flush()
  local bufs = vim.tbl_keys(dirty)
  dirty = {}
  for _, buf in ipairs(bufs) do
    if api.nvim_buf_is_valid(buf) then
      look(buf)
    end
  end
end

local flush_later = vim.schedule_wrap(notify.guarded(M.flush))

---@param buf integer
local function enter(buf)
  local path = path_of(buf)
  if path and is_on() and config.get().index.auto and buf == api.nvim_get_current_buf() then
    rpc.notify("index.enter", { path = path })
  end
end

--- Tell the index of a project about the changed buffers that are in it.
---@param state lcursor.IndexState
local function tell_all(state)
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local path = path_of(buf)
    if path and vim.bo[buf].modified and states.of(path) == state then
      dirty[buf] = true
    end
  end
  flush_later()
end

--- A new host runs, which knows of nothing.
function M.greet()
  sent = {}
  enter(api.nvim_get_current_buf())
end

--- Begin to tell.
function M.start()
  local group = api.nvim_create_augroup("lcursor.index", {})
  ---@param events string|string[]
  ---@param callback fun(event: vim.api.keyset.create_autocmd.callback_args)
  local function at(events, callback)
    api.nvim_create_autocmd(events, { group = group, callback = notify.guarded(callback) })
  end
  at({ "TextChanged", "TextChangedI", "TextChangedP" }, function(event)
    dirty[event.buf] = true
    local now = vim.uv.now()
    if event.event:find("^TextChanged[IP]") and now - typed_ms > TYPING_MS and states.is_busy() then
      typed_ms = now
      rpc.notify("index.typing")
    end
  end)
  at("BufReadPost", function(event)
    dirty[event.buf] = true
    flush_later()
  end)
  at("BufLeave", M.flush)
  at("BufEnter", function(event)
    vim.defer_fn(
      notify.guarded(function()
        if api.nvim_buf_is_valid(event.buf) then
          enter(event.buf)
        end
      end),
      ENTER_MS
    )
  end)
  at("BufWritePost", function(event)
    local path = path_of(event.buf)
    dirty[event.buf] = nil
    if path and is_on() and states.is_alive(states.of(path)) then
      rpc.notify("index.saved", { path = path })
      take_back(event.buf)
    end
  end)
  at("BufUnload", function(event)
    dirty[event.buf] = nil
    take_back(event.buf)
  end)
  states.listen(tell_all)
end

return M
