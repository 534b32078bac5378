-- :LCursor. One table of subcommands for dispatch, completion and help.

local M = {}

---@class (exact) lcursor.Command
---@field name string
---@field text string for the help
---@field run fun(args: string[], range?: integer[]) range: first and last line, from 1
---@field args? string[][] possible arguments and their meanings; "{name}" stands for any text
---@field any_args? boolean anything may follow; `run` checks it
---@field file_after? string the argument after which the name of a file follows

--- Return a function that calls one of a module, which it loads then.
---@param module string
---@return fun(args: string[])
local function call(module, name)
  return function(args)
    require("lcursor." .. module)[name](args)
  end
end

---@return fun(args: string[], range?: integer[])
local function edit(word)
  return function(args, range)
    require("lcursor.joined").edit().word(word, args, range)
  end
end

---@param ms? number
---@return string
local function milliseconds(ms)
  return ms and ms > 0 and ("%.0f ms"):format(ms) or "-"
end

--- Return the lines of `:LCursor status`.
---@return string[]
function M.status_lines()
  local host, state = require("lcursor.host").info(), require("lcursor.status").get()
  local complete, lines = require("lcursor.complete"), {}
  local function add(name, text)
    table.insert(lines, ("%-11s %s"):format(name, text))
  end
  add("state", require("lcursor.status").describe())
  add("detail", state.detail ~= "" and state.detail or "-")
  add("model", require("lcursor.config").get().completion.model)
  add("python", host.python or "-")
  add("process", host.pid and ("%d, version %s"):format(host.pid, host.version) or "-")
  add("started in", milliseconds(host.ready_ms))
  add("model ready", milliseconds(host.model_ms))
  add("here", complete.why().text)
  local index = package.loaded["lcursor.index"] and require("lcursor.index").describe()
  if index then
    add("index", index)
  end
  local edits = package.loaded["lcursor.edit"] and require("lcursor.edit.commands").describe()
  if edits then
    add("edits", edits)
  end
  local answer = complete.last_answer()
  if answer then
    local first, total = milliseconds(answer.stats.first_ms), milliseconds(answer.stats.total_ms)
    add(
      "last answer",
      ("%s, first text after %s, all after %s"):format(answer.reason, first, total)
    )
    add("tokens", M.token_counts(answer.stats))
  end
  return lines
end

--- Describe the cost of a completion.
---@param stats lcursor.Stats
---@return string
function M.token_counts(stats)
  return ("%d of %d reused, %d read, %d generated"):format(
    stats.reused_tokens,
    stats.prompt_tokens,
    stats.decoded_tokens,
    stats.generated_tokens
  )
end

local function status()
  require("lcursor.ui.window").float(M.status_lines(), "lcursor")
end

local function why()
  local found = require("lcursor.complete").why()
  require("lcursor.notify").info(vim.trim(found.text .. " " .. found.numbers))
end

local function stats(args)
  local module = require("lcursor.complete.stats")
  return args[1] == "reset" and module.reset() or module.show()
end

local function search(args)
  require("lcursor.index").search(table.concat(args, " "))
end

local function chats(args)
  require("lcursor.joined").chat()
  require("lcursor.chat.commands").command(args)
end

local function toggle(args)
  local is_here = args[1] == "buffer"
  local is_on = require("lcursor").toggle(is_here and 0 or nil)
  local where = is_here and " in this buffer" or ""
  require("lcursor.notify").info(("completion is %s%s"):format(is_on and "on" or "off", where))
end

local function restart()
  require("lcursor.complete").start()
  require("lcursor.host").restart()
end

local function log()
  vim.cmd.tabedit({ vim.fn.fnameescape(require("lcursor.log").path()) })
  vim.bo.readonly, vim.bo.autoread = true, true
  vim.cmd("normal! G")
end

