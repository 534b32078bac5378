-- Windows for reading: the float of one page and the split of a longer report; `q` closes either.
-- Also asks the user yes or no, and the host for a report. Knows nothing of what it shows.

local host = require("lcursor.host")
local notify = require("lcursor.notify")
local rpc = require("lcursor.rpc")
local status = require("lcursor.status")

local M = {}

local api = vim.api

---@param buf integer
---@param lines string[]
local function fill(buf, lines)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable, vim.bo[buf].bufhidden = false, "wipe"
end

--- Show lines in the middle of the screen.
---@param lines string[]
---@param title string
function M.float(lines, title)
  local width = #title + 4
  for _, line in ipairs(lines) do
    width = math.max(width, api.nvim_strwidth(line))
  end
  local buf = api.nvim_create_buf(false, true)
  fill(buf, lines)
  width = math.min(width, vim.o.columns - 4)
  local height = math.min(#lines, vim.o.lines - 4)
  local win = api.nvim_open_win(buf, true, {
    relative = "editor",
    width = width,
    height = height,
    col = math.floor((vim.o.columns - width) / 2),
    row = math.floor((vim.o.lines - height) / 2),
    style = "minimal",
    border = "rounded",
    title = " " .. title .. " ",
  })
  vim.wo[win][0].foldenable = false
  for _, lhs in ipairs({ "q", "<Esc>" }) do
    vim.keymap.set("n", lhs, "<Cmd>close<CR>", { buffer = buf, nowait = true })
  end
end

--- A table in lines.
---@param cells string[][] rows of equally many cells
---@return string[] lines the first column to the left, the others to the right
function M.aligned(cells)
  local widths = {}
  for _, row in ipairs(cells) do
    for i, cell in ipairs(row) do
      widths[i] = math.max(widths[i] or 0, api.nvim_strwidth(cell))
    end
  end
  return vim.tbl_map(function(row)
    local line = {}
    for i, cell in ipairs(row) do
      local blanks = (" "):rep(widths[i] - api.nvim_strwidth(cell))
      table.insert(line, i == 1 and cell .. blanks or blanks .. cell)
    end
    return table.concat(line, "  ")
  end, cells)
end

---@param name string
---@return integer? buf
local function find(name)
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_get_name(buf) == name then
      return buf
    end
  end
end

--- Show lines in a split, in place of those that it had; the cursor goes there.
---@param name string the buffer is lcursor://{name}
---@param lines string[]
---@param head string one line that stays above
---@return integer buf
function M.open(name, lines, head)
  name = "lcursor://" .. name
  local buf = find(name)
  local win = buf and vim.fn.bufwinid(buf) or -1
  if not buf then
    buf = api.nvim_create_buf(false, true)
    api.nvim_buf_set_name(buf, name)
  end
  fill(buf, lines)
  if win == -1 then
    local height = math.max(math.min(#lines + 1, math.floor(vim.o.lines * 0.6)), 1)
    win = api.nvim_open_win(buf, true, { split = "below", height = height })
  end
  api.nvim_set_current_win(win)
  vim.cmd.stopinsert()
  local wo = vim.wo[win][0] -- of this buffer only: another one may be shown in the window
  wo.winbar = head:gsub("%%", "%%%%")
  wo.number, wo.relativenumber, wo.signcolumn, wo.foldcolumn = false, false, "no", "0"
  wo.foldenable, wo.spell = false, false
  vim.keymap.set("n", "q", "<Cmd>bwipeout<CR>", { buffer = buf, nowait = true })
  return buf
end

--- Ask a yes-or-no question. Whoever closes the prompt means no.
---@param question string
---@param yes fun()
function M.confirm(question, yes)
  vim.ui.select({ "No", "Yes" }, { prompt = question }, function(_, index)
    if index == 2 then
      yes()
    end
  end)
end

--- Ask the host for what a report needs; its answer comes as a message. Starts the host where
--- nobody did yet, and tells where it cannot be asked.
---@param method string
---@param params? table
---@return boolean sent
function M.request(method, params)
  if status.get().state == "stopped" then
    host.start()
  end
  local sent = rpc.notify(method, params)
  if not sent then
    local state = status.get().state
    if state == "absent" then
      notify.warn("there is no Python environment yet. Run :LCursor install")
    else
      local text = "the Python host is %s, so it cannot be asked; see :LCursor status"
      notify.warn(text:format(state))
    end
  end
  return sent
end

return M
