-- A small window at the bottom with one item per line: the context of a chat, the chats, edits. A
-- description says what the items are, how a line shows one, and what the keys do.

local highlights = require("lcursor.ui.highlights")
local notify = require("lcursor.ui.notify")
local window = require("lcursor.ui.window")

local M = {}

local api = vim.api

---@class (exact) lcursor.ListKey
---@field [1] string the key in Normal mode
---@field [2] string what it does, for the winbar; "" leaves it out
---@field [3] fun(item: any, list: lcursor.List)
---@field on? "chosen"|"list" what the function gets instead of the item of the line of the cursor:
--- those that [count] or Visual mode chooses, where the first letter is the key; or only the list
---@field closes? boolean the list is closed before

---@class (exact) lcursor.ListSpec
---@field name string the buffer is lcursor://{name}
---@field over? integer window, maybe a float, that must not cover the list
---@field cells fun(item: any): lcursor.Cells columns, which are aligned
---@field right? integer column that is aligned to the right
---@field head fun(items: any[]): string for the winbar
---@field load fun(done: fun(items: any[]), list: lcursor.List) finds the items
---@field loading? string shown until then
---@field empty? string shown when there are no items
---@field keys lcursor.ListKey[]

---@class (exact) lcursor.List
---@field spec lcursor.ListSpec
---@field buf integer
---@field win integer
---@field from integer the window to return to
---@field items? any[] one for each line; nil until they are loaded

---@type table<string, lcursor.List> by name
local lists = {}

---@param list? lcursor.List
---@return boolean
function M.is_open(list)
  return list ~= nil
    and api.nvim_buf_is_valid(list.buf)
    and api.nvim_win_is_valid(list.win)
    and api.nvim_win_get_buf(list.win) == list.buf
end

local function fit(list)
  local height = window.fit_height(list.win, math.max(math.floor(vim.o.lines * 0.4), 3))
  if api.nvim_win_get_config(list.win).relative ~= "" then
    local row = vim.o.lines - vim.o.cmdheight - height - 3
    api.nvim_win_set_config(list.win, { relative = "editor", row = row, col = 0 })
  end
end

---@param over? integer
---@return vim.api.keyset.win_config
local function layout(over)
  if not over or api.nvim_win_get_config(over).relative == "" then
    return { split = "below", win = -1, height = 3 }
  end
  local width = math.max(vim.o.columns - 2, 1)
  local area = { relative = "editor", row = 0, col = 0, width = width, height = 3 } -- until it fits
  return vim.tbl_extend("error", area, { border = "rounded", zindex = 60 })
end

--- Return to the window that a list was opened from, once it is closed.
local function return_after(list)
  api.nvim_create_autocmd("WinClosed", {
    pattern = tostring(list.win),
    once = true,
    callback = notify.guarded(function()
      if api.nvim_get_current_win() == list.win then
        vim.schedule(notify.guarded(function() -- no window can be entered yet
          if api.nvim_win_is_valid(list.from) then
            api.nvim_set_current_win(list.from)
          end
        end))
      end
    end),
  })
end

---@param cells lcursor.Cells
---@return integer without the last cell, which may wrap
local function width_of(cells)
  local width = 0
  for i = 1, #cells - 1 do
    width = width + api.nvim_strwidth(cells[i][1])
  end
  return width
end

--- Align the columns of a table, in place.
---@param rows lcursor.Cells[]
---@param right? integer column that is aligned to the right
function M.align(rows, right)
  for column = 1, #(rows[1] or {}) - 1 do
    local width = 0
    for _, row in ipairs(rows) do
      width = math.max(width, vim.fn.strdisplaywidth(row[column][1]))
    end
    for _, row in ipairs(rows) do
      local words = row[column][1]
      local blanks = (" "):rep(width - vim.fn.strdisplaywidth(words))
      row[column][1] = column == right and blanks .. words or words .. blanks
    end
  end
end

--- Separate columns by two blanks where lines are too long: aligned ones would wrap badly.
local function tighten(rows, width)
  local is_wide = vim.iter(rows):any(function(cells)
    return width_of(cells) > width
  end)
  for _, cells in ipairs(is_wide and rows or {}) do
    for i = 2, #cells do
      cells[i] = { (cells[i][1]:gsub("%s%s+", "  ")), cells[i][2] }
    end
  end
