-- `:LCursor search` without words: three floats, in which one types, chooses and sees what is found
-- at once. There is one picker at a time; it owns its windows and closes them all.

local highlights = require("lcursor.ui.highlights")
local hits = require("lcursor.index.hits")
local notify = require("lcursor.notify")
local preview = require("lcursor.index.preview")
local search = require("lcursor.index.search")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.search")
local chosen = api.nvim_create_namespace("lcursor.search.chosen")
local group = api.nvim_create_augroup("lcursor.picker", {})

local WAIT_MS = 30
local PROMPT = "> "

---@class lcursor.Picker
---@field path string
---@field from integer window that it was opened from
---@field input integer buffer
---@field list integer buffer
---@field wins integer[] input, list, preview
---@field view lcursor.Preview
---@field found? lcursor.IndexFound
---@field number integer of the chosen hit, from 1
---@field timer uv.uv_timer_t

---@type lcursor.Picker?
local current

---@param p lcursor.Picker
---@return string
local function typed(p)
  local line = api.nvim_buf_get_lines(p.input, -2, -1, false)[1] or ""
  return vim.startswith(line, PROMPT) and line:sub(#PROMPT + 1) or line
end

---@return lcursor.IndexHit?
local function choice()
  local p = current
  return p and p.found and p.found.hits[p.number] or nil
end

---@param p lcursor.Picker
---@param text string
local function title(p, text)
  api.nvim_win_set_config(p.wins[1], { title = " " .. text .. " " })
end

local function close()
  local p = current
  if not p then
    return
  end
  current = nil
  p.timer:close()
  api.nvim_clear_autocmds({ group = group })
  search.forget()
  vim.cmd.stopinsert()
  for _, win in ipairs(p.wins) do
    if api.nvim_win_is_valid(win) then
      api.nvim_win_close(win, true)
    end
  end
  if api.nvim_win_is_valid(p.from) then
    api.nvim_set_current_win(p.from)
  end
end

---@param p lcursor.Picker
local function mark(p)
  api.nvim_buf_clear_namespace(p.list, chosen, 0, -1)
  local hit = choice()
  preview.show(p.view, hit, namespace)
  if not hit then
    return
  end
  api.nvim_buf_set_extmark(p.list, chosen, p.number - 1, 0, { line_hl_group = "LCursorHitChosen" })
  api.nvim_win_set_cursor(p.wins[2], { p.number, 0 })
  local why = hits.reasons(hit)
  local words = hit.is_stale and (hit.name .. "  changed since it was read") or hit.name
  words = why ~= "" and (words .. "  " .. why) or words
  api.nvim_win_set_config(p.wins[3], { title = " " .. words .. " " })
end

---@param p lcursor.Picker
---@param found? lcursor.IndexFound
local function fill(p, found)
  p.found, p.number = found, 1
  local words = hits.words(found and found.query or "")
  local lines = {}
  for _, hit in ipairs(found and found.hits or {}) do
    table.insert(lines, (hits.line(hit, words):gsub("[%c]", " ")))
  end
  vim.bo[p.list].modifiable = true
  api.nvim_buf_set_lines(p.list, 0, -1, false, lines)
  vim.bo[p.list].modifiable = false
  for row, line in ipairs(lines) do
    local file_end = select(2, line:find("^.-:%d+:"))
    if file_end then
      api.nvim_buf_set_extmark(p.list, namespace, row - 1, 0, {
        end_col = file_end - 1,
        hl_group = "LCursorHitFile",
      })
    end
  end
  if not found then
    title(p, "search: words, or @name")
  else
    local note = found.note ~= "" and (", " .. found.note) or ""
    title(p, ("%d found in %.0f ms%s"):format(#found.hits, found.ms, note))
  end
  mark(p)
end

---@param p lcursor.Picker
local function ask(p)
  if current ~= p then
    return
  end
  local text = typed(p)
  if not text:find("[^%s@]") then
    return fill(p, nil)
  end
  search.ask(p.path, text, function(found)
    if current == p and typed(p) == text then
      fill(p, found)
    end
  end)
end

---@param by integer
local function move(by)
  local p = current
  if p and p.found and #p.found.hits > 0 then
    p.number = (p.number - 1 + by) % #p.found.hits + 1
    mark(p)
  end
end

---@param how "edit"|"split"|"vsplit"|"tabedit"
local function take(how)
  local hit, p = choice(), current
  if not hit or not p or not p.found then
    return
  end
  local row = hits.best_line(hit, hits.words(p.found.query))
  close()
  search.jump(hit, row, how)
end

local function to_quickfix()
  local found = current and current.found
  close()
  if found then
    vim.schedule(notify.guarded(function()
      search.quickfix(found, true) -- Insert mode may not have ended yet
    end))
  end
end

---@param keys string
local function scroll(keys)
  local p = current
  if p then
    api.nvim_win_call(p.wins[3], function()
      vim.cmd.normal({ vim.keycode(keys), bang = true })
    end)
  end
end

---@param p lcursor.Picker
local function map_keys(p)
  local function map(keys, fn)
    for _, lhs in ipairs(keys) do
      vim.keymap.set({ "i", "n" }, lhs, notify.guarded(fn), { buffer = p.input, nowait = true })
    end
  end
  -- Windows come and go only when a mapped key is over.
  local function later(fn, ...)
    local args = { ... }
    return vim.schedule_wrap(notify.guarded(function()
      fn(unpack(args))
    end))
  end
  map({ "<Esc>", "<C-c>" }, later(close))
  map({ "<CR>" }, later(take, "edit"))
  map({ "<C-x>" }, later(take, "split"))
  map({ "<C-v>" }, later(take, "vsplit"))
  map({ "<C-t>" }, later(take, "tabedit"))
  map({ "<C-q>" }, later(to_quickfix))
  map({ "<Down>", "<C-n>", "<Tab>" }, function()
    move(1)
  end)
  map({ "<Up>", "<C-p>", "<S-Tab>" }, function()
    move(-1)
  end)
  map({ "<C-d>" }, function()
    scroll("<C-d>")
  end)
  map({ "<C-u>" }, function()
    scroll("<C-u>")
  end)
end

---@return integer buf
local function scratch()
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = "wipe"
  return buf
end

---@param row integer
---@param col integer
---@param width integer
---@param height integer
---@return vim.api.keyset.win_config
local function box(row, col, width, height)
  local size = { width = math.max(width, 1), height = math.max(height, 1) }
  return vim.tbl_extend("error", size, { relative = "editor", row = row, col = col })
end

--- Where the windows stand on a screen of this size: input, list, preview.
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

---@param buf integer
---@param enter boolean
---@param place vim.api.keyset.win_config
---@return integer win
local function float(buf, enter, place)
  local look = { style = "minimal", border = "rounded" }
  local win = api.nvim_open_win(buf, enter, vim.tbl_extend("error", place, look))
  vim.wo[win].wrap, vim.wo[win].foldenable = false, false
  return win
end

local function fit()
  local p = current
  for i, place in ipairs(p and layout() or {}) do
    if p and api.nvim_win_is_valid(p.wins[i]) then
      api.nvim_win_set_config(p.wins[i], place)
    end
  end
end

--- Open it for the project of a path.
---@param path string absolute
function M.open(path)
  close()
  highlights.apply()
  local from = api.nvim_get_current_win()
  local input, list, view = scratch(), scratch(), scratch()
  vim.bo[input].buftype = "prompt"
  vim.bo[input].filetype, vim.bo[list].filetype = "lcursor-search", "lcursor-hits"
  vim.fn.prompt_setprompt(input, PROMPT)
  local places = layout()
  local list_win, view_win = float(list, false, places[2]), float(view, false, places[3])
  local input_win = float(input, true, places[1])
  vim.wo[view_win].number, vim.wo[view_win].scrolloff = true, 2
  local p = {
    path = path,
    from = from,
    input = input,
    list = list,
    wins = { input_win, list_win, view_win },
    view = { buf = view, win = view_win },
    number = 1,
    timer = assert(vim.uv.new_timer()),
  }
  current = p
  map_keys(p)
  fill(p, nil)
  local later = vim.schedule_wrap(notify.guarded(function()
    ask(p)
  end))
  api.nvim_buf_attach(input, false, {
    on_lines = function()
      if current ~= p then
        return true
      end
      p.timer:start(WAIT_MS, 0, later)
    end,
  })
  api.nvim_create_autocmd("VimResized", { group = group, callback = notify.guarded(fit) })
  api.nvim_create_autocmd("WinLeave", {
    buffer = input,
    once = true,
    callback = vim.schedule_wrap(notify.guarded(function()
      if current == p then
        close()
      end
    end)),
  })
  vim.cmd.startinsert()
end

return M
