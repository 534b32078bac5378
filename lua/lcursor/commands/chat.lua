-- `:LCursor chat`.

local function ask(command)
  require("lcursor.chat").call({
    range = command.range,
    selection = false,
    question = command.text,
  })
end

local function new()
  require("lcursor.chat").open({ new = true })
end

local function last()
  require("lcursor.chat").call({ chat = "last", selection = false })
end

local function list(command)
  require("lcursor.chat.list").open(command.args[1] == "all")
end

--- Return a command that calls a function of a module with the current chat.
---@return fun(command: lcursor.CommandCall)
local function of_current(module, name)
  return function(command)
    local session = require("lcursor.chat").current()
    if not session or session.key == "" then
      return require("lcursor.ui.notify").info("no chat is open; :LCChat opens one")
    end
    require("lcursor.chat." .. module)[name](session, command.text)
  end
end

---@param lead string
---@param rest string
---@return string[]
local function mentions(lead, rest)
  return require("lcursor.editor.mentions").complete(lead, "LCChat " .. rest .. lead)
end

---@param lead string
---@return string[]
local function models(lead)
  local session = require("lcursor.chat").current()
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, session and session.models or {})
end

-- stylua: ignore
---@type lcursor.Noun
return {
  text = "Chats about the project. Those from `context` on act on the current chat.",
  default = "ask",
  is_enabled = function()
    return require("lcursor.host.requests").is_enabled("chat", "the chat is")
  end,
  verbs = {
    { "ask [question]", "Open the chat, or send a question, the same as |:LCChat|.", ask,
      complete = mentions },
    { "new", "Start a chat.", new },
    { "last", "Open the newest chat.", last },
    { "list", "List the chats of the project.", list,
      args = { { "all", "List the chats of all projects." } } },
    { "context", "Preview what would be sent.", of_current("usage", "preview") },
    { "sources", "Show what was sent with the question.", of_current("usage", "sources") },
    { "model [name]", "Choose the model; without a name, from a list.",
      of_current("verbs", "choose_model"), complete = models },
    { "compact", "Summarize the messages so far.", of_current("verbs", "compact") },
    { "expand", "Undo the last summary.", of_current("verbs", "expand") },
    { "rename [title]", "Rename the chat.", of_current("verbs", "rename") },
    { "export [file]", "Write the chat as Markdown; without a name, ask for one.",
      of_current("verbs", "export"), complete = "file" },
    { "delete", "Delete the chat.", of_current("verbs", "delete") },
    { "stop", "Stop the answer or the summary.", of_current("verbs", "stop") },
  },
}
