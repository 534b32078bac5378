-- `:LCursor suggestion`.

--- Return a command that calls a function of the Lua API.
---@param argument? any
---@return fun()
local function call(name, argument)
  return function()
    require("lcursor")[name](argument)
  end
end

local function accept(command)
  require("lcursor").accept(command.args[1])
end

-- stylua: ignore
---@type lcursor.Noun
return {
  text = "The ghost text at the cursor; for <Cmd> maps in Insert mode.",
  verbs = {
    { "trigger", "Request a suggestion at the cursor.", call("complete") },
    { "accept", "Accept the suggestion.", accept,
      args = { { "line", "Its first line." }, { "word", "Its first word." } } },
    { "dismiss", "Dismiss it until the text changes.", call("dismiss") },
    { "next", "Show the next alternative.", call("cycle", 1) },
    { "prev", "Show the previous alternative.", call("cycle", -1) },
  },
}
