-- The index of a project, as the editor shows it. The Python host starts a process that does the
-- work.

local sync = require("lcursor.index.sync")
local context = require("lcursor.editor.context")
local host = require("lcursor.host")
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local search = require("lcursor.index.search")
local states = require("lcursor.index.states")

local M = {}

local started = false
---@type integer? process of the host
local host_pid

local function on_host_state()
  local pid = host.info().pid
  if pid ~= host_pid then
    host_pid = pid
    states.clear()
    if pid then
      vim.schedule(notify.guarded(sync.on_new_host))
    end
  end
end

--- Keep the index of the project up to date from now on, if there is one.
function M.start()
  if started then
    return
  end
  started = true
  sync.start()
  notify.autocmds("index.host")("User", on_host_state, { pattern = "LCursorHostState" })
  on_host_state()
end

---@return boolean whether the index may be used; reports it if not
function M.is_enabled()
  local is_on = requests.is_enabled("index", "the index is")
  if is_on then
    M.start()
  end
  return is_on
end

--- Run `:LCursor search {text}`.
---@param text? string a query, or @ and the beginning of a name; nil opens the picker
function M.search(text)
  if M.is_enabled() then
    search.run(text or "")
  end
end

--- Return the search of the current project, for the picker of another plugin.
---@return lcursor.Source? nil if the index is switched off, which is reported
function M.source()
  return M.is_enabled() and search.source(context.here()) or nil
end

---@return string? one sentence about the index of the current project; nil if there is none
function M.describe()
  local state = states.of(context.here())
  return state and states.sentence(state)
end

---@return lcursor.IndexState[] the indexes of this session
function M.states()
  return states.all()
end

return M
