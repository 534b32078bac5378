-- What each project's index is doing, as the host tells it: for the statusline, for the other files
-- here, and for the user who asked for an index. Owns the table of states; asks nobody.

local notify = require("lcursor.notify")
local rpc = require("lcursor.rpc")
local status = require("lcursor.status")

local M = {}

---@type table<string, lcursor.IndexState> root -> what was told last
local states = {}
---@type table<string, boolean> root -> the user waits for its end
local awaited = {}
---@type boolean the user waits for the next root that is told
local is_next_awaited = false
---@type table<string, boolean> remarks that were told
local told = {}
---@type fun(state: lcursor.IndexState)? called when an index comes to life
local on_alive

local BUSY = { surveying = true, reading = true, embedding = true }

---@param state? lcursor.IndexState
---@return boolean whether there is an index that can be asked and told
function M.is_alive(state)
  return state ~= nil and state.phase ~= "absent" and state.phase ~= "idle"
end

---@param state lcursor.IndexState
---@return integer? percent of what it is doing; nil where that is not known
local function percent(state)
  if state.total > 0 and state.done < state.total then
    return math.floor(100 * state.done / state.total)
  end
end

---@param state lcursor.IndexState
---@return string for the statusline
function M.short(state)
  if state.phase == "failed" then
    return "index: failed"
  elseif state.phase == "surveying" then
    return "index"
  elseif BUSY[state.phase] or state.phase == "paused" then
    local how = percent(state)
    return how and ("index %d%%"):format(how) or ""
  end
  return ""
end

--- One sentence about an index, for people.
---@param state lcursor.IndexState
---@return string
function M.sentence(state)
  local left = state.seconds_left >= 0 and (", %.0f s left"):format(state.seconds_left) or ""
  local words = {
    absent = "its worker is not running",
    idle = "not indexed",
    surveying = "looking which files there are",
    reading = ("%d of %d files are read%s"):format(state.done, state.total, left),
    embedding = ("searchable; %d of %d pieces have a vector%s"):format(
      state.done,
      state.total,
      left
    ),
    paused = "resting while you type",
    ready = ("ready: %d files, %d pieces, %d definitions"):format(
      state.files,
      state.chunks,
      state.symbols
    ),
    failed = "failed",
  }
  local text = words[state.phase] or state.phase
  return state.detail ~= "" and (text .. ": " .. state.detail) or text
end

local function tell_status()
  local text = ""
  for _, state in pairs(states) do
    local short = M.short(state)
    text = short ~= "" and short or text
  end
  status.set_index(text)
end

--- Tell the user, who asked for this index, how far it is.
---@param state lcursor.IndexState
local function tell_progress(state)
  local name = vim.fs.basename(state.root)
  local is_over = state.phase == "ready" or state.phase == "failed"
  if is_over then
    awaited[state.root] = nil
  end
  if state.phase == "failed" then
    notify.warn(("the index of %s failed: %s"):format(name, state.detail))
  elseif state.phase ~= "paused" and state.phase ~= "idle" then
    notify.progress(("index of %s: %s"):format(name, M.sentence(state)), is_over)
  end
end

---@param state lcursor.IndexState
local function set(state)
  local before = states[state.root]
  states[state.root] = state
  tell_status()
  if is_next_awaited and state.phase ~= "idle" then
    awaited[state.root], is_next_awaited = true, false
  end
  if awaited[state.root] then
    tell_progress(state)
  end
  for _, remark in ipairs(state.remarks) do
    local key = state.root .. "\0" .. remark
    if not told[key] then
      told[key] = true
      notify.warn(("index of %s: %s"):format(vim.fs.basename(state.root), remark))
    end
  end
  if not before or before.phase ~= state.phase then
    status.emit("LCursorIndexState", vim.deepcopy(state))
  end
  local is_new = not before or before.pid ~= state.pid
  if on_alive and M.is_alive(state) and (is_new or not M.is_alive(before)) then
    on_alive(state)
  end
end

--- Show how far the index of a root is until it is done.
---@param root string
function M.await(root)
  awaited[root] = true
end

--- The same for the next root whose index does something.
function M.await_next()
  is_next_awaited = true
end

--- The state of the index that a file is in, or would be.
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

---@return lcursor.IndexState[] all that are known, by their roots
function M.all()
  local found = vim.tbl_values(states)
  table.sort(found, function(one, other)
    return one.root < other.root
  end)
  return found
end

---@return boolean whether any worker has work to do
function M.is_busy()
  return vim.iter(states):any(function(_, state)
    return BUSY[state.phase] or state.phase == "paused"
  end)
end

--- Forget all: the host is gone.
function M.clear()
  states, awaited, is_next_awaited = {}, {}, false
  tell_status()
end

---@param fn fun(state: lcursor.IndexState)
function M.listen(fn)
  on_alive = fn
end

rpc.on("index.state", set)

return M
