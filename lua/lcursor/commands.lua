-- :LCursor. One table of subcommands is dispatch, completion and help.

local M = {}

---@class (exact) lcursor.Command
---@field name string
---@field text string one sentence for the help
---@field run fun(args: string[], range?: integer[]) the range: first and last line, from 1
---@field args? string[] what may follow
---@field is_checked? boolean it says itself what it does not know
---@field files_after? string the word behind which the name of a file follows

---@param word string
---@return fun(args: string[], range?: integer[])
local function edit(word)
  return function(args, range)
    require("lcursor.joined").edit().word(word, args, range)
  end
end

---@param ms? number
---@return string
local function milliseconds(ms)
  return ms and ("%.0f ms"):format(ms) or "-"
end

---@return string[]
function M.status_lines()
  local config, host = require("lcursor.config").get(), require("lcursor.host").info()
  local state, answer = require("lcursor.status").get(), require("lcursor.complete").last_answer()
  local progress = state.progress >= 0 and (" %d%%"):format(state.progress * 100) or ""
  local lines = {
    "state       " .. state.state .. progress,
    "detail      " .. (state.detail ~= "" and state.detail or "-"),
    "model       " .. config.completion.model,
    "python      " .. (host.python or "-"),
    "process     " .. (host.pid and ("%d, version %s"):format(host.pid, host.version) or "-"),
    "started in  " .. milliseconds(host.ready_ms),
    "model ready " .. milliseconds(host.model_ms),
    "here        " .. require("lcursor.complete").why().text,
  }
  local index = package.loaded["lcursor.index"] and require("lcursor.index").describe()
  if index then
    table.insert(lines, "index       " .. index)
  end
  local edits = package.loaded["lcursor.edit"] and require("lcursor.edit.reach").describe()
  if edits then
    table.insert(lines, "edits       " .. edits)
  end
  if answer then
    local stats = answer.stats
    vim.list_extend(lines, {
      "last answer " .. ("%s, first text after %s, all after %s"):format(
        answer.reason,
        milliseconds(stats.first_ms > 0 and stats.first_ms or nil),
        milliseconds(stats.total_ms)
      ),
      "tokens      " .. ("%d of %d reused, %d read, %d made"):format(
        stats.reused_tokens,
        stats.prompt_tokens,
        stats.decoded_tokens,
        stats.generated_tokens
      ),
    })
  end
  return lines
end

---@type lcursor.Command[]
local COMMANDS = {
  {
    name = "status",
    text = "Show the state of the Python half, its model and the cost of the last completion.",
    run = function()
      require("lcursor.ui.window").float(M.status_lines(), "lcursor")
    end,
  },
  {
    name = "why",
    text = "Say in one sentence why there is a suggestion here, or none, and what it cost.",
    run = function()
      local why = require("lcursor.complete").why()
      local text = why.numbers == "" and why.text or why.text .. " " .. why.numbers
      require("lcursor.notify").info(text)
    end,
  },
  {
    name = "stats",
    text = "Show what became of the suggestions, by filetype; with the word reset, forget it.",
    args = { "reset" },
    run = function(args)
      local stats = require("lcursor.complete.stats")
      return args[1] == "reset" and stats.reset() or stats.show()
    end,
  },
  {
    name = "prompt",
    text = "Show the last prompt, token by token, as the model read it.",
    run = function()
      require("lcursor.complete.prompt").show()
    end,
  },
  {
    name = "index",
    is_checked = true,
    text = "Show what indexing this project would read, and begin, or how its index is. With why"
      .. " PATH: why a file is left out; with begin or rebuild: at once, all anew.",
    args = { "begin", "rebuild", "why" },
    files_after = "why",
    run = function(args)
      require("lcursor.index").command(args)
    end,
  },
  {
    name = "search",
    is_checked = true,
    text = "Find in the indexed project what the words are about, or with @ what is named so, into"
      .. " the quickfix list; without words, in a window that searches while you type.",
    run = function(args)
      require("lcursor.index").search(table.concat(args, " "))
    end,
  },
  {
    name = "chats",
    is_checked = true,
    text = "List the stored chats of the project, to open, rename, delete or export them; all lists"
      .. " those of other projects too, last opens the newest, new begins one. The other words are"
      .. " for the chat one is in.",
    args = {
      "all",
      "bill",
      "compact",
      "delete",
      "expand",
      "export",
      "last",
      "model",
      "new",
      "receipts",
      "rename",
    },
    files_after = "export",
    run = function(args)
      require("lcursor.joined").chat()
      require("lcursor.chat.reach").command(args)
    end,
  },
  {
    name = "server",
    is_checked = true,
    text = "Show how the local server of the chat is; start, stop or restart it, or open its log.",
    args = { "status", "start", "stop", "restart", "log" },
    run = function(args)
      require("lcursor.chat.server").command(args)
    end,
  },
  {
    name = "undo",
    text = "Take back the last edit that you took something of, in all its files, also those that"
      .. " are not open; what was typed since stays.",
    run = edit("undo"),
  },
  {
    name = "redo",
    text = "Make the edit again that was taken back last.",
    run = edit("redo"),
  },
  {
    name = "edits",
    text = "List the edits of the project, to take one back or to go on with what is open.",
    run = edit("edits"),
  },
  {
    name = "hunks",
    text = "List all proposed changes of all files in the quickfix list.",
    run = edit("hunks"),
  },
  {
    name = "accept",
    is_checked = true,
    text = "Take the proposed change at the cursor, or those of a range; with file all of the file,"
      .. " with all those that came together, in files that no buffer has as well.",
    args = { "all", "file" },
    run = edit("accept"),
  },
  {
    name = "reject",
    is_checked = true,
    text = "Refuse them.",
    args = { "all", "file" },
    run = edit("reject"),
  },
  {
    name = "stop",
    text = "Stop the edits of this buffer that are being written; where there are none, all.",
    run = edit("stop"),
  },
  {
    name = "fix",
    text = "Ask for a change that mends what a diagnostic says: at the cursor, or of a range.",
    run = edit("fix"),
  },
  {
    name = "apply",
    is_checked = true,
    text = "Make proposed changes of what was yanked: a block of code, a diff, a whole answer; with"
      .. " the name of a register, of that.",
    run = edit("apply"),
  },
  {
    name = "commit",
    text = "Write a commit message for what is staged.",
    run = edit("commit"),
  },
  {
    name = "toggle",
    text = "Switch completion off or on; with the word buffer, in this buffer only.",
    args = { "buffer" },
    run = function(args)
      local here = args[1] == "buffer"
      local on = require("lcursor").toggle(here and 0 or nil)
      local where = here and " in this buffer" or ""
      require("lcursor.notify").info(("completion is %s%s"):format(on and "on" or "off", where))
    end,
  },
  {
    name = "complete",
    text = "Ask for a suggestion at the cursor; for maps with <Cmd> in insert mode.",
    run = function()
      require("lcursor").complete()
    end,
  },
  {
    name = "dismiss",
    text = "Hide the suggestion until the text changes.",
    run = function()
      require("lcursor").dismiss()
    end,
  },
  {
    name = "install",
    text = "Make the Python environment and fetch the models that the settings name, or bring both"
      .. " up to date.",
    run = function()
      require("lcursor.install").run(function(err)
        if not err then
          require("lcursor.host").restart()
        end
      end)
    end,
  },
  {
    name = "restart",
    text = "Stop the Python half and start it anew.",
    run = function()
      require("lcursor.complete").start()
      require("lcursor.host").restart()
    end,
  },
  {
    name = "log",
    text = "Open the log.",
    run = function()
      vim.cmd.tabedit({ vim.fn.fnameescape(require("lcursor.log").path()) })
      vim.bo.readonly, vim.bo.autoread = true, true
      vim.cmd("normal! G")
    end,
  },
  {
    name = "health",
    text = "Check everything; the same as :checkhealth lcursor.",
    run = function()
      vim.cmd.checkhealth("lcursor")
    end,
  },
}

