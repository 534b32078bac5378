-- The buffer of a conversation with its keys, the window that shows it, and its winbar.

local entries = require("lcursor.conversation.entries")
local highlights = require("lcursor.ui.highlights")
local keymaps = require("lcursor.editor.keymaps")
local lsp_progress = require("lcursor.ui.lsp_progress")
local notify = require("lcursor.ui.notify")
local sessions = require("lcursor.conversation.sessions")
local transcript = require("lcursor.conversation.transcript")
local ui = require("lcursor.ui.window")
local winbar = require("lcursor.ui.winbar")

local M = {}

local api = vim.api
local FOLDTEXT = "v:lua.require'lcursor.conversation.window'.foldtext()"

local is_started = false

---@class lcursor.ConversationOpts
---@field window? { position?: string, size?: number } like the option chat.window
---@field enter? boolean false leaves the cursor where it is

--- 'foldtext'.
---@return string|lcursor.Chunk[]
function M.foldtext()
  local line = vim.fn.getline(vim.v.foldstart)
  local info = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  local conversation = sessions.of_buffer(api.nvim_get_current_buf())
  local count = vim.v.foldend - vim.v.foldstart + 1
  return conversation and conversation.kind.fold(line, count, info.width - info.textoff) or line
end

--- Return a window of this tab page that shows a conversation.
---@param conversation lcursor.Conversation
---@return integer?
function M.find(conversation)
  return ui.find(conversation.buf)
end

--- Draw the winbar, again and again while something is done. Where no window shows the
--- conversation, what handles LspProgress says what is done.
---@param conversation lcursor.Conversation
function M.draw(conversation)
  local kind, buf = conversation.kind, conversation.buf
  local title, doing = kind.title(conversation), kind.activity(conversation)
  local token = ("%s %d"):format(kind.name, conversation.number)
  if buf then
    winbar.draw(buf, title, kind.parts(conversation))
  end
  if not doing or (buf and vim.fn.bufwinid(buf) > 0) then
    lsp_progress.finish(token)
  else
    lsp_progress.report(token, ("%s: %s"):format(kind.name, title), doing)
  end
  if doing and not conversation.is_drawn_later then
    conversation.is_drawn_later = true
    notify.later(kind.interval_ms, function()
      conversation.is_drawn_later = false
      M.draw(conversation)
    end)
  end
end

local function set_filetype(conversation)
  local kind = conversation.kind
  transcript.set_filetype(conversation.buf, "lcursor_" .. kind.name, kind.is_parsed)
end

--- Set the options of a window while it shows a conversation, and lay out its notes.
local function set_options(conversation, win)
  transcript.set_window_options(win, FOLDTEXT)
  transcript.fold_window(conversation.buf, win)
  M.draw(conversation)
  entries.decorate_all(conversation)
end

--- Handle `:edit`, or the end of the buffer.
local function on_unload(conversation, buf)
  if conversation.buf ~= buf then
    return
  elseif api.nvim_buf_is_loaded(buf) then
    set_filetype(conversation)
    conversation.kind.reloaded(conversation)
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      set_options(conversation, win)
    end
    return
  end
  conversation.kind.unloaded(conversation)
  if api.nvim_buf_is_valid(buf) then
    pcall(api.nvim_buf_delete, buf, { force = true })
  end
end

--- Lay out notes and winbars again when the width of windows changes.
local function start()
  if is_started then
    return
  end
  is_started = true
  notify.autocmds("conversation")("WinResized", function()
    for _, win in ipairs(vim.v.event.windows) do
      local conversation = sessions.of_buffer(api.nvim_win_get_buf(win))
      if conversation then
        entries.decorate_all(conversation)
        M.draw(conversation)
      end
    end
  end)
end

--- Create the buffer of a conversation, with its keys.
---@param conversation lcursor.Conversation
function M.create(conversation)
  start()
  highlights.apply()
  local name = conversation.kind.name
  local buf = transcript.create(("%s/%d"):format(name, conversation.number))
  conversation.buf = buf
  set_filetype(conversation)
  keymaps.map(name, buf, conversation.kind.press)
  entries.render(conversation, "") -- names keys
  local function on(event, fn)
    api.nvim_create_autocmd(event, { buffer = buf, callback = notify.guarded(fn) })
  end
  on("BufWinEnter", function()
    local win = api.nvim_get_current_win()
    if api.nvim_win_get_buf(win) == buf then
      set_options(conversation, win)
    end
  end)
  on("BufEnter", function()
    sessions.use(conversation)
  end)
  on("BufUnload", function()
    vim.schedule(notify.guarded(function()
      on_unload(conversation, buf)
    end))
  end)
end

--- Move the cursor of a window to the end of the draft: from there the view follows.
---@param conversation lcursor.Conversation
---@param win integer
function M.to_end(conversation, win)
  local last = api.nvim_buf_line_count(conversation.buf)
  local line = api.nvim_buf_get_lines(conversation.buf, last - 1, last, false)[1]
  api.nvim_win_set_cursor(win, { last, #line })
end

--- Show a conversation in this tab page, in the window of another one unless a position is given.
---@param conversation lcursor.Conversation
---@param opts lcursor.ConversationOpts
function M.open(conversation, opts)
  local name = conversation.kind.name
  local title = (" %s %d "):format(name, conversation.number)
  if not conversation.buf then
    M.create(conversation)
  end
  local win = M.find(conversation)
  if not win then
    win = not opts.window and vim.iter(sessions.all(name)):map(M.find):next() or nil
    if win then
      api.nvim_win_set_buf(win, conversation.buf)
      if api.nvim_win_get_config(win).relative ~= "" then
        api.nvim_win_set_config(win, { title = title })
      end
    else
      win = api.nvim_open_win(conversation.buf, false, ui.dock(opts.window, title))
    end
    set_options(conversation, win)
    M.to_end(conversation, win)
  end
  if opts.enter ~= false then
    api.nvim_set_current_win(win)
  end
  sessions.use(conversation)
end

--- Close the windows of a conversation in this tab page; what is being done continues.
---@param conversation lcursor.Conversation
function M.close(conversation)
  ui.close_all(conversation.buf)
end

--- Whether a row of a conversation is on the screen.
---@param conversation lcursor.Conversation
---@param row integer
---@return boolean
function M.is_visible(conversation, row)
  return vim.iter(api.nvim_tabpage_list_wins(0)):any(function(win)
    return api.nvim_win_get_buf(win) == conversation.buf
      and row >= vim.fn.line("w0", win) - 1
      and row < vim.fn.line("w$", win)
  end)
end

-- stylua: ignore
---@type table<string, fun(conversation: lcursor.Conversation)> actions of keys that all kinds have
local ACTIONS = {
  close = M.close,
  help = function(conversation)
    local name = conversation.kind.name
    ui.float(keymaps.describe(name, conversation.buf), name)
  end,
  stop = function(conversation)
    if not conversation.kind.stop(conversation) and api.nvim_get_mode().mode:find("^i") then
      vim.cmd.stopinsert()
    end
  end,
}

--- Return a function that does what a key stands for, in the current conversation of a kind.
---@param name "chat"|"agent" kind
---@param actions table<string, fun(conversation: any)> of its other keys
---@param hint string told if there is no conversation
---@return fun(action: string)
function M.presser(name, actions, hint)
  return function(action)
    local conversation = sessions.current(name)
    if not conversation then
      return notify.info(hint)
    end
    local act = actions[action] or ACTIONS[action]
    act(conversation)
  end
end

return M
