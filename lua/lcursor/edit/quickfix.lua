-- Lists of all open hunks of all files: a quickfix list, which is kept up to date, and what other
-- plugins' pickers show. The user's own quickfix lists are left alone.

local many = require("lcursor.text").many
local notify = require("lcursor.ui.notify")
local proposals = require("lcursor.edit.proposals")

local M = {}

local api = vim.api
local DELAY_MS = 50
local WHOLE = { create = "is created", delete = "is deleted", rename = "is renamed to " }

---@type integer? id of our list
local list
---@type table[] what it holds
local held = {}
---@type integer? the entry that was jumped to last
local current
local is_due, is_started = false, false
local has_left = false -- a quickfix window was just left
local is_following = false

---@return string label of a file that runs code by itself
local function label(file)
  return file.is_guarded and " [runs code]" or ""
end

---@return string
local function text_of(hunk)
  local names = vim
    .iter(hunk.part.file.checks)
    :map(function(check)
      return not check.is_ok and check.name or nil
    end)
    :join(", ")
  local first = vim.iter(#hunk.new > 0 and hunk.new or hunk.old):find(function(line)
    return line:find("%S") ~= nil
  end)
  return ("+%d -%d%s%s%s | %s %s | %s"):format(
    #hunk.new,
    #hunk.old,
    label(hunk.part.file),
    (hunk.state == "conflict" and " [conflict]" or "")
      .. (hunk.is_unneeded and " [no test needs it]" or ""),
    names ~= "" and (" [✗ %s]"):format(names) or "",
    #hunk.new > 0 and "+" or "-",
    vim.trim(first or ""),
    hunk.part.proposal.title
  )
end

---@class (exact) lcursor.HunkEntry
---@field part lcursor.EditPart
---@field hunk? lcursor.Hunk nil: the whole file is created, deleted or renamed
---@field line integer from 1
---@field end_line? integer
---@field text string

---@return lcursor.HunkEntry[] those of files that run code by themselves first
local function entries()
  local found, guarded, others = {}, {}, {}
  for _, part in ipairs(proposals.parts()) do
    table.insert(part.file.is_guarded and guarded or others, part)
  end
  for _, part in ipairs(vim.list_extend(guarded, others)) do
    local is_whole, kind = proposals.is_whole(part), part.file.kind
    if is_whole then
      local text = WHOLE[kind] .. (kind == "rename" and part.file.to or "")
      text = ("%s%s | %s"):format(text, label(part.file), part.proposal.title)
      table.insert(found, { part = part, line = 1, text = text })
    end
    for _, hunk in ipairs(part.hunks) do
      if proposals.is_open(hunk) and not (is_whole and kind == "create") then
        table.insert(found, {
          part = part,
          hunk = hunk,
          line = math.max(hunk.last == hunk.first and hunk.first or hunk.first + 1, 1),
          end_line = math.max(hunk.last, 1),
          text = text_of(hunk),
        })
      end
    end
  end
  return found
end

--- Return all open hunks as items of a quickfix list.
---@return table[]
---@return table<lcursor.Hunk, integer> index of each
local function items_of_all()
  local items, indices = {}, {}
  for i, entry in ipairs(entries()) do
    local part, hunk = entry.part, entry.hunk
    -- The buffers that the list makes are named so.
    local name = vim.fn.fnamemodify(part.file.path, ":.")
    items[i] = {
      bufnr = part.buf,
      filename = not part.buf and name or nil,
      lnum = entry.line,
      end_lnum = entry.end_line,
      text = entry.text,
      type = hunk and hunk.state == "conflict" and "W" or "I",
    }
    if hunk then
      indices[hunk] = i
    end
  end
  return items, indices
end