---@param name string
---@return lcursor.Command?
local function find(name)
  for _, command in ipairs(COMMANDS) do
    if command.name == name then
      return command
    end
  end
end

--- Run `:LCursor {subcommand} {args}`; without a subcommand it is status.
---@param opts vim.api.keyset.create_user_command.command_args
function M.run(opts)
  local args = vim.list_slice(opts.fargs)
  local name = table.remove(args, 1) or "status"
  local command = find(name)
  if not command then
    local names = vim.tbl_map(function(known)
      return known.name
    end, COMMANDS)
    return require("lcursor.notify").warn(
      ("there is no :LCursor %s. Use one of %s"):format(name, table.concat(names, ", "))
    )
  end
  local known = command.args or {}
  if args[1] and not command.is_checked and not vim.list_contains(known, args[1]) then
    local all = #known > 0 and "knows " .. table.concat(known, ", ") or "takes no words"
    local text = (":LCursor %s %s, not %s"):format(name, all, args[1])
    return require("lcursor.notify").warn(text)
  end
  command.run(args, opts.range > 0 and { opts.line1, opts.line2 } or nil)
end

--- Complete the command line.
---@param lead string what stands before the cursor of the word
---@param line string
---@return string[]
function M.complete(lead, line)
  local name = line:match("LCursor!?%s+(%S+)%s")
  local words = {}
  if name then
    local command = find(name)
    local word = line:match("LCursor!?%s+%S+%s+(%S+)%s")
    if word and command and command.files_after == word then
      return vim.fn.getcompletion(lead, "file")
    end
    words = not word and command and command.args or {}
  else
    for _, command in ipairs(COMMANDS) do
      table.insert(words, command.name)
    end
  end
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, words)
end

--- The subcommands, for the help.
---@return { name: string, text: string }[]
function M.describe()
  return vim.tbl_map(function(command)
    return { name = ":LCursor " .. command.name, text = command.text }
  end, COMMANDS)
end

--- The <Plug> maps, for the help.
---@return { name: string, text: string, default: string }[]
function M.describe_maps()
  local keymaps = require("lcursor.config").defaults().keymaps
  local function map(name, text, default)
    return { name = "<Plug>(lcursor-" .. name .. ")", text = text, default = default }
  end
  local maps = {
    map("accept", "Take the whole suggestion.", keymaps.accept),
    map("accept-line", "Take its first line; the rest stays.", keymaps.accept_line),
    map("accept-word", "Take its next word; the rest stays.", keymaps.accept_word),
    map("dismiss", "Hide it until the text changes.", keymaps.dismiss),
    map("next", "Show the next suggestion for the same place.", keymaps.next),
    map("prev", "Show the one before.", keymaps.prev),
    map("trigger", "Ask here and now, also where none would come by itself.", ""),
    map("edit", "Ask for a change at the cursor, or of what is selected; see |:LCEdit|.", ""),
  }
  return vim.list_extend(maps, require("lcursor.edit.keys").describe())
end

return M
