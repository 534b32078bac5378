-- The keys of edits, mapped in a buffer only while they do something: those for hunks while it has
-- open ones, the one that stops while an edit of it runs.

local config = require("lcursor.config")
local notify = require("lcursor.notify")
local proposals = require("lcursor.edit.proposals")
local temporary_keymap = require("lcursor.ui.temporary_keymap")

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

--- Return a function that calls a function of hunks.lua.
---@param by? integer a step, repeated [count] times
---@return fun()
local function hunks(name, by)
  return function()
    require("lcursor.edit.hunks")[name](by and by * vim.v.count1)
  end
end

--- Return a function that calls a function of edits.lua with the proposal at the cursor.
---@param by? integer
---@return fun()
local function edits(name, by)
  return function()
    local proposal = M.proposal()
    if not proposal then
      return notify.info("no open hunks")
    end
    require("lcursor.edit.edits")[name](proposal, by)
  end
end

local function stop()
  require("lcursor.edit").stop()
end

local function list()
  require("lcursor.edit.quickfix").open()
end

---@class (exact) lcursor.EditKey
---@field [1] string name of the setting and of the <Plug> map
---@field [2] string modes, a letter each
---@field [3] fun()
---@field [4] string for the help

---@type lcursor.EditKey[]
local KEYS = {
  { "accept", "nx", hunks("accept"), "Accept hunk" },
  { "reject", "nx", hunks("reject"), "Reject hunk" },
  { "accept_file", "n", hunks("accept_file"), "Accept file" },
  { "reject_file", "n", hunks("reject_file"), "Reject file" },
  { "accept_turn", "n", edits("accept"), "Accept edit" },
  { "reject_turn", "n", edits("reject"), "Reject edit" },
  { "next", "nxo", hunks("next", 1), "Next hunk" },
  { "previous", "nxo", hunks("next", -1), "Previous hunk" },
  { "list", "n", list, "List hunks" },
  { "object", "xo", hunks("select"), "Hunk text object" },
  { "edit", "n", hunks("edit"), "Edit hunk" },
  { "next_alternative", "n", edits("cycle", 1), "Next alternative" },
  { "previous_alternative", "n", edits("cycle", -1), "Previous alternative" },
  { "again", "n", edits("again"), "Try again" },
  { "stop", "n", stop, "Stop edit" },
}

---@return string
local function plug_of(name)
  return name == "stop" and "<Plug>(lcursor-edit-stop)"
    or ("<Plug>(lcursor-hunk-%s)"):format((name:gsub("_", "-")))
end

--- Do what a key stands for; for the <Plug> maps.
---@param name string
function M.press(name)
  for _, key in ipairs(KEYS) do
    if key[1] == name:gsub("-", "_") then
      require("lcursor.edit").start()
      return notify.guarded(key[3])()
    end
  end
end

--- Return the keys, for the help.
---@return { name: string, text: string, default: string }[]
function M.describe()
  local mappings = config.defaults().edit.mappings
  return vim.tbl_map(function(key)
    return { name = plug_of(key[1]), text = key[4], default = mappings[key[1]] }
  end, KEYS)
end

---@class (exact) lcursor.EditMapped
---@field has_hunks boolean
---@field is_running boolean
---@field maps lcursor.TemporaryKeymap[]

---@type table<integer, lcursor.EditMapped> by buffer
local mapped = {}

--- Map a key, unless the user has mapped what it does.
---@param key lcursor.EditKey
---@param maps lcursor.TemporaryKeymap[] it is added to these
local function map(buf, key, lhs, maps)
  local desc, callback = "lcursor: " .. key[4]:lower(), notify.guarded(key[3])
  for mode in key[2]:gmatch(".") do
    if lhs ~= "" and vim.fn.hasmapto(plug_of(key[1]), mode) == 0 then
      table.insert(maps, temporary_keymap.set(buf, mode, lhs, callback, { desc = desc }))
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
  vim.iter(now.maps):rev():each(temporary_keymap.restore)
  api.nvim_buf_call(buf, function()
    for _, key in ipairs(KEYS) do
      if key[1] == "stop" and is_running or key[1] ~= "stop" and has_hunks then
        map(buf, key, mappings[key[1]] or "", maps)
      end
    end
  end)
end

return M
