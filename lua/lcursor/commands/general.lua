-- The commands without a noun: `:LCursor {name}`.

local M = {}

--- Return a command that loads a module and calls a function of it.
---@return fun()
local function call(module, name)
  return function()
    require("lcursor." .. module)[name]()
  end
end

local function search(command)
  require("lcursor.index").search(command.text)
end

local GIT_MS = 300 -- git has answered then, as a rule

local function show_why()
  local found = require("lcursor.complete").why()
  local text = { require("lcursor.next_edit").why(), found.text, found.numbers }
  require("lcursor.ui.notify").info(vim.trim(table.concat(text, " "):gsub("  +", " ")))
end

local function why()
  if require("lcursor.complete").why().code == "checking" then
    require("lcursor.ui.notify").later(GIT_MS, show_why)
  else
    show_why()
  end
end

local function stats(command)
  local module = require("lcursor.complete.stats")
  return command.args[1] == "reset" and module.reset() or module.show()
end

--- Return a command that switches completion and next edits on or off.
---@param name "enable"|"disable"|"toggle"
---@return fun(call: lcursor.CommandCall)
local function switch(name)
  return function(command)
    local is_here = command.args[1] == "buffer"
    local is_on = require("lcursor")[name](is_here and 0 or nil)
    local text = "completion is " .. (is_on and "on" or "off")
    require("lcursor.ui.notify").info(is_here and text .. " in this buffer" or text)
  end
end

local function commit_message()
  if require("lcursor.commands.edit").is_enabled() then
    require("lcursor.edit.commit").ask()
  end
end

local function restart()
  require("lcursor.complete").start()
  require("lcursor.host").restart()
end

local function log()
  vim.cmd.tabedit({ vim.fn.fnameescape(require("lcursor.ui.log").path()) })
  vim.bo.readonly, vim.bo.autoread = true, true
  vim.cmd("normal! G")
end

local function health()
  vim.cmd.checkhealth("lcursor")
end

local BUFFER = { { "buffer", "Only in this buffer." } }

-- stylua: ignore
---@type lcursor.Verb[]
M.verbs = {
  { "start", "Open the start page: what is set up, what is missing, the keys to know.",
    call("start", "open") },
  { "tutor", "Practise in a file of its own, in seven short lessons.", call("tutor", "open") },
  { "status", "Show the state of the host, its model and the cost of the last completion.",
    call("commands.status", "show") },
  { "why", "Explain why there is a suggestion or next edit here, or none. A map for Insert mode "
    .. "needs <Cmd>LCursor why<CR>: <C-o> leaves it, which ends a request.", why },
  { "next", "List the next edits in the quickfix list.", call("next_edit.queue", "list") },
  { "search [words]", "Search the indexed project, with the results in the quickfix list; for "
    .. "definitions with @ and the beginning of a name. Without words, search while you type.",
    search },
  { "enable", "Switch completion and next edits on.", switch("enable"), args = BUFFER },
  { "disable", "Switch completion and next edits off.", switch("disable"), args = BUFFER },
  { "toggle", "Switch completion and next edits on or off.", switch("toggle"), args = BUFFER },
  { "stats", "Show acceptance statistics per filetype.", stats,
    args = { { "reset", "Delete the statistics." } } },
  { "commit_message", "Write a commit message for the staged changes.", commit_message },
  { "install", "Create or update the Python environment, and download the models.",
    call("host.install", "install") },
  { "restart", "Restart the host.", restart },
  { "log", "Open the log.", log },
  { "health", "Check everything, the same as :checkhealth lcursor.", health },
}

return M