end

---@param keys lcursor.ListKey[]
---@return string
local function describe(keys)
  local words = {}
  for _, key in ipairs(keys) do
    table.insert(words, key[2] ~= "" and ("%s %s"):format(key[1], key[2]) or nil)
  end
  table.insert(words, "q close")
  return table.concat(words, ", ")
end

--- Show the items as they are now; the cursor stays in its line.
---@param list lcursor.List
function M.draw(list)
  local spec, items = list.spec, list.items
  if not M.is_open(list) then
    return
  end
  local rows = vim.tbl_map(spec.cells, items or {})
  M.align(rows, spec.right)
  tighten(rows, api.nvim_win_get_width(list.win))
  local note = not items and (spec.loading or "asking …") or #items == 0 and spec.empty
  if note then
    rows = { { { "  " .. note, "LCursorChatNote" } } }
  end
  window.set_cells(list.buf, rows)
  local head = items and spec.head(items) or spec.name
  window.set_head(list.win, head, items and describe(spec.keys))
  fit(list)
end

--- Find the items again.
---@param list lcursor.List
function M.load(list)
  local spec = list.spec
  spec.load(function(items)
    if list.spec == spec then
      list.items = items
      M.draw(list)
    end
  end, list)
end

--- Return the items of the lines that are selected in Visual mode, or of [count] lines.
---@param list lcursor.List
---@return any[]
local function chosen(list)
  local first, last = vim.fn.line("."), vim.fn.line(".") + vim.v.count1 - 1
  if api.nvim_get_mode().mode:find("^[vV\22]") then
    first, last = vim.fn.line("v"), vim.fn.line(".")
    vim.cmd("normal! \27")
  end
  return vim.list_slice(list.items or {}, math.min(first, last), math.max(first, last))
end

---@param list lcursor.List
function M.close(list)
  if not M.is_open(list) then
    return
  elseif api.nvim_get_current_win() == list.win and api.nvim_win_is_valid(list.from) then
    api.nvim_set_current_win(list.from)
  end
  if not pcall(api.nvim_win_close, list.win, true) then
    vim.cmd.enew() -- the last window cannot be closed
  end
end

--- Return what the function of a key gets.
---@param list lcursor.List
---@param key lcursor.ListKey
---@return any nil if there is nothing
local function subject(list, key)
  if key.on == "list" then
    return list
  elseif key.on == "chosen" then
    return chosen(list)
  end
  return (list.items or {})[api.nvim_win_get_cursor(list.win)[1]]
end

--- Map a key in a list.
---@param list lcursor.List
---@param mode string one letter
---@param lhs string
---@param key lcursor.ListKey
local function map(list, mode, lhs, key)
  local press = notify.guarded(function()
    local item = subject(list, key)
    if item ~= nil and key.closes then
      M.close(list)
    end
    if item ~= nil then
      key[3](item, list)
    end
  end)
  vim.keymap.set(mode, lhs, press, { buffer = list.buf, nowait = true })
end

--- Open a list and find its items. One of the same name that is open gets the new description.
---@param spec lcursor.ListSpec
---@return lcursor.List
function M.open(spec)
  highlights.apply()
  local list = lists[spec.name]
  if M.is_open(list) then
    api.nvim_set_current_win(list.win)
    list.spec = spec
  else
    local from, buf = api.nvim_get_current_win(), window.buffer(spec.name)
    vim.bo[buf].filetype = "lcursor-" .. spec.name
    local win = window.open(buf, true, layout(spec.over))
    local wo = vim.wo[win][0]
    wo.cursorline, wo.winfixheight = true, true
    window.wrap(win)
    vim.cmd.stopinsert()
    list = { spec = spec, buf = buf, win = win, from = from }
    lists[spec.name] = list
    return_after(list)
  end
  map(list, "n", "q", { "q", "", M.close, on = "list" })
  for _, key in ipairs(spec.keys) do
    map(list, "n", key[1], key)
    if key.on == "chosen" then
      map(list, "x", key[1]:sub(1, 1), key)
    end
  end
  if not list.items then
    M.draw(list)
  end
  M.load(list)
  return list
end

return M
