-- The chat: opens chats, asks, and ties the lives of buffers to chats. The rest of the plugin uses
-- this module.

local attachments = require("lcursor.editor.attachments")
local buffer = require("lcursor.chat.buffer")
local buffers = require("lcursor.editor.buffers")
local entries = require("lcursor.conversation.entries")
local keymaps = require("lcursor.editor.keymaps")
local requests = require("lcursor.host.requests")
local keys = require("lcursor.chat.keys")
local format = require("lcursor.chat.format")
local list = require("lcursor.chat.list")
local load = require("lcursor.chat.load")
local mention_completion = require("lcursor.editor.mention_completion")
local notify = require("lcursor.ui.notify")
local send = require("lcursor.chat.send")
local sessions = require("lcursor.conversation.sessions")
local turn = require("lcursor.chat.turn")
local winbar = require("lcursor.chat.winbar")
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api

-- The fields of these are in lcursor/protocol/chat.py.
---@alias lcursor.ChatAttachment table
---@alias lcursor.ChatItem table a part of a prompt
---@alias lcursor.ChatMessage table its number is 0 until the host has sent it
---@alias lcursor.ChatOpened table `chat.opened`
---@alias lcursor.ChatProgress table `chat.progress`
---@alias lcursor.ChatPreviewed table `chat.previewed`
---@alias lcursor.ChatDone table `chat.done`
---@alias lcursor.ChatRow table a stored chat, in `chat.listed`

---@class (exact) lcursor.ChatSession: lcursor.Conversation
---@field win? integer that shows it in this tab page
---@field root string of the project; "" until the host has opened it
---@field host? lcursor.HostInfo of the process that opened it
---@field settings? table with which it was opened
---@field title string
---@field model string
---@field models string[]
---@field messages lcursor.ChatMessage[] of the current branch
---@field context_tokens integer
---@field used_tokens integer
---@field turn? lcursor.ChatTurn that runs
---@field compacting? integer id of the request that summarizes the chat
---@field last? lcursor.ChatDone of the last turn
---@field waiting fun()[] called when the host has opened it
---@field attached lcursor.ChatAttachment[] to the next question
---@field dropped string[] keys of items that the next question leaves out
---@field failure? lcursor.Error of the last turn, or of opening it

---@class lcursor.ChatOpts: lcursor.ConversationOpts
---@field new? boolean start a new chat
---@field chat? string key of a stored one, or `last`
---@field path? string absolute: of a file or folder of the project

---@class lcursor.ChatCall: lcursor.ChatOpts
---@field question? string to ask at once
---@field draft? string to put into the draft
---@field range? integer[] first and last line of the current buffer to attach, from 1
---@field selection? boolean false does not attach the selection
---@field attachments? lcursor.ChatAttachment[] to attach as well
---@field toggle? boolean close the chat's window if it is open

local CALL_OPTS =
  vim.split("new chat path window enter question draft range selection attachments toggle", " ")

local is_started = false
local is_edit_explained = false

---@type lcursor.ConversationKind
local KIND = {
  name = "chat",
  is_parsed = true,
  interval_ms = 250,
  press = keys.press,
  stop = turn.stop,
  heading = buffer.heading,
  body = buffer.body,
  decorate = buffer.decorate,
  fold = format.fold,
  title = winbar.title,
  parts = winbar.parts,
  activity = winbar.activity,
  reloaded = turn.render_again,
  unloaded = turn.drop,
}

local function start()
  if is_started then
    return
  end
  is_started = true
  notify.autocmds("chat")("BufEnter", function(event)
    buffers.remember(event.buf)
  end)
end

--- Show at the heading of an edited message how to send it.
local function on_text_changed(session)
  if api.nvim_buf_get_changedtick(session.buf) == session.tick then
    return -- our own change
  end
  entries.decorate(session, entries.draft(session))
  local entry = entries.at_cursor(session)
  local message = entry.message
  if not message then
    return
  end
  local is_edited = buffer.edited(session, entry) ~= nil
  local key = keymaps.shown("chat", "send", session.buf) or "sending"
  local hint = message.role == "user" and "edited: %s sends it" or "edited here only: %s saves it"
  entry.note = is_edited and hint:format(key) or nil
  entries.decorate(session, entry)
  if is_edited and message.role == "assistant" and not is_edit_explained then
    is_edit_explained = true -- the heading may be out of view
    local text = "the model still reads the original answer; %s in Normal mode saves the edited one"
    notify.info(text:format(key))
  end
end

