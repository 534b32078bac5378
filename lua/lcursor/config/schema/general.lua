-- The settings that are about all of lcursor. Data; must not require anything.

---@type lcursor.Setting[]
return {
  { key = "enabled", type = "boolean", default = true, desc = "Whether anything runs at all." },
  {
    key = "python",
    type = "string",
    default = "",
    desc = "Interpreter of the Python half; empty takes the one that :LCursor install made.",
  },
  {
    key = "log_level",
    type = { "debug", "info", "warn", "error" },
    default = "info",
    desc = "Least severity that is written to the log.",
  },
}
