-- Maps the keys of a group of actions (keys.lua) in a buffer, and restores the user's mappings
-- afterwards. Where a group yields, a default key that the user has mapped stays theirs; a key that
-- they set in the options is always mapped.

local config = require("lcursor.config")
local keys = require("lcursor.config.keys")
local notify = require("lcursor.ui.notify")

local M = {}

local api = vim.api
local DESC = "lcursor: "

---@class (exact) lcursor.Keymap
---@field mode string one letter
---@field lhs string
---@field callback fun(): any
---@field before? table maparg() of the user's buffer-local mapping

---@class (exact) lcursor.MappedGroup
---@field maps lcursor.Keymap[]
---@field shown table<string, string> by mode and action: its key, which may be the user's mapping

---@type table<string, table<integer, lcursor.MappedGroup>> by group and buffer
local mapped = vim.tbl_map(function()
  return {}
end, keys.groups)

---@param fn fun()
local function with_buffer(buf, fn)
  if buf == api.nvim_get_current_buf() then
    fn()
  elseif api.nvim_buf_is_valid(buf) then
    api.nvim_buf_call(buf, fn)
  end
end

--- Call a function, and return what it returns; its errors are reported.
---@param fn fun(...): any
---@return any
function M.call(fn, ...)
  local result
  notify.guarded(function(...)
    result = fn(...)
  end)(...)
  return result
end

---@return table<string, any> the keys of a group as they are set, by action
local function settings_of(group, buf)
  local path = vim.split(group.option, ".", { plain = true })
  return vim.tbl_get(config.for_buffer(buf), unpack(path))
end

--- Whether a mapping is one of ours.
---@param map table as maparg() gives it
function M.is_own(map)
  return vim.startswith(map.desc or "", DESC)
end

--- Return the user's mapping of a key in the current buffer.
---@return table? as maparg() gives it
local function users_map(lhs, mode)
  local map = vim.fn.maparg(lhs, mode, false, true)
  return next(map) and not M.is_own(map) and map or nil
end

--- Return the key that the user has mapped to a <Plug> map.
---@return string?
local function users_key(plug, mode)
  for _, maps in ipairs({ api.nvim_buf_get_keymap(0, mode), api.nvim_get_keymap(mode) }) do
    for _, map in ipairs(maps) do
      if map.rhs and map.rhs:find(plug, 1, true) then
        return map.lhs
      end
    end
  end
end

--- Whether the key of an action is a default that is left to the user where they have mapped it.
---@param group lcursor.KeyGroup
---@param key lcursor.Key
---@param mode string one letter
---@param buf? integer
function M.yields(group, key, mode, buf)
  local yields = group.yields or (key.yields or ""):find(mode, 1, true) ~= nil
  return yields and not config.is_set(group.option .. "." .. key[1], buf)
end

--- Find the key of an action in the current buffer.
---@param settings table<string, any> of the group
---@return string? lhs
---@return boolean is_ours whether it is for us to map
local function find(group, key, mode, settings, buf)
  local plug = keys.plug(group, key)
  if vim.fn.hasmapto(plug, mode) == 1 then
    return users_key(plug, mode), false
  end
  local lhs = settings.enabled ~= false and settings[key[1]] or ""
  if lhs == "" or (M.yields(group, key, mode, buf) and users_map(lhs, mode)) then
    return nil, false
  end
  return lhs, true
end

--- Return the key of an action in a buffer, for a hint.
---@param name string of the group
---@param mode? string one letter; by default the first one of the action
---@return string? nil if there is none
function M.shown(name, action, buf, mode)
  local group, entry, lhs = keys.groups[name], mapped[name][buf], nil
  for _, key in ipairs(group.keys) do
    if key[1] == action then
      local own = mode and key[3]:find(mode, 1, true) and mode or key[3]:sub(1, 1)
      if entry then
        return entry.shown[own .. action]
      end
      with_buffer(buf, function()
        lhs = find(group, key, own, settings_of(group, buf), buf)
      end)
    end
  end
  return lhs
