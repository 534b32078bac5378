-- `:LCursor search` without arguments: floats with the query, the results and a preview. There
-- is one picker at a time.

local context = require("lcursor.editor.context")
local files = require("lcursor.editor.files")
local highlights = require("lcursor.ui.highlights")
local notify = require("lcursor.ui.notify")
local search = require("lcursor.index.search")
local tail = require("lcursor.text").tail
local timers = require("lcursor.editor.timer")
local window = require("lcursor.ui.window")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.search")
local chosen = api.nvim_create_namespace("lcursor.search.chosen")

local WAIT_MS = 30
local MAX_PREVIEW_LINES, MAX_PREVIEW_BYTES = 10000, 512 * 1024
local PROMPT = "> "
local FOOTER = " <CR> open, <C-n> next, <C-q> quickfix, <Esc> close "

---@class lcursor.PickerPart
---@field buf integer
---@field win integer

---@class lcursor.Picker
---@field path string
---@field from integer window that it was opened from
---@field input lcursor.PickerPart
---@field list lcursor.PickerPart
---@field preview lcursor.PickerPart
---@field shown? string path of the file in the preview
---@field found? lcursor.IndexFound
---@field items lcursor.Item[] of the hits
---@field number integer of the chosen hit, from 1

---@type lcursor.Picker?
local current

