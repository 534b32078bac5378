-- The one door from the chat to the host; which of its answers are the last ones.

return require("lcursor.door").open({
  "chat.opened",
  "chat.billed",
  "chat.done",
  "chat.listed",
  "chat.completed",
  "server.told",
}, { "chat.started", "chat.progress", "chat.delta", "chat.summed" })
