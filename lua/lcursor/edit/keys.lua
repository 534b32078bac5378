-- Maps the keys of edits in a buffer: those for hunks while it has open ones, the one that stops
-- while an edit of it runs. A map of the user's that was there is put back; one that somebody made
-- meanwhile is left alone.

local config = require("lcursor.config")
local notify = require("lcursor.notify")
local store = require("lcursor.edit.store")

local M = {}

local api = vim.api

---@class (exact) lcursor.EditKey
---@field name string of the setting and of the <Plug> map
---@field modes string[]
---@field text string one sentence for the help
---@field run fun()

---@class (exact) lcursor.EditHeld
---@field mode string
---@field lhs string
---@field callback function
---@field before? table maparg() of the user's buffer-local map

---@type table<integer, { hunks: boolean, stop: boolean, keys: lcursor.EditHeld[] }> by buffer
local held = {}

--- Say whether an edit of a buffer runs; init.lua's.
---@type fun(buf: integer): boolean
M.is_stoppable = function()
  return false
end

---@param name string of a function in hunks.lua
---@param ... any
---@return fun()
local function act(name, ...)
  local args = { ... }
  return function()
    require("lcursor.edit.hunks")[name](unpack(args))
  end
end

--- The turn of the hunk at the cursor, else the newest that waits.
---@return lcursor.EditTurn?
function M.turn()
  local hunk = require("lcursor.edit.hunks").at_cursor()
  if hunk then
    return hunk.part.turn
  end
  local turns = store.turns()
  for i = #turns, 1, -1 do
    if not turns[i].is_hidden and not store.is_decided(turns[i]) then
      return turns[i]
    end
  end
end

---@param fn fun(turn: lcursor.EditTurn)
---@return fun()
local function with_turn(fn)
  return function()
    local turn = M.turn()
    if not turn then
      return notify.info("no changes are proposed")
    end
    fn(turn)
  end
end

---@param name string of a function in turns.lua
---@param ... any
---@return fun()
local function on_turn(name, ...)
  local args = { ... }
  return with_turn(function(turn)
    require("lcursor.edit.turns")[name](turn, unpack(args))
  end)
end

---@type lcursor.EditKey[]
local KEYS = {
  {
    name = "next",
    modes = { "n", "x", "o" },
    text = "Go to the next proposed change.",
    run = function()
      require("lcursor.edit.hunks").next(vim.v.count1)
    end,
  },
  {
    name = "previous",
    modes = { "n", "x", "o" },
    text = "Go to the one before.",
    run = function()
      require("lcursor.edit.hunks").next(-vim.v.count1)
    end,
  },
  {
    name = "accept",
    modes = { "n", "x" },
    text = "Take the change at the cursor; in Visual mode the part of it that is selected.",
    run = act("accept"),
  },
  {
    name = "reject",
    modes = { "n", "x" },
    text = "Refuse it, or the part that is selected.",
    run = act("reject"),
  },
  {
    name = "accept_file",
    modes = { "n" },
    text = "Take all changes of the file.",
    run = act("accept_file"),
  },
  {
    name = "reject_file",
    modes = { "n" },
    text = "Refuse all changes of the file.",
    run = act("reject_file"),
  },
  {
    name = "accept_turn",
    modes = { "n" },
    text = "Take all changes that came together, in all files; what no buffer has is written.",
    run = on_turn("accept"),
  },
  {
    name = "reject_turn",
    modes = { "n" },
    text = "Refuse all changes that came together.",
    run = on_turn("reject"),
  },
  {
    name = "object",
    modes = { "x", "o" },
    text = "The change, as a text object.",
    run = act("select"),
  },
  {
    name = "edit",
    modes = { "n" },
    text = "Open the new lines of the change in a window; what you :write there is what is taken.",
    run = act("edit"),
  },
  {
    name = "next_alternative",
    modes = { "n" },
    text = "Show another way of doing the same; behind the last one another is asked for.",
    run = on_turn("cycle", 1),
  },
  {
    name = "previous_alternative",
    modes = { "n" },
    text = "Show the one before.",
    run = on_turn("cycle", -1),
  },
  {
    name = "again",
    modes = { "n" },
    text = "Say what is wrong with the changes and have them made again.",
    run = on_turn("again"),
  },
  {
    name = "list",
    modes = { "n" },
    text = "List all proposed changes of all files in the quickfix list.",
    run = function()
      require("lcursor.edit.quickfix").open()
    end,
  },
}