-- stylua: ignore
---@type lcursor.Command[]
local COMMANDS = {
  { name = "start", run = call("start", "open"),
    text = "Open the start page: what is set up, what is missing, the keys to know." },
  { name = "tutor", run = call("tutor", "open"),
    text = "Practise in a file of its own, in six short lessons." },
  { name = "status", run = status,
    text = "Show the state of the host, its model and the cost of the last completion." },
  { name = "why", run = why,
    text = "Explain why there is a suggestion here, or none." },
  { name = "stats", run = stats,
    text = "Show acceptance statistics per filetype.",
    args = { { "reset", "Delete the statistics." } } },
  { name = "prompt", run = call("complete.prompt", "show"),
    text = "Show the last prompt of completion, token by token." },
  { name = "toggle", run = toggle,
    text = "Switch completion off or on.",
    args = { { "buffer", "Only in this buffer." } } },
  { name = "complete", text = "Request a suggestion at the cursor; for <Cmd> maps in Insert mode.",
    run = function() require("lcursor").complete() end },
  { name = "dismiss", text = "Dismiss the suggestion until the text changes.",
    run = function() require("lcursor").dismiss() end },
  { name = "index", run = call("index", "command"), any_args = true, file_after = "why",
    text = "Show the state of the project's index, or what indexing would read.",
    args = {
      { "begin", "Start indexing." },
      { "rebuild", "Delete the index and start again." },
      { "why {path}", "Explain why a file is not indexed; without {path}, the current one." },
    } },
  { name = "search", run = search, any_args = true,
    text = "Search the indexed project while you type.",
    args = {
      { "{words}", "Search for these, with the results in the quickfix list." },
      { "@{name}", "Search for definitions whose name begins so." },
    } },
  { name = "chats", run = chats, any_args = true, file_after = "export",
    text = "List the chats of the project. All but `all`, `last` and `new` act on the current "
      .. "chat.",
    args = {
      { "all", "List the chats of all projects." },
      { "compact", "Summarize the messages so far." },
      { "context", "Preview what would be sent." },
      { "delete", "Delete the chat." },
      { "expand", "Undo the last summary." },
      { "export {file}", "Write the chat as Markdown; without {file}, ask for one." },
      { "last", "Open the newest chat." },
      { "model {name}", "Choose the model; without {name}, from a list." },
      { "new", "Start a chat." },
      { "rename {title}", "Rename the chat." },
      { "sources", "Show what was sent with the question." },
    } },
  { name = "server", run = call("chat.server", "command"), any_args = true,
    text = "Show the state of the local chat server.",
    args = {
      { "status", "The same." },
      { "start", "Start it." },
      { "stop", "Stop it." },
      { "restart", "Restart it." },
      { "log", "Open its log." },
    } },
  { name = "accept", run = edit("accept"), any_args = true,
    text = "Accept the hunk at the cursor, or the hunks of a range.",
    args = {
      { "all", "All hunks of the edit, also in files that are not open." },
      { "file", "All hunks of the file." },
    } },
  { name = "reject", run = edit("reject"), any_args = true,
    text = "Reject the hunk at the cursor, or the hunks of a range.",
    args = {
      { "all", "All hunks of the edit." },
      { "file", "All hunks of the file." },
    } },
  { name = "hunks", run = edit("hunks"),
    text = "List the hunks of all files in the quickfix list." },
  { name = "diff", run = edit("diff"),
    text = "Compare the file with what it would be with its hunks, side by side; again to close." },
  { name = "undo", run = edit("undo"),
    text = "Undo the last accepted edit in all its files; later changes are kept." },
  { name = "redo", run = edit("redo"),
    text = "Redo the edit that was undone last." },
  { name = "edits", run = edit("edits"),
    text = "List the edits of the project, to undo, redo or resume one." },
  { name = "fix", run = edit("fix"),
    text = "Fix the diagnostics of the current line, or of a range." },
  { name = "apply", run = edit("apply"), any_args = true,
    text = "Turn yanked code, a diff or a whole answer into hunks.",
    args = { { "{register}", "The text of this register." } } },
  { name = "commit", run = edit("commit"),
    text = "Write a commit message for the staged changes." },
  { name = "stop", run = edit("stop"),
    text = "Stop the edits that are being written in this buffer, or else all." },
  { name = "install", run = call("interim", "install"),
    text = "Create or update the Python environment, and download the models." },
  { name = "restart", run = restart,
    text = "Restart the host." },
  { name = "log", run = log,
    text = "Open the log." },
  { name = "health", text = "Check everything, the same as :checkhealth lcursor.",
    run = function() vim.cmd.checkhealth("lcursor") end },
}

---@return string[]
local function names()
  return vim.tbl_map(function(command)
    return command.name
  end, COMMANDS)
end

---@return lcursor.Command?
local function find(name)
  for _, command in ipairs(COMMANDS) do
    if command.name == name then
      return command
    end
  end
end

---@param command lcursor.Command
---@return string[] the words that may follow it
local function words_after(command)
  local function word(arg)
    return arg[1]:match("^%w+") -- nil for "{text}"
  end
  return vim.iter(command.args or {}):map(word):totable()
end

--- Run `:LCursor {subcommand} {args}`; without a subcommand it is start.
---@param opts vim.api.keyset.create_user_command.command_args
function M.run(opts)
  local args = vim.list_slice(opts.fargs)
  local name = table.remove(args, 1) or "start"
  local command = find(name)
  if not command then
    return require("lcursor.notify").warn(
      ("there is no :LCursor %s. Use one of %s"):format(name, table.concat(names(), ", "))
    )
  end
  local known = words_after(command)
  if args[1] and not command.any_args and not vim.list_contains(known, args[1]) then
    local expected = #known > 0 and table.concat(known, ", ") or "none"
    local text = "invalid argument %s for :LCursor %s (expected: %s)"
    return require("lcursor.notify").warn(text:format(args[1], name, expected))
  end
  command.run(args, opts.range > 0 and { opts.line1, opts.line2 } or nil)
end

--- Complete the command line.
---@param lead string the part of the word before the cursor
---@param line string
---@return string[]
function M.complete(lead, line)
  local name = line:match("LCursor!?%s+(%S+)%s")
  local words
  if name then
    local command = find(name)
    local word = line:match("LCursor!?%s+%S+%s+(%S+)%s")
    if word and command and command.file_after == word then
      return vim.fn.getcompletion(lead, "file")
    end
    words = not word and command and words_after(command) or {}
  else
    words = names()
  end
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, words)
end

--- Do what a <Plug> map stands for.
---@param plug string
---@return string? what to type, for an <expr> map
function M.press(plug)
  local keys = require("lcursor.keys")
  for _, group in pairs(keys.groups) do
    for _, key in ipairs(group.keys) do
      if keys.plug(group, key) == plug then
        local press = require("lcursor." .. group.module).press
        return require("lcursor.keymaps").call(press, key[1])
      end
    end
  end
end

--- The subcommands, for the help.
---@return { name: string, text: string, args?: string[][] }[]
function M.describe()
  return vim.tbl_map(function(command)
    return { name = ":LCursor " .. command.name, text = command.text, args = command.args }
  end, COMMANDS)
end

return M