end

--- Describe the keys of a group that a buffer has; those for the next and the previous one in one
--- line.
---@param name string of the group
---@return string[] lines
function M.describe(name, buf)
  local cells, width = {}, 0
  for _, key in ipairs(keys.groups[name].keys) do
    local lhs = M.shown(name, key[1], buf)
    local above = cells[#cells]
    if lhs and above and above[3]:gsub("^next", "prev") == key[1] and above[3] ~= key[1] then
      above[1], above[2] = above[1] .. " " .. lhs, above[2]:gsub("^Next", "Next, previous")
      width = math.max(width, #above[1])
    elseif lhs then
      table.insert(cells, { lhs, key[4], key[1] })
      width = math.max(width, #lhs)
    end
  end
  return vim.tbl_map(function(cell)
    return ("%-" .. width .. "s  %s"):format(cell[1], cell[2])
  end, cells)
end

--- Map a key in the current buffer.
---@param opts vim.api.keyset.keymap
---@return lcursor.Keymap
local function set(mode, lhs, callback, opts)
  local before = users_map(lhs, mode)
  opts.callback, opts.noremap, opts.silent = callback, true, true
  api.nvim_buf_set_keymap(0, mode, lhs, "", opts)
  before = before and before.buffer == 1 and before or nil
  return { mode = mode, lhs = lhs, callback = callback, before = before }
end

--- Unmap a key in the current buffer, and restore what was there. One that was mapped meanwhile is
--- left alone.
---@param map lcursor.Keymap
local function restore(map)
  local now = vim.fn.maparg(map.lhs, map.mode, false, true)
  if now.buffer == 1 and now.callback == map.callback then
    api.nvim_buf_del_keymap(0, map.mode, map.lhs)
    if map.before then
      vim.fn.mapset(map.mode, false, map.before)
    end
  end
end

--- Map the keys of a group in a buffer, unless they are mapped.
---@param name string of the group
---@param press fun(action: string, lhs: string): string? does what a key stands for
function M.map(name, buf, press)
  if mapped[name][buf] then
    return
  end
  local group = keys.groups[name]
  if group.covers then
    M.unmap(group.covers, buf)
  end
  local settings = settings_of(group, buf)
  local entry = { maps = {}, shown = {} } ---@type lcursor.MappedGroup
  mapped[name][buf] = entry
  local function map(key, mode)
    local lhs, is_ours = find(group, key, mode, settings, buf)
    entry.shown[mode .. key[1]] = lhs
    if not lhs or not is_ours then
      return
    end
    local is_prefix = vim.iter(settings):any(function(_, other)
      return type(other) == "string" and other ~= lhs and vim.startswith(other, lhs)
    end)
    local function callback()
      return M.call(press, key[1], lhs)
    end
    local opts = { desc = DESC .. key[4]:lower(), nowait = not is_prefix }
    opts.expr, opts.replace_keycodes = key.is_expr, key.is_expr
    table.insert(entry.maps, set(mode, lhs, callback, opts))
  end
  with_buffer(buf, function()
    for _, key in ipairs(group.keys) do
      for mode in key[3]:gmatch(".") do
        map(key, mode)
      end
    end
  end)
end

--- Whether the keys of a group are mapped in a buffer.
---@param name string of the group
function M.is_mapped(name, buf)
  return mapped[name][buf] ~= nil
end

--- Unmap the keys of a group, and restore the user's mappings.
---@param name string of the group
---@param buf? integer nil: in all buffers
function M.unmap(name, buf)
  for each, entry in pairs(mapped[name]) do
    if not buf or each == buf then
      mapped[name][each] = nil
      with_buffer(each, function()
        vim.iter(entry.maps):rev():each(restore)
      end)
    end
  end
end

return M
