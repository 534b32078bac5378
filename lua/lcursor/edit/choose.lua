-- The picker that answers a question of an edit: a list of choices, and for the selected one the
-- lines at its place, or what the user should know. One at a time; it owns its windows and closes
-- them all.

local direct = require("lcursor.edit.direct")
local highlights = require("lcursor.ui.highlights")
local notify = require("lcursor.notify")
local words = require("lcursor.edit.words")

local M = {}

local api = vim.api
local AROUND = 6 -- rows that are shown above and below a place
local MOST_ROWS = 20
local MOST_BYTES = 512 * 1024
local namespace = api.nvim_create_namespace("lcursor.edit.choose")
local group = api.nvim_create_augroup("lcursor.edit.choose", { clear = true })

---@param choice lcursor.EditChoice
---@return string
function M.line(choice)
  if choice.path == "" then
    return (choice.name:gsub("%c", " "))
  end
  local why = choice.why ~= "" and ("  " .. choice.why) or ""
  local place = words.place(choice.name, choice.first_row, choice.last_row)
  return ((place .. why):gsub("%c", " "))
end

---@param buf integer
---@param lines string[]
local function fill(buf, lines)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
end

---@return integer buf
local function scratch()
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden, vim.bo[buf].modifiable = "wipe", false
  return buf
end

---@param path string
---@return string[]? lines of a file, as it is in its buffer, else on disk
local function read(path)
  local buf = direct.buffer(path)
  if buf then
    return api.nvim_buf_get_lines(buf, 0, -1, false)
  end
  local stat = vim.uv.fs_stat(path)
  local file = stat and stat.size <= MOST_BYTES and io.open(path, "rb")
  local text = file and file:read("*a")
  if file then
    file:close()
  end
  return text and vim.split((text:gsub("\r\n", "\n")), "\n", { plain = true })
end

---@class (exact) lcursor.EditAround what is seen of a place
---@field lines string[]
---@field first integer row of the place in them
---@field last integer
---@field added integer rows behind that, as they would be

--- What stands at a place and around it, and what would stand there.
---@param choice lcursor.EditChoice
---@return lcursor.EditAround
local function around(choice)
  if choice.path == "" then
    return { lines = choice.lines, first = 0, last = 0, added = 0 }
  end
  local file, new = read(choice.path), choice.lines
  if not file or choice.last_row > #file then
    return { lines = new, first = 0, last = 0, added = #new }
  end
  local here = vim.list_slice(file, choice.first_row + 1, choice.last_row)
  local is_top = #here == 0 and vim.deep_equal(new, vim.list_slice(file, 1, #new))
  if is_top or vim.deep_equal(here, new) then
    new = {} -- it is what is there already
  end
  local from = math.max(choice.first_row - AROUND, 0)
  local lines = vim.list_slice(file, from + 1, choice.last_row)
  vim.list_extend(lines, new)
  local below = is_top and MOST_ROWS or AROUND
  vim.list_extend(lines, vim.list_slice(file, choice.last_row + 1, choice.last_row + below))
  local first, last = choice.first_row - from, choice.last_row - from
  return { lines = lines, first = first, last = last, added = #new }
end

---@param buf integer
---@param win integer
---@param choice lcursor.EditChoice
local function preview(buf, win, choice)
  local seen = around(choice)
  local lines, first = seen.lines, seen.first
  fill(buf, lines)
  local name = choice.path ~= "" and choice.path or nil
  local filetype = name and vim.filetype.match({ filename = name, contents = lines }) or ""
  pcall(vim.treesitter.stop, buf)
  local language = vim.treesitter.language.get_lang(filetype)
  if not (language and pcall(vim.treesitter.start, buf, language)) then
    vim.bo[buf].syntax = filetype -- not the filetype: that would attach language servers
  end
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local function colour(from, to, hl)
    if to > from then
      local mark = { end_row = to, hl_group = hl, hl_eol = true, strict = false }
      api.nvim_buf_set_extmark(buf, namespace, from, 0, mark)
    end
  end
  colour(first, seen.last, "LCursorHit")
  colour(seen.last, seen.last + seen.added, "LCursorEditAdded")
  api.nvim_win_set_height(win, math.max(math.min(#lines, MOST_ROWS), 1))
  api.nvim_win_set_cursor(win, { math.min(first + 1, math.max(#lines, 1)), 0 })
end

--- Have the user choose.
---@param question { text: string, choices: lcursor.EditChoice[] } the fields of `edit.question`
---@param done fun(choice: integer) called once: from 0, -1 for none
---@return { close: fun() } windows to close where nobody waits any more; `done` is not called then
function M.open(question, done)
  highlights.apply()
  local from = api.nvim_get_current_win()
  local list, view = scratch(), scratch()
  local choices = question.choices
  local width = math.max(math.min(90, vim.o.columns - 4), 1)
  local rows = math.max(math.min(#choices, math.floor(vim.o.lines * 0.3)), 1)
  local rest = math.max(vim.o.lines - vim.o.cmdheight - rows - 8, 1)
  local layout = {
    relative = "editor",
    row = 1,
    col = math.max(math.floor((vim.o.columns - width) / 2) - 1, 0),
    width = width,
    height = rows,
    style = "minimal",
    border = "rounded",
    title = (" %s "):format(question.text:gsub("%c", " ")),
    footer = " <CR> takes it, q none of them ",
    footer_pos = "right",
    zindex = 60,
  }
  local list_win = api.nvim_open_win(list, true, layout)
  local below = vim.tbl_extend("force", layout, {
    row = rows + 3,
    height = math.min(rest, MOST_ROWS),
    title = "",
    footer = "",
    focusable = false,
  })
  local view_win = api.nvim_open_win(view, false, below)
  vim.cmd.stopinsert()
  fill(list, vim.tbl_map(M.line, choices))
  for row, choice in ipairs(choices) do
    api.nvim_buf_set_extmark(list, namespace, row - 1, 0, {
      end_col = math.min(#choice.name, #M.line(choice)),
      hl_group = "LCursorHitFile",
    })
  end
  vim.wo[list_win].cursorline = true
  vim.wo[list_win].foldenable, vim.wo[view_win].foldenable = false, false
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
  api.nvim_create_autocmd("CursorMoved", {
    group = group,
    buffer = list,
    callback = notify.guarded(show),
  })
  api.nvim_create_autocmd("BufWipeout", {
    group = group,
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
