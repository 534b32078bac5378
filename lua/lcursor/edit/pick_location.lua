-- The picker that answers a question of an edit: a list of choices, and for the selected one the
-- lines at its place, or what the user should know.

local buffers = require("lcursor.editor.buffers")
local highlights = require("lcursor.ui.highlights")
local notify = require("lcursor.ui.notify")
local window = require("lcursor.ui.window")
local wrap = require("lcursor.text.wrap")

local M = {}

local api = vim.api
local AROUND = 6 -- rows that are shown above and below a place
local MAX_ROWS = 20
local namespace = api.nvim_create_namespace("lcursor.edit.pick_location")

---@return string
local function line_of(choice)
  local text = choice.name
  if choice.path ~= "" then
    text = buffers.location(choice.name, choice.first_row, choice.last_row)
    text = choice.why ~= "" and ("%s  %s"):format(text, choice.why) or text
  end
  return (text:gsub("%c", " "))
end

--- Return the lines at a place and around it, with those that would be added.
---@return string[] lines
---@return integer first row of the place in them
---@return integer last
---@return integer added rows after that, as they would be
local function preview_lines(choice)
  local new = choice.lines
  if choice.path == "" then
    return new, 0, 0, 0
  end
  local buf = buffers.find(choice.path)
  local file = buf and buffers.lines(buf) or buffers.read(choice.path)
  if not file or choice.last_row > #file then
    return new, 0, 0, #new
  end
  local here = vim.list_slice(file, choice.first_row + 1, choice.last_row)
  local is_top = #here == 0 and vim.deep_equal(new, vim.list_slice(file, 1, #new))
  if is_top or vim.deep_equal(here, new) then
    new = {} -- it is there already
  end
  local from = math.max(choice.first_row - AROUND, 0)
  local lines = vim.list_slice(file, from + 1, choice.last_row)
  vim.list_extend(lines, new)
  local below = is_top and MAX_ROWS or AROUND
  vim.list_extend(lines, vim.list_slice(file, choice.last_row + 1, choice.last_row + below))
  return lines, choice.first_row - from, choice.last_row - from, #new
end

local function preview(buf, win, choice)
  local lines, first, last, added = preview_lines(choice)
  window.set_code(buf, lines, choice.path ~= "" and choice.path or nil)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local function mark(from, to, hl, sign)
    for row = from, to - 1 do
      local opts = { end_row = row + 1, hl_group = hl, hl_eol = true, strict = false }
      opts.sign_text, opts.sign_hl_group = sign, hl
      api.nvim_buf_set_extmark(buf, namespace, row, 0, opts)
    end
  end
  vim.wo[win].signcolumn = added > 0 and "yes" or "no"
  mark(first, last, "LCursorHit", added > 0 and "-" or nil)
  mark(last, last + added, "LCursorEditAdded", "+")
  api.nvim_win_set_config(win, { height = math.max(math.min(#lines, MAX_ROWS), 1) })
  api.nvim_win_set_cursor(win, { math.min(first + 1, math.max(#lines, 1)), 0 })
end

--- Ask the user to choose.
---@param question { text: string, choices: lcursor.EditChoice[] } the fields of `edit.question`
---@param done fun(choice: integer) called once: from 0, -1 for none
---@return { close: fun() } closes the windows without an answer
function M.open(question, done)
  highlights.apply()
  local from, choices = api.nvim_get_current_win(), question.choices
  local width = math.max(math.min(90, vim.o.columns - 4), 1)
  local text = question.text:gsub("%c", " ")
  local is_short = api.nvim_strwidth(text) + 2 <= width
  local layout = {
    relative = "editor",
    row = 1,
    col = math.max(math.floor((vim.o.columns - width) / 2) - 1, 0),
    width = width,
    height = 1,
    style = "minimal",
    border = "rounded",
    title = is_short and (" %s "):format(text) or " choose a place ",
    footer = " <CR> choose, q none ",
    footer_pos = "right",
    zindex = 60,
  }
  local list, list_win = window.scratch(layout, true)
  vim.cmd.stopinsert()
  vim.wo[list_win].cursorline = true
  window.wrap(list_win)
  window.set_lines(list, vim.tbl_map(line_of, choices))
  if not is_short then
    local head = { virt_lines = wrap.rows({ { text } }, width), virt_lines_above = true }
    api.nvim_buf_set_extmark(list, namespace, 0, 0, head)
  end
  local rows = window.fit_height(list_win, math.max(math.floor(vim.o.lines * 0.4), 1))
  local rest = math.max(vim.o.lines - vim.o.cmdheight - rows - 8, 1)
  local below = { row = rows + 3, height = math.min(rest, MAX_ROWS), title = "", footer = "" }
  below.focusable = false
  local view, view_win = window.scratch(vim.tbl_extend("force", layout, below), false)
  for row, choice in ipairs(choices) do
    api.nvim_buf_set_extmark(list, namespace, row - 1, 0, {
      end_col = math.min(#choice.name, #line_of(choice)),
      hl_group = "LCursorHitFile",
    })
  end
  local is_over = false
  local function close()
    if is_over then
      return false
    end
    is_over = true
    for _, win in ipairs({ view_win, list_win }) do
      if api.nvim_win_is_valid(win) then
        api.nvim_win_close(win, true)
      end
    end
    if api.nvim_win_is_valid(from) then
      api.nvim_set_current_win(from)
    end
    return true
  end
  local function finish(choice)
    if close() then
      done(choice)
    end
  end
  local function here()
    return api.nvim_win_get_cursor(list_win)[1]
  end
  local function on(lhs, run)
    vim.keymap.set("n", lhs, notify.guarded(run), { buffer = list, nowait = true })
  end
  on("<CR>", function()
    finish(here() - 1)
  end)
  for _, lhs in ipairs({ "q", "<Esc>", "<C-c>" }) do
    on(lhs, function()
      finish(-1)
    end)
  end
  for by, lhs in pairs({ [1] = "<Tab>", [-1] = "<S-Tab>" }) do
    on(lhs, function()
      api.nvim_win_set_cursor(list_win, { (here() - 1 + by) % #choices + 1, 0 })
    end)
  end
  local shown
  local function show()
    local row = api.nvim_win_is_valid(list_win) and here()
    if row and row ~= shown then
      shown = row
      preview(view, view_win, choices[row])
    end
  end
  api.nvim_create_autocmd("CursorMoved", { buffer = list, callback = notify.guarded(show) })
  api.nvim_create_autocmd("BufWipeout", {
    buffer = list,
    once = true,
    callback = vim.schedule_wrap(notify.guarded(function()
      finish(-1)
    end)),
  })
  show()
  return { close = close }
end

return M
