-- `:LCursor server`.

---@return fun()
local function call(what)
  return function()
    require("lcursor.chat.server").run(what)
  end
end

-- stylua: ignore
---@type lcursor.Noun
return {
  text = "The local server that runs the chat model.",
  default = "status",
  verbs = {
    { "status", "Show its state.", call("status") },
    { "start", "Start it.", call("start") },
    { "stop", "Stop it.", call("stop") },
    { "restart", "Restart it.", call("restart") },
    { "log", "Open its log.", call("log") },
  },
}