---@type lcursor.EditKey
local STOP = {
  name = "stop",
  modes = { "n" },
  text = "Stop the edit that is being written.",
  run = function()
    require("lcursor.edit").stop()
  end,
}

--- Do what a key stands for; for the <Plug> maps.
---@param name string
function M.press(name)
  for _, key in ipairs({ STOP, unpack(KEYS) }) do
    if key.name == name:gsub("-", "_") then
      require("lcursor.edit").start()
      return notify.guarded(key.run)()
    end
  end
end

--- The keys, for the help.
---@return { name: string, text: string, default: string }[]
function M.describe()
  local mappings = config.defaults().edit.mappings
  return vim.tbl_map(function(key)
    local name = ("<Plug>(lcursor-hunk-%s)"):format((key.name:gsub("_", "-")))
    if key == STOP then
      name = "<Plug>(lcursor-edit-stop)"
    end
    return { name = name, text = key.text, default = mappings[key.name] }
  end, { STOP, unpack(KEYS) })
end

---@param buf integer
---@param key lcursor.EditKey
---@param lhs string
---@param into lcursor.EditHeld[]
local function map(buf, key, lhs, into)
  local plug = key == STOP and "<Plug>(lcursor-edit-stop)"
    or ("<Plug>(lcursor-hunk-%s)"):format((key.name:gsub("_", "-")))
  local callback = notify.guarded(key.run)
  for _, mode in ipairs(key.modes) do
    api.nvim_buf_call(buf, function()
      if lhs == "" or vim.fn.hasmapto(plug, mode) == 1 then
        return
      end
      local before = vim.fn.maparg(lhs, mode, false, true)
      vim.keymap.set(mode, lhs, callback, {
        buffer = buf,
        nowait = true,
        desc = "lcursor: " .. key.text,
      })
      table.insert(into, {
        mode = mode,
        lhs = lhs,
        callback = callback,
        before = before.buffer == 1 and before or nil,
      })
    end)
  end
end

---@param buf integer
---@param keys lcursor.EditHeld[]
local function unmap(buf, keys)
  if not api.nvim_buf_is_loaded(buf) then
    return
  end
  api.nvim_buf_call(buf, function()
    for i = #keys, 1, -1 do
      local key = keys[i]
      local now = vim.fn.maparg(key.lhs, key.mode, false, true)
      if now.buffer == 1 and now.callback == key.callback then
        vim.keymap.del(key.mode, key.lhs, { buffer = buf })
        if key.before then
          vim.fn.mapset(key.mode, false, key.before)
        end
      end
    end
  end)
end

--- Have the keys mapped in a buffer that it needs now, and no others.
---@param buf integer
function M.sync(buf)
  local has_hunks, is_running = false, false
  if api.nvim_buf_is_loaded(buf) then
    has_hunks, is_running = #store.hunks(buf) > 0, M.is_stoppable(buf)
  end
  local now = held[buf]
  if now and now.hunks == has_hunks and now.stop == is_running then
    return
  end
  if now then
    held[buf] = nil
    unmap(buf, now.keys)
  end
  if not has_hunks and not is_running then
    return
  end
  now = { hunks = has_hunks, stop = is_running, keys = {} }
  held[buf] = now
  local mappings = config.for_buffer(buf).edit.mappings
  for _, key in ipairs(has_hunks and KEYS or {}) do
    map(buf, key, mappings[key.name] or "", now.keys)
  end
  if is_running then
    map(buf, STOP, mappings.stop or "", now.keys)
  end
end

return M
