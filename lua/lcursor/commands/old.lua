-- Former names of commands: they work for one release, with a hint. Delete this file after that,
-- with its use in commands.lua.

local M = {}

---@type table<string, string>
local NAMES = {
  accept = "hunk accept",
  apply = "edit apply",
  chats = "chat list",
  ["chats all"] = "chat list all",
  commit = "commit_message",
  complete = "suggestion trigger",
  diff = "hunk diff",
  dismiss = "suggestion dismiss",
  edits = "edit list",
  fix = "edit fix",
  hunks = "hunk list",
  ["index begin"] = "index start",
  prompt = "suggestion prompt",
  redo = "edit redo",
  reject = "hunk reject",
  stop = "edit stop",
  undo = "edit undo",
}
for verb in ("compact context delete expand export last model new rename sources"):gmatch("%l+") do
  NAMES["chats " .. verb] = "chat " .. verb
end

---@type table<string, boolean>
local hinted = {}

--- Return the words of a command line with the new name of the command; hint at it once.
---@param words string[] after `:LCursor`
---@return string[]
function M.translate(words)
  for count = math.min(2, #words), 1, -1 do
    local old = table.concat(words, " ", 1, count)
    local new = NAMES[old]
    if new then
      if not hinted[old] then
        hinted[old] = true
        require("lcursor.notify").info((":LCursor %s is now :LCursor %s"):format(old, new))
      end
      return vim.list_extend(vim.split(new, " "), words, count + 1)
    end
  end
  return words
end

return M
