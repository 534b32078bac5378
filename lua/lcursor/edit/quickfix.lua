-- The list of all open hunks of all files, as a quickfix list that follows what becomes of them.
-- Owns the one list that it made; leaves the user's own alone.

local notify = require("lcursor.notify")
local store = require("lcursor.edit.store")
local words = require("lcursor.edit.words")

local M = {}

local api = vim.api
local DELAY_MS = 50
local SEEN = { "bufnr", "filename", "lnum", "text" } -- of an item

---@type integer? id of our list
local list
---@type table[]? what it holds
local held
local is_due = false
---@type integer? entry that was gone to last
local chosen
local is_left = false -- a window with a list
local is_following = false -- the cursor
local follow_cursor ---@type fun(is_wanted: boolean)

---@type table<lcursor.Hunk, { state: lcursor.HunkState, new: string[], text: string }>
local known = setmetatable({}, { __mode = "k" })

---@param hunk lcursor.Hunk
---@return string
local function text(hunk)
  local before = known[hunk]
  if before and before.state == hunk.state and before.new == hunk.new then
    return before.text
  end
  local part = hunk.part
  local size = ("+%d -%d"):format(#hunk.new, #hunk.old)
  local mark = hunk.state == "conflict" and " [conflict]" or ""
  local failed = {}
  for _, check in ipairs(part.file.checks) do
    if not check.is_ok then
      table.insert(failed, check.name)
    end
  end
  local bad = #failed > 0 and (" [✗ %s]"):format(table.concat(failed, ", ")) or ""
  local first = ""
  for _, line in ipairs(#hunk.new > 0 and hunk.new or hunk.old) do
    if line:find("%S") then
      first = vim.trim(line)
      break
    end
  end
  local sign = #hunk.new > 0 and "+" or "-"
  local said = ("%s%s%s %s | %s %s"):format(size, mark, bad, part.turn.title, sign, first)
  known[hunk] = { state = hunk.state, new = hunk.new, text = said }
  return said
end

local WHOLE = { create = "is created", delete = "is deleted", rename = "is renamed to " }

--- All open hunks, as items of a quickfix list.
---@return table[]
---@return table<lcursor.Hunk, integer> index of each
function M.items()
  local items, places = {}, {}
  for _, part in ipairs(store.parts()) do
    -- The buffers that the list makes are called so.
    local name = vim.fn.fnamemodify(part.file.path, ":.")
    local at = part.buf and { bufnr = part.buf } or { filename = name }
    if store.is_whole(part) then
      local said = WHOLE[part.file.kind] .. (part.file.kind == "rename" and part.file.to or "")
      local item = { lnum = 1, text = ("%s | %s"):format(said, part.turn.title), type = "I" }
      table.insert(items, vim.tbl_extend("error", item, at))
    end
    for _, hunk in ipairs(part.hunks) do
      local is_open = hunk.state == "open" or hunk.state == "waiting" or hunk.state == "conflict"
      if is_open and not (store.is_whole(part) and part.file.kind == "create") then
        local is_between = hunk.last == hunk.first
        items[#items + 1] = {
          bufnr = at.bufnr,
          filename = at.filename,
          lnum = math.max(is_between and hunk.first or hunk.first + 1, 1),
          end_lnum = math.max(hunk.last, 1),
          text = text(hunk),
          type = hunk.state == "conflict" and "W" or "I",
        }
        places[hunk] = #items
      end
    end
  end
  return items, places
end

--- The entry of the hunk that the cursor is at, else of the nearest one in the same file.
---@param items table[]
---@param places table<lcursor.Hunk, integer>
---@return integer? index nil where the list tells nothing of the file that is looked at
local function nearest(items, places)
  local hunk = require("lcursor.edit.hunks").at_cursor()
  if hunk then
    return places[hunk]
  end
  local buf, line = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1]
  local found, least = nil, math.huge
  for i, item in ipairs(items) do
    local away = math.max(item.lnum - line, line - (item.end_lnum or item.lnum), 0)
    if item.bufnr == buf and away < least then
      found, least = i, away
    end
  end
  return found
end

---@return boolean whether our list is still there
local function is_kept()
  return list ~= nil and vim.fn.getqflist({ id = list, nr = 0 }).id == list
end

---@param items table[]
---@return boolean whether a user sees the same already
local function is_held(items)
  if not held or #held ~= #items then
    return false
  end
  for i, item in ipairs(items) do
    for _, key in ipairs(SEEN) do
      if held[i][key] ~= item[key] then
        return false
      end
    end
  end
  return true
end

---@param items table[]
---@param index? integer entry that is the current one; nil: the one that was
local function fill(items, index)
  held = items
  local what = { title = "lcursor: " .. words.many(#items, "open change"), items = items }
  local before = index or (is_kept() and vim.fn.getqflist({ id = list, idx = 0 }).idx) or 0
  if before > 0 and #items > 0 then
    what.idx = math.min(before, #items)
  end
  if is_kept() then
    what.id = list
    vim.fn.setqflist({}, "r", what)
  else
    vim.fn.setqflist({}, " ", what)
    list = vim.fn.getqflist({ id = 0 }).id
  end
  chosen = vim.fn.getqflist({ id = list, idx = 0 }).idx
  follow_cursor(#items > 0)
end

--- Open the list of all open hunks, at the one that is looked at.
function M.open()
  local items, places = M.items()
  if #items == 0 then
    return notify.info("there are no open changes")
  end
  fill(items, nearest(items, places))
  local number = vim.fn.getqflist({ id = list, nr = 0 }).nr
  if vim.fn.getqflist({ nr = 0 }).nr ~= number then
    vim.cmd(("silent %dchistory"):format(number))
  end
  vim.cmd("botright copen")
end

--- The hunks are others: bring the list to them, if there is one.
function M.follow()
  if is_due then
    return
  elseif not is_kept() then
    return follow_cursor(false)
  end
  is_due = true
  vim.defer_fn(
    notify.guarded(function()
      is_due = false
      local items = M.items()
      if is_kept() and not is_held(items) then
        fill(items)
      end
    end),
    DELAY_MS
  )
end

store.on_changed(M.follow)

--- Go on with a jump to an entry: <CR>, `:cnext` and the like know nothing of virtual lines, which
--- may be below the window.
---@param buf integer
local function on_cursor_moved(buf)
  local now = vim.fn.getqflist({ id = 0, idx = 0 })
  if now.id ~= list or vim.bo.buftype == "quickfix" then
    return
  end
  local is_jump = is_left or now.idx ~= chosen
  chosen, is_left = now.idx, false
  local item = is_jump and held and held[now.idx]
  local is_there = item and item.lnum == api.nvim_win_get_cursor(0)[1]
  if is_there and vim.fn.bufnr(item.bufnr or item.filename) == buf then
    require("lcursor.edit.hunks").uncover()
  end
end

--- Follow the cursor while the list has entries, and only then.
---@param is_wanted boolean
follow_cursor = function(is_wanted)
  if is_wanted == is_following then
    return
  end
  is_following = is_wanted
  local group = api.nvim_create_augroup("lcursor.edit.quickfix", { clear = true })
  if not is_wanted then
    return
  end
  api.nvim_create_autocmd("WinLeave", {
    group = group,
    callback = function()
      is_left = vim.bo.buftype == "quickfix"
    end,
  })
  api.nvim_create_autocmd("CursorMoved", {
    group = group,
    callback = notify.guarded(function(args)
      on_cursor_moved(args.buf)
    end),
  })
end

return M
