-- The state of each project's index, as the host reports it: for the statusline and for the user
-- who started an index.

local lsp_progress = require("lcursor.ui.lsp_progress")
local notify = require("lcursor.ui.notify")
local numbers = require("lcursor.text.numbers")
local rpc = require("lcursor.host.rpc")
local status = require("lcursor.host.status")

local M = {}

---@type table<string, lcursor.IndexState> by root
local states = {}
---@type table<string, table<string, boolean>> by root whose progress is shown: the phases that were
local awaited = {}
---@type boolean whether the progress of the next root is shown
local is_next_awaited = false
---@type table<string, boolean> remarks that were shown
local remarked = {}
---@type fun(state: lcursor.IndexState)? called when an index starts
local on_start

local MIN_LEFT = 50 -- files or chunks; less work is not reported unless the user started it
local BUSY = { surveying = true, reading = true, embedding = true, paused = true }

---@param state? lcursor.IndexState
---@return boolean whether there is an index that answers
function M.is_alive(state)
  return state ~= nil and state.phase ~= "absent" and state.phase ~= "idle"
end

---@param state lcursor.IndexState
---@return string for the statusline
function M.short(state)
  if state.phase == "failed" then
    return "index: failed"
  elseif state.phase == "surveying" then
    return "index"
  elseif BUSY[state.phase] and state.total > 0 and state.done < state.total then
    return ("index %d%%"):format(math.floor(100 * state.done / state.total))
  end
  return ""
end

---@param state lcursor.IndexState
---@return string the memory of its worker, after a comma; "" if unknown
function M.memory(state)
  local bytes = state.memory_bytes
  return bytes > 0 and (", %s of memory"):format(numbers.bytes(bytes)) or ""
end

--- Describe a state in one sentence.
---@param s lcursor.IndexState
function M.sentence(s)
  local left = s.seconds_left >= 0 and (", %s left"):format(numbers.duration(s.seconds_left)) or ""
  local ready = "ready: %d files, %d chunks, %d definitions"
  local texts = {
    absent = "its worker is not running",
    idle = "not indexed",
    surveying = "scanning files",
    reading = ("%d of %d files read%s"):format(s.done, s.total, left),
    embedding = ("%d of %d chunks embedded%s; searchable"):format(s.done, s.total, left),
    paused = "paused while you type or a model answers",
    ready = ready:format(s.files, s.chunks, s.symbols),
    failed = "failed",
  }
  local text = texts[s.phase] or s.phase
  return s.detail ~= "" and (text .. ": " .. s.detail) or text
end

local function update_status()
  local text = ""
  for _, state in pairs(states) do
    local short = M.short(state)
    text = short ~= "" and short or text
  end
  status.set_feature("index", text)
end

---@param state lcursor.IndexState
---@return string of its progress
local function title_of(state)
  return "index of " .. vim.fs.basename(state.root)
end

--- Show the progress of an index that the user started, or that has much to do. In the message line
--- each phase is shown once: it takes minutes, and would hide all other messages.
---@param state lcursor.IndexState
local function show_progress(state)
  local title, text, phases = title_of(state), M.sentence(state), awaited[state.root]
  local fraction = state.total > 0 and state.done / state.total or nil
  if state.phase == "ready" or state.phase == "failed" then
    awaited[state.root] = nil
    local is_shown = lsp_progress.finish(title, text)
    if phases and state.phase == "failed" then
      notify.warn(("the %s failed: %s"):format(title, state.detail))
    elseif phases and not is_shown then
      notify.info(("%s: %s"):format(title, text))
    end
  elseif state.phase ~= "paused" and state.phase ~= "idle" then
    local is_long = BUSY[state.phase] and state.total - state.done >= MIN_LEFT
    local is_reported = (phases or is_long or lsp_progress.is_shown(title))
      and lsp_progress.report(title, title, text, fraction)
    if phases and not is_reported and not phases[state.phase] then
      phases[state.phase] = notify.progress(("%s (%s)"):format(text, title))
    end
  end
end

local function set(state)
  local before = states[state.root]
  states[state.root] = state
  update_status()
  if is_next_awaited and state.phase ~= "idle" then
    awaited[state.root], is_next_awaited = {}, false
  end
  show_progress(state)
  for _, remark in ipairs(state.remarks) do
    local key = state.root .. "\0" .. remark
    if not remarked[key] then
      remarked[key] = true
      notify.warn(("%s: %s"):format(title_of(state), remark))
    end
  end
  if not before or before.phase ~= state.phase then
    status.emit("LCursorIndexState", vim.deepcopy(state))
  end
  local is_new = not before or before.pid ~= state.pid
  if on_start and M.is_alive(state) and (is_new or not M.is_alive(before)) then
    on_start(state)
  end
end

--- Show the progress of an index until it is ready.
---@param root? string nil is the next one that does something
function M.await(root)
  if root then
    awaited[root] = {}
  else
    is_next_awaited = true
  end
end

--- Return the state of the index that a file is in, or would be.
---@param path string absolute
---@return lcursor.IndexState?
function M.of(path)
  local real = vim.uv.fs_realpath(path) or path
  local best ---@type lcursor.IndexState?
  for root, state in pairs(states) do
    local is_in = real == root or vim.startswith(real, root .. "/")
    if is_in and (not best or #root > #best.root) then
      best = state
    end
  end
  return best
end

---@return lcursor.IndexState[] sorted by root
function M.all()
  local found = vim.tbl_values(states)
  table.sort(found, function(one, other)
    return one.root < other.root
  end)
  return found
end

---@return boolean whether any index has work to do
function M.is_busy()
  return vim.iter(states):any(function(_, state)
    return BUSY[state.phase] or false
  end)
end

--- Forget all states: the host is gone.
function M.clear()
  for _, state in pairs(states) do
    lsp_progress.finish(title_of(state))
  end
  states, awaited, is_next_awaited = {}, {}, false
  update_status()
end

--- Call a function when an index starts.
---@param callback fun(state: lcursor.IndexState)
function M.on_start(callback)
  on_start = callback
end

rpc.on("index.state", set)

return M