--- Return the query; the lines of a pasted text are joined.
local function query(p)
  local lines = {}
  for _, line in ipairs(api.nvim_buf_get_lines(p.input.buf, 0, -1, false)) do
    line = vim.startswith(line, PROMPT) and line:sub(#PROMPT + 1) or line
    table.insert(lines, line ~= "" and line or nil)
  end
  return table.concat(lines, " ")
end

---@return lcursor.IndexHit?
local function chosen_hit(p)
  return p.items[p.number] and p.items[p.number].hit
end

---@param part lcursor.PickerPart
local function set_title(part, text)
  api.nvim_win_set_config(part.win, { title = " " .. text .. " " })
end

local function close()
  local p = current
  if not p then
    return
  end
  current = nil
  api.nvim_clear_autocmds({ group = "lcursor.picker" })
  search.forget()
  vim.cmd.stopinsert()
  for _, part in ipairs({ p.input, p.list, p.preview }) do
    if api.nvim_win_is_valid(part.win) then
      api.nvim_win_close(part.win, true)
    end
  end
  if api.nvim_win_is_valid(p.from) then
    api.nvim_set_current_win(p.from)
  end
end

--- Show the lines of a file in the preview, and the hit in them from its start. In a hit that is
--- longer than the window, show the line that is listed.
---@param lines? string[] nil if they are shown already
local function fill_preview(p, hit, lines)
  local buf, win = p.preview.buf, p.preview.win
  if lines then
    p.shown = hit.path
    window.set_code(buf, lines, hit.path)
  end
  local count = api.nvim_buf_line_count(buf)
  local first = math.min(hit.first_row, count - 1)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  api.nvim_buf_set_extmark(buf, namespace, first, 0, {
    end_row = math.min(math.max(hit.end_row, first + 1), count),
    hl_group = "LCursorHit",
    hl_eol = true,
    strict = false,
  })
  if api.nvim_win_is_valid(win) then
    local row = math.min(p.items[p.number].row, count - 1)
    local is_far = row - first >= api.nvim_win_get_height(win)
    api.nvim_win_set_cursor(win, { (is_far and row or first) + 1, 0 })
    api.nvim_win_call(win, function()
      vim.cmd("normal! " .. (is_far and "zz" or "zt"))
    end)
  end
end

--- Show the file of a hit, from its buffer or else from disk.
---@param hit? lcursor.IndexHit
local function preview(p, hit)
  if not hit then
    p.shown = nil
    return window.set_lines(p.preview.buf, {})
  elseif p.shown == hit.path then
    return fill_preview(p, hit)
  end
  local buf = context.buffer(hit.path)
  if buf then
    return fill_preview(p, hit, api.nvim_buf_get_lines(buf, 0, MAX_PREVIEW_LINES, false))
  end
  files.read(
    hit.path,
    MAX_PREVIEW_BYTES,
    notify.guarded(function(text)
      if current == p and chosen_hit(p) == hit then
        fill_preview(p, hit, vim.split(text or hit.text, "\n", { plain = true }))
      end
    end)
  )
end

local function mark(p)
  api.nvim_buf_clear_namespace(p.list.buf, chosen, 0, -1)
  local hit = chosen_hit(p)
  preview(p, hit)
  if not hit then
    return
  end
  local extmark = { line_hl_group = "LCursorHitChosen", sign_text = ">" }
  api.nvim_buf_set_extmark(p.list.buf, chosen, p.number - 1, 0, extmark)
  api.nvim_win_set_cursor(p.list.win, { p.number, 0 })
  local width = api.nvim_win_get_width(p.preview.win) - 2
  local note = hit.is_stale and "  changed since it was indexed" or ""
  local rows = (":%d-%d"):format(hit.first_row + 1, math.max(hit.end_row, hit.first_row + 1))
  local title = tail(hit.name .. rows, math.max(width - #note, 1)) .. note
  local reasons = "  " .. search.reasons(hit)
  local has_room = api.nvim_strwidth(title .. reasons) <= width
  set_title(p.preview, vim.trim(has_room and title .. reasons or title))
end

---@param found? lcursor.IndexFound
local function fill(p, found)
  p.found, p.number = found, 1
  p.items = found and search.items(found) or {}
  local max = math.max(math.floor(api.nvim_win_get_width(p.list.win) / 2), 16)
  local rows = vim.tbl_map(function(item)
    local name = item.cells[1]
    return { { tail(name[1], max), name[2] }, unpack(item.cells, 2) }
  end, p.items)
  window.set_cells(p.list.buf, rows)
  if found then
    local note = found.note ~= "" and (", " .. found.note) or ""
    set_title(p.input, ("%d found in %.0f ms%s"):format(#p.items, found.ms, note))
  else
    set_title(p.input, "search: words, or @name")
  end
  mark(p)
end

local function ask(p)
  if current ~= p then
    return
  end
  local text = query(p)
  if not text:find("[^%s@]") then
    return fill(p, nil)
  end
  search.ask(p.path, text, function(found)
    if current == p and query(p) == text then
      fill(p, found)
    end
  end, nil, true)
end

local ask_later = timers.new(ask)

local function move(p, by)
  if #p.items > 0 then
    p.number = (p.number - 1 + by) % #p.items + 1
    mark(p)
  end
end

---@param command lcursor.OpenCommand
local function open_hit(p, command)
  local item = p.items[p.number]
  if item then
    close()
    item.confirm(command)
  end
end

local function to_quickfix(p)
  close()
  if p.found then
    vim.schedule(notify.guarded(function()
      search.quickfix(p.found, true) -- Insert mode may not have ended yet
    end))
  end
end

local function scroll(p, key)
  api.nvim_win_call(p.preview.win, function()
    vim.cmd.normal({ vim.keycode(key), bang = true })
  end)
end

---@type table<string, { [1]: fun(p: lcursor.Picker, arg: any), [2]: any }>
local KEYS = {
  ["<Down>"] = { move, 1 },
  ["<C-n>"] = { move, 1 },
  ["<Tab>"] = { move, 1 },
  ["<Up>"] = { move, -1 },
  ["<C-p>"] = { move, -1 },
  ["<S-Tab>"] = { move, -1 },
  ["<C-d>"] = { scroll, "<C-d>" },
  ["<C-u>"] = { scroll, "<C-u>" },
  ["<CR>"] = { open_hit, "edit" },
  ["<C-x>"] = { open_hit, "split" },
  ["<C-v>"] = { open_hit, "vsplit" },
  ["<C-t>"] = { open_hit, "tabedit" },
  ["<C-q>"] = { to_quickfix },
  ["<Esc>"] = { close },
  ["<C-c>"] = { close },
}

local function map_keys(p)
  for lhs, key in pairs(KEYS) do
    -- Later: windows cannot be closed while a mapped key is handled.
    local run = vim.schedule_wrap(notify.guarded(function()
      if current == p then
        key[1](p, key[2])
      end
    end))
    vim.keymap.set({ "i", "n" }, lhs, run, { buffer = p.input.buf, nowait = true })
  end
end

---@return vim.api.keyset.win_config
local function box(row, col, width, height)
  return {
    relative = "editor",
    row = row,
    col = col,
    width = math.max(width, 1),
    height = math.max(height, 1),
  }
end

--- Compute where the windows are on a screen of this size: input, list, preview.
---@return vim.api.keyset.win_config[]
local function layout()
  local width, height = math.floor(vim.o.columns * 0.9), math.floor(vim.o.lines * 0.8)
  local row, col = math.floor((vim.o.lines - height) / 2), math.floor((vim.o.columns - width) / 2)
  local is_wide = width >= 100
  local list_width = is_wide and math.floor(width * 0.5) or width - 2
  local list_height = is_wide and height - 5 or math.floor((height - 7) / 2)
  return {
    box(row, col, list_width, 1),
    box(row + 3, col, list_width, list_height),
    is_wide and box(row, col + list_width + 2, width - list_width - 4, height - 2)
      or box(row + list_height + 5, col, list_width, height - list_height - 7),
  }
end

---@param area vim.api.keyset.win_config
---@param footer? string
---@return lcursor.PickerPart
local function open_part(enter, area, footer)
  area.style, area.border = "minimal", "rounded"
  area.footer, area.footer_pos = footer, footer and "right"
  local buf, win = window.scratch(area, enter)
  vim.wo[win].wrap = false
  return { buf = buf, win = win }
end

local function fit(p)
  local areas = layout()
  for i, part in ipairs({ p.input, p.list, p.preview }) do
    if api.nvim_win_is_valid(part.win) then
      api.nvim_win_set_config(part.win, areas[i])
    end
  end
end

--- Open it for the project of a path.
---@param path string absolute
function M.open(path)
  close()
  highlights.apply()
  local from, areas = api.nvim_get_current_win(), layout()
  local list, view = open_part(false, areas[2], FOOTER), open_part(false, areas[3])
  local input = open_part(true, areas[1])
  local input_options = vim.bo[input.buf]
  input_options.buftype, input_options.filetype = "prompt", "lcursor-search"
  vim.fn.prompt_setprompt(input.buf, PROMPT)
  vim.bo[list.buf].filetype, vim.wo[list.win].signcolumn = "lcursor-hits", "yes"
  vim.wo[view.win].number, vim.wo[view.win].scrolloff = true, 2
  local p = { path = path, from = from, input = input, list = list, preview = view }
  p.items, p.number = {}, 1
  current = p
  map_keys(p)
  fill(p, nil)
  api.nvim_buf_attach(input.buf, false, {
    on_lines = function()
      if current ~= p then
        return true
      end
      ask_later(WAIT_MS, p)
    end,
  })
  local on = notify.autocmds("picker")
  on("VimResized", function()
    fit(p)
  end)
  local function leave()
    if current == p then
      close()
    end
  end
  on({ "WinLeave", "BufLeave" }, vim.schedule_wrap(leave), { buffer = input.buf })
  vim.cmd.startinsert()
end

return M
