-- A small window at the bottom with one item per line: the context of a chat, the chats, edits.
-- The caller says what the lines are.

local highlights = require("lcursor.ui.highlights")
local notify = require("lcursor.ui.notify")
local window = require("lcursor.ui.window")

local M = {}

local api = vim.api

---@class (exact) lcursor.List
---@field buf integer
---@field win integer
---@field from integer the window to return to
---@field items any[] one for each line

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
  local height = math.max(math.floor(vim.o.lines * 0.3), 3)
  return {
    relative = "editor",
    row = vim.o.lines - vim.o.cmdheight - height - 3,
    col = 0,
    width = math.max(vim.o.columns - 2, 1),
    height = height,
    border = "rounded",
    zindex = 60,
  }
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

--- Open a list, or enter it if it is open.
---@param name string
---@param over? integer window, maybe a float, that must not cover it
---@return lcursor.List
---@return boolean is_new
function M.open(name, over)
  highlights.apply()
  local list = lists[name]
  if M.is_open(list) then
    api.nvim_set_current_win(list.win)
    return list, false
  end
  local from, buf = api.nvim_get_current_win(), window.buffer(name)
  vim.bo[buf].filetype = "lcursor-" .. name
  local win = window.open(buf, true, layout(over))
  local wo = vim.wo[win][0]
  wo.cursorline, wo.winfixheight = true, true
  window.wrap(win)
  vim.cmd.stopinsert()
  list = { buf = buf, win = win, from = from, items = {} }
  lists[name] = list
  return_after(list)
  return list, true
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

--- Fill it; the cursor stays in its line.
---@param list lcursor.List
---@param rows lcursor.Cells[]
---@param items any[] what each line is
---@param head string shown in the winbar
---@param keys? string what can be pressed, separated by commas
function M.fill(list, rows, items, head, keys)
  if not M.is_open(list) then
    return
  end
  list.items = items
  local is_wide = vim.iter(rows):any(function(cells)
    return width_of(cells) > api.nvim_win_get_width(list.win)
  end)
  if is_wide then -- aligned columns would wrap badly
    for _, cells in ipairs(rows) do
      for i = 2, #cells do
        cells[i] = { (cells[i][1]:gsub("%s%s+", "  ")), cells[i][2] }
      end
    end
  end
  window.set_cells(list.buf, rows)
  window.set_head(list.win, head, keys)
  fit(list)
end

--- Return the item of the line of the cursor.
---@param list lcursor.List
---@return any
function M.here(list)
  return list.items[api.nvim_win_get_cursor(list.win)[1]]
end

--- Return the items of the lines that are selected in Visual mode, or of [count] lines.
---@param list lcursor.List
---@return any[]
function M.chosen(list)
  local first, last = vim.fn.line("."), vim.fn.line(".") + vim.v.count1 - 1
  if api.nvim_get_mode().mode:find("^[vV\22]") then
    first, last = vim.fn.line("v"), vim.fn.line(".")
    vim.cmd("normal! \27")
  end
  return vim.list_slice(list.items, math.min(first, last), math.max(first, last))
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

--- Map keys in it; `q` closes it.
---@param list lcursor.List
---@param keys table<string, fun()> in Normal mode, by key
---@param visual? table<string, fun()> in Visual mode
function M.map(list, keys, visual)
  local function close()
    M.close(list)
  end
  for mode, maps in pairs({ n = vim.tbl_extend("keep", keys, { q = close }), x = visual or {} }) do
    for lhs, run in pairs(maps) do
      vim.keymap.set(mode, lhs, notify.guarded(run), { buffer = list.buf, nowait = true })
    end
  end
end

return M
