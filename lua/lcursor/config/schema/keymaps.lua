-- The keys of a visible ghost. Data; must not require anything.

---@type lcursor.Setting[]
return {
  {
    key = "keymaps.enabled",
    type = "boolean",
    default = true,
    desc = "Whether the keys below are mapped while a ghost is visible; false disables one key.",
  },
  {
    key = "keymaps.accept",
    type = "key",
    default = "<Tab>",
    desc = "Takes the whole suggestion.",
  },
  {
    key = "keymaps.accept_line",
    type = "key",
    default = "<S-Tab>",
    desc = "Takes its first line.",
  },
  {
    key = "keymaps.accept_word",
    type = "key",
    default = "<C-Right>",
    desc = "Takes its first word.",
  },
  {
    key = "keymaps.dismiss",
    type = "key",
    default = "<C-]>",
    desc = "Hides it until the text changes.",
  },
  {
    key = "keymaps.next",
    type = "key",
    default = "<M-]>",
    desc = "Shows the next suggestion for the same place.",
  },
  {
    key = "keymaps.prev",
    type = "key",
    default = "<M-[>",
    desc = "Shows the one before.",
  },
}