---@param path string absolute
---@param key string "" for a new chat
---@return lcursor.ChatSession
local function create(path, key)
  ---@type lcursor.ChatSession
  local session = vim.tbl_extend("error", sessions.new(KIND, path), {
    root = "",
    title = "",
    model = "",
    models = {},
    messages = {},
    context_tokens = 0,
    used_tokens = 0,
    waiting = {},
    attached = {},
    dropped = {},
  })
  window.create(session)
  sessions.add(session)
  api.nvim_create_autocmd({ "TextChanged", "TextChangedI" }, {
    buffer = session.buf,
    callback = notify.guarded(function()
      on_text_changed(session)
    end),
  })
  mention_completion.attach(session.buf, {
    find = function()
      return buffer.mention(session)
    end,
    path = buffers.here,
  })
  load.open(session, key)
  return session
end

--- Return the chat about the project of a file: the current one, else the newest.
---@param path string absolute
---@return lcursor.ChatSession?
local function of_path(path)
  local candidates = M.all()
  table.insert(candidates, M.current())
  return vim.iter(candidates):rev():find(function(session)
    local root = session.root ~= "" and session.root or session.path
    return path == session.path or vim.fs.relpath(root, path) ~= nil
  end)
end

--- Show the chat about the current project, or start one.
---@param opts? lcursor.ChatOpts
---@return lcursor.ChatSession? nil if the chat is switched off
function M.open(opts)
  opts = opts or {}
  if not requests.is_enabled("chat", "the chat is") then
    return nil
  end
  start()
  local path = opts.path or buffers.here()
  local key = opts.chat or ""
  local session
  if key ~= "" then
    session = sessions.of_key("chat", key)
  elseif not opts.new then
    session = of_path(path)
  end
  session = session or create(path, key)
  window.open(session, opts)
  session.win = window.find(session)
  return session
end

--- Ask a question in the chat about the current project.
---@param question string
---@param opts? lcursor.ChatOpts|lcursor.ChatAsk
---@return lcursor.ChatSession?
function M.ask(question, opts)
  opts = opts or {}
  local session = M.open(opts)
  if session then
    send.ask(session, question, opts)
  end
  return session
end

--- Close the chat's window, or open it.
---@param opts? lcursor.ChatOpts
function M.toggle(opts)
  local session = sessions.current("chat")
  if session and window.find(session) then
    return window.close(session)
  end
  M.open(opts)
end

--- Return the chat of the current buffer, else the one used last.
---@return lcursor.ChatSession?
function M.current()
  local session = sessions.current("chat")
  if session then
    session.win = window.find(session)
  end
  return session
end

---@return lcursor.ChatSession[] all chats of this Neovim
function M.all()
  return sessions.all("chat")
end

--- Attach something to the next question.
local function attach(session, added)
  for _, one in ipairs(added) do
    local is_there = vim.iter(session.attached):any(function(other)
      return other.kind == one.kind and other.name == one.name and other.text == one.text
    end)
    if not is_there then
      table.insert(session.attached, one)
    end
  end
  entries.decorate_all(session)
end

--- Read what goes along with a call.
---@return lcursor.ChatAttachment[]? nil if something must not be sent, which was reported
local function attachments_of(opts)
  local found = vim.tbl_map(attachments.with_defaults, opts.attachments or {})
  local is_visual = not opts.range and opts.selection ~= false and attachments.is_visual()
  if not opts.range and not is_visual then
    return found
  end
  local one
  if opts.range then
    one = attachments.range(api.nvim_get_current_buf(), opts.range[1] - 1, opts.range[2])
  else
    one = attachments.selection()
  end
  table.insert(found, one)
  return one and found
end

local function open_with(opts, added)
  local session = M.open(opts)
  if not session then
    return
  end
  attach(session, added)
  if opts.draft and opts.draft ~= "" then
    entries.set_draft(session, opts.draft)
  end
  if opts.question and opts.question:find("%S") then
    send.ask(session, opts.question, {})
  end
end

--- `chat()` of the Lua API.
---@param opts lcursor.ChatCall
function M.call(opts)
  for name in pairs(opts) do
    if not vim.list_contains(CALL_OPTS, name) then
      local text = "chat(): unknown option %s; see :help lcursor.chat()"
      return notify.warn(text:format(tostring(name)))
    end
  end
  if opts.toggle then
    return M.toggle(opts)
  end
  local added = attachments_of(opts)
  if not added then
    return
  end
  if attachments.is_visual() then
    vim.cmd("normal! \27")
  end
  if opts.chat == "last" then
    return list.newest(opts.path, function(key)
      open_with(vim.tbl_extend("force", opts, { chat = key }), added)
    end)
  end
  open_with(opts, added)
end

--- `:LCChat`.
---@param opts vim.api.keyset.create_user_command.command_args
function M.command(opts)
  if opts.args == "--help" then
    return require("lcursor.ui.window").help(":LCChat")
  end
  M.call({
    new = opts.bang,
    range = opts.range > 0 and { opts.line1, opts.line2 } or nil,
    selection = false,
    question = opts.args,
  })
end

return M
