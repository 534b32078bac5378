-- The chat: opens it, asks, and owns its sessions' lives from the first window to the end of the
-- buffer. The rest of the plugin, and the other files here, come in through this one.

local buffer = require("lcursor.chat.buffer")
local config = require("lcursor.config")
local requests = require("lcursor.requests")
local keys = require("lcursor.chat.keys")
local notify = require("lcursor.notify")
local state = require("lcursor.chat.state")
local turns = require("lcursor.chat.turns")
local window = require("lcursor.chat.window")

local M = {}

local api = vim.api

---@class lcursor.ChatOpts
---@field new? boolean begin a new chat in any case
---@field chat? string key of a stored one, or `last`
---@field path? string absolute: of a file or folder of the project
---@field side? "right"|"left"|"above"|"below"
---@field size? number
---@field float? boolean
---@field enter? boolean false leaves the cursor where it is

local started = false

local function start()
  if started then
    return
  end
  started = true
  local group = api.nvim_create_augroup("lcursor.chat", {})
  api.nvim_create_autocmd("BufEnter", {
    group = group,
    callback = notify.guarded(function(event)
      state.notice(event.buf)
    end),
  })
  api.nvim_create_autocmd({ "WinResized", "BufWinEnter" }, {
    group = group,
    callback = notify.guarded(function(event)
      local bufs = { event.buf }
      if event.event == "WinResized" then
        bufs = vim.tbl_map(api.nvim_win_get_buf, vim.v.event.windows)
      end
      for _, session in ipairs(state.all()) do
        if vim.list_contains(bufs, session.buf) then
          buffer.placeholder(session) -- why it failed is laid out for the narrowest window
        end
      end
    end),
  })
end

local is_told = false -- that a changed answer stays on the screen

---@param session lcursor.ChatSession
local function changed(session)
  local writer = session.stream
  if writer and api.nvim_buf_get_changedtick(session.buf) == writer.tick then
    return -- it was the stream
  end
  buffer.placeholder(session)
  local span = buffer.at(session, api.nvim_win_get_cursor(0)[1] - 1)
  local message = span and span.message
  if message then
    local key = config.get().chat.mappings.send
    local how = message.role == "user" and "changed: %s asks it so"
      or "changed here only: %s keeps it"
    key = key ~= "" and key or "sending"
    local is_changed = buffer.changed(session, span) ~= nil
    buffer.badge(session, span, nil, is_changed and how:format(key) or nil)
    if is_changed and message.role == "assistant" and not is_told then
      is_told = true -- its heading may be far above
      local words = "an answer that is changed in the chat is not what the model reads; "
        .. "%s in it, in Normal mode, keeps it so"
      notify.info(words:format(key))
    end
  end
end

--- The text is gone: by `:edit`, or for good.
---@param session lcursor.ChatSession
local function unloaded(session)
  local buf = session.buf
  if api.nvim_buf_is_loaded(buf) then
    vim.bo[buf].filetype = "markdown"
    turns.again(session)
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      window.dress(session, win)
    end
    return
  end
  turns.drop(session)
  if api.nvim_buf_is_valid(buf) then
    pcall(api.nvim_buf_delete, buf, { force = true })
  end
end

---@param session lcursor.ChatSession
local function watch(session)
  local function on(events, fn)
    api.nvim_create_autocmd(events, {
      buffer = session.buf,
      callback = notify.guarded(fn),
    })
  end
  on({ "TextChanged", "TextChangedI" }, function()
    changed(session)
  end)
  on("BufWinEnter", function()
    local win = api.nvim_get_current_win()
    if api.nvim_win_get_buf(win) == session.buf then
      window.dress(session, win)
    end
  end)
  on("BufEnter", function()
    state.use(session)
  end)
  on(
    "BufUnload",
    vim.schedule_wrap(function()
      unloaded(session)
    end)
  )
end

---@param path string
---@param key string
---@return lcursor.ChatSession
local function begin(path, key)
  local session = state.new(0, path)
  session.buf = buffer.create(session.number)
  buffer.render(session, "")
  require("lcursor.chat.reach").start()
  keys.map(session)
  watch(session)
  require("lcursor.chat.mentions").start(session)
  turns.greet(session, key)
  return session
end

--- Show the chat about the project one is in, or begin one.
---@param opts? lcursor.ChatOpts
---@return lcursor.ChatSession? nil where the chat is switched off
function M.open(opts)
  opts = opts or {}
  if not requests.is_enabled("chat", "the chat is") then
    return nil
  end
  start()
  local path = opts.path or state.here()
  local key = opts.chat or ""
  local session
  if key ~= "" then
    session = state.named(key)
  elseif not opts.new then
    session = state.about(path)
  end
  session = session or begin(path, key)
  window.open(session, opts)
  state.use(session)
  return session
end

--- Ask at once, in the chat about the project one is in.
---@param question string
---@param opts? lcursor.ChatOpts|lcursor.ChatAsk
---@return lcursor.ChatSession?
function M.ask(question, opts)
  opts = opts or {}
  local session = M.open(opts)
  if session then
    turns.ask(session, question, opts)
  end
  return session
end

--- Close the chat's window, or show it.
---@param opts? lcursor.ChatOpts
function M.toggle(opts)
  local session = state.current()
  if session and window.find(session) then
    return window.close(session)
  end
  M.open(opts)
end

--- Send what is written in the current chat.
---@param opts? lcursor.ChatAsk
function M.send(opts)
  local session = state.current()
  if session then
    turns.send(session, opts or {})
  end
end

--- The chat whose buffer one is in, else the one that was used last.
---@return lcursor.ChatSession?
function M.current()
  local session = state.current()
  if session then
    session.win = window.find(session)
  end
  return session
end

---@return lcursor.ChatSession[] all chats of this Neovim
function M.all()
  return state.all()
end

--- `:LCChat`: with a range its lines go along, with a question it is asked at once, with a bang in
--- a new chat.
---@param opts vim.api.keyset.create_user_command.command_args
function M.command(opts)
  local attachments = {}
  if opts.range > 0 then
    local buf = api.nvim_get_current_buf()
    local piece = require("lcursor.chat.attach").range(buf, opts.line1 - 1, opts.line2)
    if not piece then
      return -- it was told why: a secret
    end
    attachments = { piece }
  end
  local asked = { new = opts.bang }
  local session = M.open(asked)
  if not session then
    return
  end
  require("lcursor.chat.attach").put(session, attachments)
  if opts.args:find("%S") then
    turns.ask(session, opts.args, {})
  end
end

return M
