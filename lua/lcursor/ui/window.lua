-- Windows for reading: a float for a page, a split for a longer report. `q` closes either.

local settings = require("lcursor.config")
local notes = require("lcursor.ui.notes")
local notify = require("lcursor.ui.notify")
local text = require("lcursor.text")
local wrap = require("lcursor.text.wrap")

local M = {}

local api = vim.api
local MIN_COLUMNS, MIN_LINES = 30, 5 -- of a docked window
local namespace = api.nvim_create_namespace("lcursor.window")
local head_namespace = api.nvim_create_namespace("lcursor.window.head")

---@type table<integer, true> buffers that the plugin made
local own = {}

---@param buf integer
---@param lines string[]
function M.set_lines(buf, lines)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
end

---@alias lcursor.Cells { [1]: string, [2]?: string }[] parts of a line with their highlight groups

--- Show highlighted lines; those of the same buffer are replaced.
---@param buf integer
---@param rows lcursor.Cells[]
function M.set_cells(buf, rows)
  local lines, marks = {}, {}
  for row, cells in ipairs(rows) do
    local length = 0
    for _, cell in ipairs(cells) do
      table.insert(marks, { row - 1, length, length + #cell[1], cell[2] })
      length = length + #cell[1]
    end
    table.insert(lines, text.of_cells(cells))
  end
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  M.set_lines(buf, lines)
  for _, mark in ipairs(marks) do
    local row, col, group = mark[1], mark[2], mark[4]
    local end_col = math.min(mark[3], #lines[row + 1])
    if end_col > col then
      local extmark = { end_col = end_col, hl_group = group }
      api.nvim_buf_set_extmark(buf, namespace, row, col, extmark)
    end
  end
end

--- Show code in a buffer, highlighted but without its filetype: that would attach language servers.
---@param buf integer
---@param lines string[]
---@param path? string determines the language
function M.set_code(buf, lines, path)
  M.set_lines(buf, lines)
  local filetype = path and vim.filetype.match({ filename = path, contents = lines }) or ""
  pcall(vim.treesitter.stop, buf)
  local language = vim.treesitter.language.get_lang(filetype)
  if not (language and pcall(vim.treesitter.start, buf, language)) then
    vim.bo[buf].syntax = filetype
  end
end

--- Remove the buffers that a restored session made with a name in lcursor://, which the plugin
--- needs. A buffer with a text stays, without its name.
---@param name? string by default all of lcursor://
function M.remove_restored(name)
  for _, buf in ipairs(api.nvim_list_bufs()) do
    local found = api.nvim_buf_get_name(buf):match("^lcursor://(.+)$")
    if found and not own[buf] and (not name or name == found) then
      local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
      if #lines > 1 or (lines[1] or "") ~= "" then
        api.nvim_buf_set_name(buf, "")
      else
        api.nvim_buf_delete(buf, { force = true })
      end
    end
  end
end

--- Create a scratch buffer of a name in lcursor://.
---@param name string
---@return integer
function M.create(name)
  M.remove_restored(name)
  local buf = api.nvim_create_buf(false, true)
  own[buf] = true
  api.nvim_buf_set_name(buf, "lcursor://" .. name)
  return buf
end

--- Return the buffer of a name in lcursor://, wiped once it is hidden; made if it does not exist.
---@param name string
---@return integer
function M.buffer(name)
  local buf = vim.fn.bufnr("^lcursor://" .. name .. "$")
  if not own[buf] then
    buf = M.create(name)
  end
  vim.bo[buf].bufhidden, vim.bo[buf].modifiable = "wipe", false
  return buf
end

--- Open a window without numbers, signs, folds and spelling, for its buffer only.
---@param buf integer
---@param enter boolean
---@param config vim.api.keyset.win_config
---@return integer win
function M.open(buf, enter, config)
  local win = api.nvim_open_win(buf, enter, config)
  local wo = vim.wo[win][0]
  wo.number, wo.relativenumber, wo.signcolumn, wo.foldcolumn = false, false, "no", "0"
  wo.foldenable, wo.spell, wo.list, wo.colorcolumn = false, false, false, ""
  return win
end

--- Open a window with an empty buffer, which is wiped once it is hidden.
---@param config vim.api.keyset.win_config
---@param enter boolean
---@return integer buf
---@return integer win
function M.scratch(config, enter)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = "wipe"
  return buf, M.open(buf, enter, config)
end

---@return integer
local function part(share, total, minimum)
  local size = math.min(math.floor(total * share + 0.5), total - minimum)
  return math.max(size, math.min(minimum, total), 1)
end

--- Return the layout of a window that stays open next to the code, as the option chat.window says.
---@param wanted? { position?: string, size?: number } instead of the option
---@param title string of a float
---@return vim.api.keyset.win_config
function M.dock(wanted, title)
  wanted = vim.tbl_extend("force", settings.get().chat.window, wanted or {})
  local position, size = wanted.position, wanted.size
  if position == "float" then
    local lines = vim.o.lines - vim.o.cmdheight
    local width = part(math.max(size, 0.6), vim.o.columns - 4, MIN_COLUMNS)
    local height = part(0.8, lines - 2, MIN_LINES)
    return {
      relative = "editor",
      row = math.max(math.floor((lines - height) / 2) - 1, 0),
      col = math.max(math.floor((vim.o.columns - width) / 2), 0),
      width = width,
      height = height,
      border = "rounded",
      title = title,
    }
  elseif position == "left" or position == "right" then
    return { split = position, win = -1, width = part(size, vim.o.columns, MIN_COLUMNS) }
  end
  return { split = position, win = -1, height = part(size, vim.o.lines, MIN_LINES) }
end

--- Return a window of this tab page that shows a buffer, the current one first.
---@param buf? integer
---@return integer?
function M.find(buf)
  local wins = vim.list_extend({ api.nvim_get_current_win() }, api.nvim_tabpage_list_wins(0))
  return vim.iter(wins):find(function(win)
    return api.nvim_win_get_buf(win) == buf
  end)
end

--- Close the windows of this tab page that show a buffer.
---@param buf integer
function M.close_all(buf)
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    if api.nvim_win_get_buf(win) == buf and not pcall(api.nvim_win_close, win, false) then
      vim.cmd.enew() -- the last window cannot be closed
    end
  end
end

--- Show in a winbar what a window is and which keys it has. What does not fit there continues above
--- the first line.
---@param win integer
---@param head string
---@param keys? string separated by commas
function M.set_head(win, head, keys)
  local buf, width = api.nvim_win_get_buf(win), api.nvim_win_get_width(win) - 2
  local line, rows = keys and ("%s · %s"):format(head, keys) or head, {}
  if api.nvim_strwidth(line) > width then
    line = ("%s  %s"):format(head, (keys or ""):gsub(", ", ",  "))
    rows = wrap.rows({ { line, "LCursorEditBadge" } }, width + 1, 1)
    line = text.of_cells(table.remove(rows, 1))
  end
  vim.wo[win][0].winbar = " " .. vim.trim(line):gsub("%%", "%%%%")
  api.nvim_buf_clear_namespace(buf, head_namespace, 0, -1)
  if #rows > 0 then
    local mark = { virt_lines = rows, virt_lines_above = true }
    api.nvim_buf_set_extmark(buf, head_namespace, 0, 0, mark)
  end
end

--- Wrap long lines of a window, with an indent.
---@param win integer
function M.wrap(win)
  local wo = vim.wo[win][0]
  wo.wrap, wo.linebreak, wo.breakindent, wo.breakindentopt = true, true, true, "shift:2"
end

--- Make a window as high as its text, within limits, and show it from its top.
---@param win integer
---@param max integer
---@return integer height
function M.fit_height(win, max)
  local rows = api.nvim_win_text_height(win, {}).all
  local winbar = vim.wo[win].winbar ~= "" and 1 or 0
  local height = math.max(math.min(rows + winbar, max), 1 + winbar)
  api.nvim_win_set_config(win, { height = height }) -- nvim_win_set_height is deprecated in 0.12
  notes.reveal_top(api.nvim_win_get_buf(win))
  return height
end

--- Show lines in the middle of the screen.
---@param lines string[]
---@param title string
function M.float(lines, title)
  local width = api.nvim_strwidth(title) + 4
  for _, line in ipairs(lines) do
    width = math.max(width, api.nvim_strwidth(line))
  end
  width = math.max(math.min(width, vim.o.columns - 4), 1)
  local position = { relative = "editor", col = math.floor((vim.o.columns - width) / 2) }
  local buf, win = M.scratch({
    relative = "editor",
    width = width,
    height = 1,
    col = position.col,
    row = 0,
    style = "minimal",
    border = "rounded",
    title = " " .. title .. " ",
  }, true)
  M.wrap(win)
  M.set_lines(buf, lines)
  local height = M.fit_height(win, math.max(vim.o.lines - 4, 1))
  position.row = math.floor((vim.o.lines - height) / 2)
  api.nvim_win_set_config(win, position)
  for _, lhs in ipairs({ "q", "<Esc>" }) do
    vim.keymap.set("n", lhs, "<Cmd>close<CR>", { buffer = buf, nowait = true })
  end
end

--- Show lines in a split, which is reused and grows if necessary; the cursor moves there.
---@param name string the buffer is lcursor://{name}
---@param lines string[]
---@param head string shown in the winbar
---@param keys? string separated by commas
---@return integer buf
function M.split(name, lines, head, keys)
  local buf = M.buffer(name)
  local win = vim.fn.bufwinid(buf)
  M.set_lines(buf, lines)
  local is_new = win == -1
  if is_new then
    win = M.open(buf, true, { split = "below" })
    M.wrap(win)
  end
  api.nvim_set_current_win(win)
  vim.cmd.stopinsert()
  M.set_head(win, head, keys)
  local max, height = math.floor(vim.o.lines * 0.6), api.nvim_win_get_height(win)
  if is_new or height < math.min(api.nvim_win_text_height(win, {}).all, max) then
    M.fit_height(win, max)
  end
  vim.keymap.set("n", "q", "<Cmd>bwipeout<CR>", { buffer = buf, nowait = true })
  return buf
end

--- Open the help at a tag.
---@param tag string
function M.help(tag)
  if not pcall(vim.cmd.help, tag) then
    notify.info(("run :helptags ALL, then see :help %s"):format(tag))
  end
end

--- Let the user choose one of some items, and confirm it.
---@param items lcursor.Item[]
---@param prompt string
---@param kind string for plugins that replace `vim.ui.select`
function M.choose(items, prompt, kind)
  vim.ui.select(items, {
    prompt = prompt,
    kind = kind,
    format_item = function(item)
      return vim.trim(text.of_cells(item.cells))
    end,
  }, function(item)
    if item then
      item.confirm()
    end
  end)
end

--- Ask a yes-or-no question; closing the prompt means no.
---@param question string
---@param yes fun()
function M.confirm(question, yes)
  vim.ui.select({ "No", "Yes" }, { prompt = question }, function(_, index)
    if index == 2 then
      yes()
    end
  end)
end

return M