---@param entry lcursor.HunkEntry
---@return string[] lines of a diff
local function diff_of(entry)
  local lines = { "--- " .. entry.part.file.name }
  for _, hunk in ipairs(entry.hunk and { entry.hunk } or entry.part.hunks) do
    local head = "@@ -%d,%d +%d,%d @@"
    local row = hunk.first + 1
    table.insert(lines, head:format(row, #hunk.old, row, #hunk.new))
    for _, line in ipairs(hunk.old) do
      table.insert(lines, "-" .. line)
    end
    for _, line in ipairs(hunk.new) do
      table.insert(lines, "+" .. line)
    end
  end
  return lines
end

--- Return the open hunks of all files, for the picker of another plugin.
---@return lcursor.Source? nil if there are none, which is reported
function M.source()
  local items = vim.tbl_map(function(entry)
    local location = ("%s:%d"):format(entry.part.file.name, entry.line)
    ---@type lcursor.Item
    return {
      cells = { { location, "LCursorHitFile" }, { ": " .. entry.text } },
      file = entry.part.file.path,
      row = entry.line - 1,
      end_row = entry.end_line or 1,
      text = entry.text,
      preview = diff_of(entry),
      filetype = "diff",
      confirm = function(command)
        require("lcursor.edit.hunks").go_to(entry.part, entry.hunk, command)
      end,
    }
  end, entries())
  if #items == 0 then
    return notify.info("no open hunks")
  end
  return {
    title = "Hunks",
    preview = "text",
    find = function(_, done)
      done(items)
    end,
  }
end

--- Return the entry of the hunk at the cursor, else of the nearest one in the same file.
---@param items table[]
---@param indices table<lcursor.Hunk, integer>
---@return integer?
local function nearest(items, indices)
  local hunk = require("lcursor.edit.hunks").at_cursor()
  if hunk then
    return indices[hunk]
  end
  local buf, line = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1]
  local found, min = nil, math.huge
  for i, item in ipairs(items) do
    local distance = math.max(item.lnum - line, line - (item.end_lnum or item.lnum), 0)
    if item.bufnr == buf and distance < min then
      found, min = i, distance
    end
  end
  return found
end

---@return boolean whether our list still exists
local function is_current()
  return list ~= nil and vim.fn.getqflist({ id = list, nr = 0 }).id == list
end

--- Scroll after a jump to an entry: `:cnext` and the like know nothing of virtual lines, which may
--- be below the window.
local function on_cursor_moved(buf)
  local now = vim.fn.getqflist({ id = 0, idx = 0 })
  if now.id ~= list or vim.bo.buftype == "quickfix" then
    return
  end
  local is_jump = has_left or now.idx ~= current
  current, has_left = now.idx, false
  local item = is_jump and held[now.idx]
  local is_there = item and item.lnum == api.nvim_win_get_cursor(0)[1]
  if is_there and vim.fn.bufnr(item.bufnr or item.filename) == buf then
    require("lcursor.edit.hunks").reveal()
  end
end

--- Follow the cursor while the list has entries, and only then.
local function follow_cursor(is_wanted)
  if is_wanted == is_following then
    return
  end
  is_following = is_wanted
  local on = notify.autocmds("edit.quickfix")
  if is_wanted then
    on("WinLeave", function()
      has_left = vim.bo.buftype == "quickfix"
    end)
    on("CursorMoved", function(event)
      on_cursor_moved(event.buf)
    end)
  end
end

---@param items table[]
---@param index? integer nil: the entry that was the current one
local function fill(items, index)
  held = items
  local what = { title = "lcursor: " .. many(#items, "open hunk"), items = items }
  index = index or (is_current() and vim.fn.getqflist({ id = list, idx = 0 }).idx) or 0
  if index > 0 and #items > 0 then
    what.idx = math.min(index, #items)
  end
  if is_current() then
    what.id = list
    vim.fn.setqflist({}, "r", what)
  else
    vim.fn.setqflist({}, " ", what)
    list = vim.fn.getqflist({ id = 0 }).id
  end
  current = vim.fn.getqflist({ id = list, idx = 0 }).idx
  follow_cursor(#items > 0)
end

--- Fill the list again after a change of hunks.
local function start()
  if is_started then
    return
  end
  is_started = true
  proposals.on_changed(function()
    if is_due then
      return
    elseif not is_current() then
      return follow_cursor(false)
    end
    is_due = true
    notify.later(DELAY_MS, function()
      is_due = false
      if is_current() then
        fill((items_of_all()))
      end
    end)
  end)
end

--- Open the list, at the hunk that the cursor is at.
function M.open()
  start()
  local items, indices = items_of_all()
  if #items == 0 then
    return notify.info("no open hunks")
  end
  fill(items, nearest(items, indices))
  local number = vim.fn.getqflist({ id = list, nr = 0 }).nr
  if vim.fn.getqflist({ nr = 0 }).nr ~= number then
    vim.cmd(("silent %dchistory"):format(number))
  end
  vim.cmd("botright copen")
end

return M
