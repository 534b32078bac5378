-- `:LCursor hunk`.

--- Return a command that does what a key of hunks does.
---@param action string
---@return fun()
local function press(action)
  return function()
    require("lcursor.edit.keys").press(action)
  end
end

---@param what "accept"|"reject"
---@return fun(call: lcursor.CommandCall)
local function decide(what)
  return function(call)
    local scope = call.args[1] == "all" and "edit" or call.args[1]
    require("lcursor.edit.hunks").decide(what, { scope = scope, range = call.range })
  end
end

-- stylua: ignore
---@type lcursor.Noun
return {
  text = "The proposed changes of edits.",
  default = "list",
  is_enabled = require("lcursor.commands.edit").is_enabled,
  verbs = {
    { "accept", "Accept the hunk at the cursor, or the hunks of a range.", decide("accept"),
      args = {
        { "file", "All hunks of the file." },
        { "all", "All hunks of the edit; files that are not open are named first." },
      } },
    { "reject", "Reject the hunk at the cursor, or the hunks of a range.", decide("reject"),
      args = {
        { "file", "All hunks of the file." },
        { "all", "All hunks of the edit." },
        { "unneeded", "All hunks that no test needs, in all files." },
      } },
    { "next", "Go to the next hunk.", press("next") },
    { "prev", "Go to the previous hunk.", press("prev") },
    { "list", "List the hunks of all files in the quickfix list.", press("list") },
    { "diff", "Compare the file with what it would be with its hunks, side by side; again to "
      .. "close.", press("diff") },
  },
}
