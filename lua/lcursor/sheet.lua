-- A small window below with one thing in each line: the bill of a chat, the list of chats or turns,
-- a plan. Owns its buffer and its keys; what the lines are is the caller's.

local highlights = require("lcursor.highlights")
local notify = require("lcursor.notify")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.sheet")

---@alias lcursor.Cells { [1]: string, [2]: string }[] pieces of a line, each with its highlight

---@class (exact) lcursor.Sheet
---@field buf integer
---@field win integer
---@field from integer window that one comes back to
---@field things any[] one for each line

---@type table<string, lcursor.Sheet> by name
local sheets = {}

---@param sheet? lcursor.Sheet
---@return boolean
function M.is_open(sheet)
  return sheet ~= nil
    and api.nvim_buf_is_valid(sheet.buf)
    and api.nvim_win_is_valid(sheet.win)
    and api.nvim_win_get_buf(sheet.win) == sheet.buf
end

---@param name string
---@return lcursor.Sheet?
function M.get(name)
  return M.is_open(sheets[name]) and sheets[name] or nil
end

---@param sheet lcursor.Sheet
local function fit(sheet)
  local most = math.max(math.floor(vim.o.lines * 0.4), 3)
  local count = api.nvim_buf_line_count(sheet.buf)
  local height = math.max(math.min(count + 1, most), 2)
  if api.nvim_win_get_config(sheet.win).relative ~= "" then
    local row = vim.o.lines - vim.o.cmdheight - height - 3
    api.nvim_win_set_config(sheet.win, { relative = "editor", row = row, col = 0, height = height })
  else
    api.nvim_win_set_height(sheet.win, height)
  end
end

---@param over? integer window that it must not open behind
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

--- Show a sheet, empty where it was not open.
---@param name string
---@param over? integer window that it must not open behind
---@return lcursor.Sheet
---@return boolean is_new
function M.open(name, over)
  highlights.apply()
  local sheet = M.get(name)
  if sheet then
    api.nvim_set_current_win(sheet.win)
    return sheet, false
  end
  local from = api.nvim_get_current_win()
  local buf = vim.fn.bufnr("^lcursor://" .. name .. "$")
  if buf == -1 then
    buf = api.nvim_create_buf(false, true)
    api.nvim_buf_set_name(buf, "lcursor://" .. name)
  end
  vim.bo[buf].bufhidden, vim.bo[buf].modifiable = "wipe", false
  vim.bo[buf].filetype = "lcursor-" .. name
  local win = api.nvim_open_win(buf, true, layout(over))
  local wo = vim.wo[win][0]
  wo.number, wo.relativenumber, wo.signcolumn, wo.foldcolumn = false, false, "no", "0"
  wo.wrap, wo.cursorline, wo.winfixheight, wo.list = false, true, true, false
  wo.colorcolumn, wo.spell, wo.foldenable = "", false, false
  vim.cmd.stopinsert()
  sheet = { buf = buf, win = win, from = from, things = {} }
  sheets[name] = sheet
  api.nvim_create_autocmd("WinClosed", {
    pattern = tostring(win),
    once = true,
    callback = notify.guarded(function()
      if api.nvim_get_current_win() == win then
        vim.schedule(notify.guarded(function() -- no window can be entered yet
          if api.nvim_win_is_valid(from) then
            api.nvim_set_current_win(from)
          end
        end))
      end
    end),
  })
  return sheet, true
end

--- Fill it; the cursor stays in its line.
---@param sheet lcursor.Sheet
---@param rows lcursor.Cells[]
---@param things any[] what each line is
---@param head string one line that stays above
---@param keys? string what can be pressed, where there is room to say it
function M.fill(sheet, rows, things, head, keys)
  if not M.is_open(sheet) then
    return
  end
  local lines, marks = {}, {}
  for row, cells in ipairs(rows) do
    local line = ""
    for _, cell in ipairs(cells) do
      local text = cell[1]:gsub("[%c]", " ")
      if text ~= "" then
        table.insert(marks, { row - 1, #line, #line + #text, cell[2] })
      end
      line = line .. text
    end
    table.insert(lines, (line:gsub("%s+$", "")))
  end
  sheet.things = things
  vim.bo[sheet.buf].modifiable = true
  api.nvim_buf_clear_namespace(sheet.buf, namespace, 0, -1)
  api.nvim_buf_set_lines(sheet.buf, 0, -1, false, lines)
  vim.bo[sheet.buf].modifiable = false
  for _, mark in ipairs(marks) do
    local last = math.min(mark[3], #lines[mark[1] + 1])
    if last > mark[2] then
      api.nvim_buf_set_extmark(sheet.buf, namespace, mark[1], mark[2], {
        end_col = last,
        hl_group = mark[4],
      })
    end
  end
  local all = keys and ("%s · %s"):format(head, keys) or head
  local has_room = vim.fn.strdisplaywidth(all) + 2 <= api.nvim_win_get_width(sheet.win)
  local bar = (has_room and all or head):gsub("%%", "%%%%")
  vim.wo[sheet.win][0].winbar = (" %s%%<"):format(bar)
  fit(sheet)
end

--- The thing in the line of the cursor.
---@param sheet lcursor.Sheet
---@return any
function M.here(sheet)
  return sheet.things[api.nvim_win_get_cursor(sheet.win)[1]]
end

--- The things in the lines that a Visual selection covers, or the cursor is in.
---@param sheet lcursor.Sheet
---@return any[]
function M.chosen(sheet)
  local first, last = vim.fn.line("."), vim.fn.line(".") + vim.v.count1 - 1
  if api.nvim_get_mode().mode:find("^[vV\22]") then
    first, last = vim.fn.line("v"), vim.fn.line(".")
    vim.cmd("normal! \27")
  end
  return vim.list_slice(sheet.things, math.min(first, last), math.max(first, last))
end

---@param sheet lcursor.Sheet
function M.close(sheet)
  if not M.is_open(sheet) then
    return
  elseif api.nvim_get_current_win() == sheet.win and api.nvim_win_is_valid(sheet.from) then
    api.nvim_set_current_win(sheet.from)
  end
  if not pcall(api.nvim_win_close, sheet.win, true) then
    vim.cmd.enew() -- the last window cannot be closed
  end
end

--- Map keys in it.
---@param sheet lcursor.Sheet
---@param keys table<string, fun()> by what is pressed, in Normal mode
---@param visual? table<string, fun()> in Visual mode
function M.map(sheet, keys, visual)
  for mode, maps in pairs({ n = keys, x = visual or {} }) do
    for lhs, run in pairs(maps) do
      local opts = { buffer = sheet.buf, nowait = true }
      vim.keymap.set(mode, lhs, notify.guarded(run), opts)
    end
  end
  vim.keymap.set("n", "q", function()
    M.close(sheet)
  end, { buffer = sheet.buf, nowait = true })
end

return M
