-- The keys of edits, mapped in a buffer only while they do something: those for hunks while it has
-- open ones, the one that stops while an edit of it runs. A map of the user's that was there is
-- restored; one that was made meanwhile is left alone.

local config = require("lcursor.config")
local notify = require("lcursor.notify")
local proposals = require("lcursor.edit.proposals")

local M = {}

local api = vim.api

--- Return the proposal of the hunk at the cursor, else the newest that is open.
---@return lcursor.EditProposal?
function M.proposal()
  local hunk = require("lcursor.edit.hunks").at_cursor()
  if hunk then
    return hunk.part.proposal
  end
  return vim.iter(proposals.all()):rev():find(function(proposal)
    return not proposal.is_hidden and not proposals.is_decided(proposal)
  end)
end

---@class (exact) lcursor.EditKey
---@field name string of the setting and of the <Plug> map
---@field modes string a letter each
---@field text string for the help
---@field run fun()

---@type lcursor.EditKey[]
local KEYS = {}

---@param name string
---@param modes string
---@param run fun()
---@param text string
local function add(name, modes, run, text)
  table.insert(KEYS, { name = name, modes = modes, run = run, text = text })
end

--- Return a function that calls a function of hunks.lua.
---@param name string
---@return fun()
local function hunks(name)
  return function()
    require("lcursor.edit.hunks")[name]()
  end
end

---@param by integer
---@return fun()
local function go(by)
  return function()
    require("lcursor.edit.hunks").next(by * vim.v.count1)
  end
end

--- Return a function that calls a function of edits.lua with the proposal at the cursor.
---@param name string
---@param arg any
---@return fun()
local function edits(name, arg)
  return function()
    local proposal = M.proposal()
    if not proposal then
      return notify.info("no changes are proposed")
    end
    require("lcursor.edit.edits")[name](proposal, arg)
  end
end

local function stop()
  require("lcursor.edit").stop()
end

local function list()
  require("lcursor.edit.quickfix").open()
end

add("accept", "nx", hunks("accept"), "Accept hunk")
add("reject", "nx", hunks("reject"), "Reject hunk")
add("accept_file", "n", hunks("accept_file"), "Accept file")
add("reject_file", "n", hunks("reject_file"), "Reject file")
add("accept_turn", "n", edits("accept"), "Accept edit")
add("reject_turn", "n", edits("reject"), "Reject edit")
add("next", "nxo", go(1), "Next hunk")
add("previous", "nxo", go(-1), "Previous hunk")
add("list", "n", list, "List hunks")
add("object", "xo", hunks("select"), "Hunk text object")
add("edit", "n", hunks("edit"), "Edit hunk")
add("next_alternative", "n", edits("cycle", 1), "Next alternative")
add("previous_alternative", "n", edits("cycle", -1), "Previous alternative")
add("again", "n", edits("again"), "Try again")
add("stop", "n", stop, "Stop edit")

---@param name string
---@return string
local function plug_of(name)
  return name == "stop" and "<Plug>(lcursor-edit-stop)"
    or ("<Plug>(lcursor-hunk-%s)"):format((name:gsub("_", "-")))
end

--- Do what a key stands for; for the <Plug> maps.
---@param name string
function M.press(name)
  for _, each in ipairs(KEYS) do
    if each.name == name:gsub("-", "_") then
      require("lcursor.edit").start()
      return notify.guarded(each.run)()
    end
  end
end

--- Return the keys, for the help.
---@return { name: string, text: string, default: string }[]
function M.describe()
  local mappings = config.defaults().edit.mappings
  return vim.tbl_map(function(each)
    return { name = plug_of(each.name), text = each.text, default = mappings[each.name] }
  end, KEYS)
end

---@class (exact) lcursor.EditMapped
---@field mode string
---@field lhs string
---@field callback function
---@field before? table maparg() of the user's buffer-local map

---@type table<integer, { has_hunks: boolean, is_running: boolean, maps: lcursor.EditMapped[] }>
local mapped = {}

---@param buf integer the current one
---@param each lcursor.EditKey
---@param lhs string
---@param maps lcursor.EditMapped[]
local function map(buf, each, lhs, maps)
  local callback = notify.guarded(each.run)
  for mode in each.modes:gmatch(".") do
    if lhs ~= "" and vim.fn.hasmapto(plug_of(each.name), mode) == 0 then
      local before = vim.fn.maparg(lhs, mode, false, true)
      vim.keymap.set(mode, lhs, callback, {
        buffer = buf,
        nowait = true,
        desc = "lcursor: " .. each.text:lower(),
      })
      before = before.buffer == 1 and before or nil
      table.insert(maps, { mode = mode, lhs = lhs, callback = callback, before = before })
    end
  end
end

---@param buf integer the current one
---@param one lcursor.EditMapped
local function unmap(buf, one)
  local now = vim.fn.maparg(one.lhs, one.mode, false, true)
  if now.buffer == 1 and now.callback == one.callback then
    vim.keymap.del(one.mode, one.lhs, { buffer = buf })
    if one.before then
      vim.fn.mapset(one.mode, false, one.before)
    end
  end
end

--- Map the keys that a buffer needs now, and no others.
---@param buf integer
function M.sync(buf)
  if not api.nvim_buf_is_loaded(buf) then
    mapped[buf] = nil
    return
  end
  local has_hunks = #proposals.hunks(buf) > 0
  local is_running = #require("lcursor.edit").running(buf) > 0
  local now = mapped[buf] or { has_hunks = false, is_running = false, maps = {} }
  if now.has_hunks == has_hunks and now.is_running == is_running then
    return
  end
  local maps = {}
  mapped[buf] = { has_hunks = has_hunks, is_running = is_running, maps = maps }
  local mappings = config.for_buffer(buf).edit.mappings
  api.nvim_buf_call(buf, function()
    for i = #now.maps, 1, -1 do
      unmap(buf, now.maps[i])
    end
    for _, each in ipairs(KEYS) do
      if each.name == "stop" and is_running or each.name ~= "stop" and has_hunks then
        map(buf, each, mappings[each.name] or "", maps)
      end
    end
  end)
end

return M
