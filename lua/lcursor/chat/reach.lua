-- What leads out of a chat, put together: the keys for the bill, the receipts, code blocks, models
-- and the list, and `:LCursor chats` with its words.

local bill = require("lcursor.chat.bill")
local blocks = require("lcursor.chat.blocks")
local keys = require("lcursor.chat.keys")
local list = require("lcursor.chat.list")
local many = require("lcursor.text").many
local models = require("lcursor.chat.models")
local notify = require("lcursor.notify")
local receipts = require("lcursor.chat.receipts")
local window = require("lcursor.ui.window")
local requests = require("lcursor.requests")
local shown = require("lcursor.chat.shown")
local state = require("lcursor.chat.state")
local transcript = require("lcursor.chat.transcript")

local M = {}

---@type { name: string, text: string, run: fun(session: lcursor.ChatSession) }[]
local KEYS = {
  { name = "bill", text = "Show what would be sent and what it costs.", run = bill.open },
  { name = "receipts", text = "Show what went in with a question, and why.", run = receipts.open },
  { name = "jump", text = "Go to the file that is named here.", run = receipts.follow },
  { name = "yank_block", text = "Yank the code block.", run = blocks.yank },
  { name = "insert_block", text = "Put the code block where the code is.", run = blocks.insert },
  { name = "open_block", text = "Open the code block in a buffer.", run = blocks.open },
  { name = "apply_block", text = "Change the file by the code block.", run = blocks.apply },
  { name = "model", text = "Talk to another model.", run = models.choose },
  {
    name = "list",
    text = "List the stored chats.",
    run = function()
      list.open()
    end,
  },
}

local is_started = false

--- Add the keys; before those of a chat are mapped.
function M.start()
  if is_started then
    return
  end
  is_started = true
  for _, key in ipairs(KEYS) do
    keys.add({ name = key.name, modes = { "n" }, text = key.text, run = key.run })
  end
end

--- Have what was said until now summarized.
---@param session lcursor.ChatSession
function M.compact(session)
  if session.turn then
    return notify.info("an answer is being written")
  end
  notify.progress("summarizing the chat …")
  local function hear(method, params)
    if method == "chat.summed" then
      notify.info(
        ("%s summarized: %s now %d"):format(
          many(params.messages, "message was", "messages were"),
          many(params.tokens_before, "token is", "tokens are"),
          params.tokens_after
        )
      )
    elseif method == "chat.done" and params.reason == "stop" then
      M.reload(session)
    end
  end
  requests.follow("chat.compact", { chat = session.chat }, hear)
end

--- Show a chat as the host has it.
---@param session lcursor.ChatSession
function M.reload(session)
  requests.ask("chat.open", { chat = session.chat, path = session.path }, function(opened)
    if not session.turn then
      shown.show(session, opened)
    end
  end)
end

--- Have the messages themselves in the prompt again, instead of their summary.
---@param session lcursor.ChatSession
function M.expand(session)
  for i = #session.messages, 1, -1 do
    local message = session.messages[i]
    if message.role == "summary" then
      return shown.change(session, "chat.expand", { number = message.number })
    end
  end
  notify.info("nothing of this chat is summarized")
end

---@param title string
---@param session lcursor.ChatSession
local function rename(session, title)
  if title ~= "" then
    return list.rename(session.chat, title)
  end
  vim.ui.input({ prompt = "Title: ", default = session.title }, function(new)
    if new and new:find("%S") then
      list.rename(session.chat, new)
    end
  end)
end

---@param session lcursor.ChatSession
local function delete(session)
  local title = session.title ~= "" and session.title or "new chat"
  window.confirm(('Delete the chat "%s" for good?'):format(title), function()
    list.delete(session.chat)
  end)
end

--- What `:LCursor chats {word} {rest}` does with the chat one is in, or used last.
---@type table<string, fun(session: lcursor.ChatSession, rest: string)>
local WITH_CHAT = {
  rename = rename,
  delete = delete,
  export = function(session, rest)
    transcript.save(session.title, session.messages, rest)
  end,
  bill = bill.open,
  receipts = receipts.open,
  model = models.choose,
  compact = M.compact,
  expand = M.expand,
}

--- What it does without one.
---@type table<string, fun()>
local WITHOUT = {
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
  local words = vim.list_extend(vim.tbl_keys(WITHOUT), vim.tbl_keys(WITH_CHAT))
  table.sort(words)
  return words
end

--- `:LCursor chats {words}`.
---@param args string[]
function M.command(args)
  if not requests.is_enabled("chat", "the chat is") then
    return
  end
  local word, rest = args[1], table.concat(vim.list_slice(args, 2), " ")
  if not word then
    return list.open()
  elseif WITHOUT[word] then
    return WITHOUT[word]()
  end
  local run, session = WITH_CHAT[word], state.current()
  if not run then
    local known = table.concat(M.words(), ", ")
    return notify.warn((":LCursor chats knows %s, not %s"):format(known, word))
  elseif not session or session.chat == "" then
    return notify.info("no chat is open; :LCChat opens one")
  end
  run(session, rest)
end

return M
