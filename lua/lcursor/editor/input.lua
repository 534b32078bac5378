-- The small window for an instruction, with a history and with mentions completed as in a chat.

local completion = require("lcursor.editor.mention_completion")
local highlights = require("lcursor.ui.highlights")
local notify = require("lcursor.ui.notify")
local tail = require("lcursor.text").tail
local window = require("lcursor.ui.window")

local M = {}

local api = vim.api
local MAX_REMEMBERED = 50
local MAX_ROWS = 8
local MIN_ROWS = 3 -- with the border

---@class (exact) lcursor.Input
---@field buf integer
---@field win integer
---@field from integer window to return to
---@field may_be_empty boolean
---@field done fun(text?: string)
---@field index integer of the history; 0 is what is written now
---@field draft string what was written before the history was used

---@type lcursor.Input?
local current

--- Return earlier instructions, the newest first. 'shada' keeps them.
---@return string[]
local function history()
  local remembered = vim.g.LCURSOR_EDITS
  return type(remembered) == "table" and remembered or {}
end

local function remember(text)
  local remembered = vim.tbl_filter(function(other)
    return other ~= text
  end, history())
  table.insert(remembered, 1, text)
  vim.g.LCURSOR_EDITS = vim.list_slice(remembered, 1, MAX_REMEMBERED)
end

local function text_of(prompt)
  return table.concat(api.nvim_buf_get_lines(prompt.buf, 0, -1, false), "\n")
end

local function fit_height(prompt)
  if api.nvim_win_is_valid(prompt.win) then
    local rows = api.nvim_win_text_height(prompt.win, {}).all
    api.nvim_win_set_config(prompt.win, { height = math.max(math.min(rows, MAX_ROWS), 1) })
  end
end

---@param text? string nil: it was left
local function close(prompt, text)
  if current ~= prompt then
    return
  end
  current = nil
  if api.nvim_get_current_win() == prompt.win then
    vim.cmd.stopinsert()
    if api.nvim_win_is_valid(prompt.from) then
      api.nvim_set_current_win(prompt.from)
      local cursor = api.nvim_win_get_cursor(prompt.from)
      vim.schedule(function() -- leaving Insert mode moves the cursor back by one
        if api.nvim_get_current_win() == prompt.from then
          pcall(api.nvim_win_set_cursor, prompt.from, cursor)
        end
      end)
    end
  end
  if api.nvim_win_is_valid(prompt.win) then
    api.nvim_win_close(prompt.win, true)
  end
  prompt.done(text)
end

local function send(prompt)
  local text = vim.trim(text_of(prompt))
  if text ~= "" then
    remember(text)
  end
  if text ~= "" or prompt.may_be_empty then
    close(prompt, text)
  end
end

