-- `:LCursor chats` and its subcommands.

local export = require("lcursor.chat.export")
local list = require("lcursor.chat.list")
local load = require("lcursor.chat.load")
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")
local sessions = require("lcursor.chat.sessions")
local turn = require("lcursor.chat.turn")
local usage = require("lcursor.chat.usage")

local M = {}

--- Summarize the messages so far.
local function compact(session)
  if turn.is_busy(session) then
    return
  end
  notify.progress("summarizing the chat …")
  requests.follow("chat.compact", { chat = session.chat }, function(method, params)
    if method == "chat.summed" then
      turn.report_summary(params)
    elseif method == "chat.done" and params.reason == "stop" then
      load.reload(session)
    end
  end)
end

--- Undo a summary: its messages are in the prompt again.
local function expand(session)
  for i = #session.messages, 1, -1 do
    local message = session.messages[i]
    if message.role == "summary" then
      return load.change(session, "chat.expand", { number = message.number })
    end
  end
  notify.info("no summary in this chat")
end

--- Use another model from now on; asks if no name is given.
---@param session lcursor.ChatSession
---@param name? string
function M.choose_model(session, name)
  local function use(model)
    if model == session.model then
      notify.info(("this chat already uses %s"):format(model))
    elseif model then
      load.change(session, "chat.use", { model = model })
    end
  end
  if session.chat == "" then
    return notify.info("the chat is not open yet")
  elseif name and name ~= "" then
    return use(name)
  elseif #session.models < 2 then
    local only = session.models[1] or session.model
    return notify.info(("%s is the only model; see :help lcursor-chat-models"):format(only))
  end
  vim.ui.select(session.models, {
    prompt = "Model",
    kind = "lcursor.models",
    format_item = function(item)
      return item == session.model and item .. " (current)" or item
    end,
  }, use)
end

---@type table<string, fun(session: lcursor.ChatSession, rest: string)> for the current chat
local CHAT = {
  rename = function(session, rest)
    list.rename(session.chat, rest, session.title)
  end,
  delete = function(session)
    list.delete({ session })
  end,
  export = function(session, rest)
    export.save(session.title, session.messages, rest)
  end,
  context = usage.preview,
  sources = usage.sources,
  model = M.choose_model,
  compact = compact,
  expand = expand,
}

---@type table<string, fun()>
local GLOBAL = {
  all = function()
    list.open(true)
  end,
  new = function()
    require("lcursor.chat").open({ new = true })
  end,
  last = function()
    list.newest(nil, function(key)
      require("lcursor.chat").open({ chat = key })
    end)
  end,
}

---@return string[]
function M.words()
  local words = vim.list_extend(vim.tbl_keys(GLOBAL), vim.tbl_keys(CHAT))
  table.sort(words)
  return words
end

--- `:LCursor chats {word} {rest}`.
---@param args string[]
function M.command(args)
  if not requests.is_enabled("chat", "the chat is") then
    return
  end
  local word, rest = args[1], table.concat(vim.list_slice(args, 2), " ")
  if not word then
    return list.open()
  elseif GLOBAL[word] then
    return GLOBAL[word]()
  end
  local run, session = CHAT[word], sessions.current()
  if not run then
    local text = "invalid argument '%s' for :LCursor chats (expected: %s)"
    return notify.warn(text:format(word, table.concat(M.words(), ", ")))
  elseif not session or session.chat == "" then
    return notify.info("no chat is open; :LCChat opens one")
  end
  run(session, rest)
end

return M
