-- The one door from edits to the host; which of its answers are the last ones.

return require("lcursor.door").open({
  "edit.done",
  "edit.written",
  "edit.reverted",
  "edit.turned",
}, {
  "edit.started",
  "edit.progress",
  "edit.delta",
  "edit.planned",
  "edit.question",
  "edit.look",
  "edit.proposed",
  "edit.message",
})