--- Replace the text by an older or newer one of the history.
---@param by integer 1 is older
local function browse(prompt, by)
  local texts = history()
  local index = math.max(math.min(prompt.index + by, #texts), 0)
  if index == prompt.index then
    return
  elseif prompt.index == 0 then
    prompt.draft = text_of(prompt)
  end
  prompt.index = index
  local lines = vim.split(index == 0 and prompt.draft or texts[index], "\n", { plain = true })
  api.nvim_buf_set_lines(prompt.buf, 0, -1, false, lines)
  api.nvim_win_set_cursor(prompt.win, { #lines, #lines[#lines] })
  fit_height(prompt)
end

local function map(prompt)
  local function on(modes, lhs, run)
    vim.keymap.set(modes, lhs, notify.guarded(run), { buffer = prompt.buf, nowait = true })
  end
  --- Return a key for the popup menu, where that is open.
  local function in_menu(key)
    return vim.fn.pumvisible() == 1 and vim.keycode(key)
  end
  local function type_keys(keys)
    api.nvim_feedkeys(keys, "n", false)
  end
  on({ "n", "i" }, "<CR>", function()
    local keys = in_menu("<C-y>")
    if keys and vim.fn.complete_info({ "selected" }).selected >= 0 then
      return type_keys(keys)
    end
    send(prompt)
  end)
  on("i", "<Tab>", function()
    type_keys(in_menu("<C-y>") or "\t")
  end)
  on("i", "<S-CR>", function()
    type_keys("\n")
  end)
  for lhs, by in pairs({ ["<Up>"] = 1, ["<Down>"] = -1, ["<C-p>"] = 1, ["<C-n>"] = -1 }) do
    on({ "n", "i" }, lhs, function()
      local keys = in_menu(by == 1 and "<C-p>" or "<C-n>")
      if keys then
        return type_keys(keys)
      end
      browse(prompt, by)
    end)
  end
  for lhs, modes in pairs({ ["<Esc>"] = { "n" }, ["q"] = { "n" }, ["<C-c>"] = { "n", "i" } }) do
    on(modes, lhs, function()
      close(prompt, nil)
    end)
  end
end

--- Return where the window goes: above what it is about, below that where there is no room, at the
--- cursor where that is not visible.
---@param rows? integer[]
---@return vim.api.keyset.win_config
local function position(rows)
  local win = api.nvim_get_current_win()
  local top = rows and vim.fn.screenpos(win, rows[1] + 1, 1).row or 0
  local bottom = rows and vim.fn.screenpos(win, math.max(rows[2], rows[1] + 1), 1).row or 0
  local col = math.max(vim.fn.screenpos(win, vim.fn.line("."), 1).col - 1, 0)
  if top > MIN_ROWS then
    return { relative = "editor", anchor = "SW", row = top - 1, col = col }
  elseif bottom > 0 and bottom + MIN_ROWS < vim.o.lines - vim.o.cmdheight then
    return { relative = "editor", anchor = "NW", row = bottom, col = col }
  end
  local above = vim.fn.screenrow() > MIN_ROWS
  return { relative = "cursor", anchor = above and "SW" or "NW", row = above and 0 or 1, col = 0 }
end

---@class (exact) lcursor.InputOpts
---@field title string
---@field path string absolute
---@field may_be_empty? boolean
---@field rows? integer[] first row of what it is about, and the one after the last

--- Ask for a text. One window at a time.
---@param opts lcursor.InputOpts
---@param done fun(text?: string) called once, back in the current window; nil: it was left
function M.open(opts, done)
  if current then
    close(current, nil)
  end
  highlights.apply()
  local autocmd = notify.autocmds("input")
  local from = api.nvim_get_current_win()
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden, vim.bo[buf].filetype = "wipe", "lcursor-prompt"
  local width = math.max(math.min(72, vim.o.columns - 4), 1)
  local config = vim.tbl_extend("error", position(opts.rows), {
    width = width,
    height = 1,
    style = "minimal",
    border = "rounded",
    title = (" %s "):format(tail(opts.title, width - 2)),
    footer = " <CR> send, <Up> history, <C-c> cancel ",
    footer_pos = "right",
  })
  local win = window.open(buf, true, config)
  local wo = vim.wo[win][0]
  wo.wrap, wo.linebreak = true, true
  wo.winhighlight = "FloatTitle:LCursorEditTitle,FloatFooter:LCursorEditKey"
  ---@type lcursor.Input
  local prompt = {
    buf = buf,
    win = win,
    from = from,
    may_be_empty = opts.may_be_empty or false,
    done = done,
    index = 0,
    draft = "",
  }
  current = prompt
  map(prompt)
  completion.attach_prompt(buf, opts.path)
  autocmd({ "TextChangedI", "TextChangedP", "TextChanged" }, function()
    fit_height(prompt)
  end, { buffer = buf })
  local leave = vim.schedule_wrap(function()
    close(prompt, nil)
  end)
  autocmd("WinClosed", leave, { pattern = tostring(win), once = true })
  vim.cmd("startinsert!")
end

function M.is_open()
  return current ~= nil
end

return M
