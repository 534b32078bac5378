-- The settings of the index. Data; must not require anything.

---@type lcursor.Setting[]
return {
  {
    key = "index.enabled",
    type = "boolean",
    default = true,
    wire = true,
    desc = "Whether projects are indexed and searched at all. None is before you say so; see"
      .. " |lcursor-index|.",
  },
  {
    key = "index.auto",
    type = "boolean",
    default = true,
    wire = true,
    desc = "Whether an index that was begun once goes on, and follows what changes, as soon as you"
      .. " work on a file of its project.",
  },
  {
    key = "index.embedder",
    type = "string",
    default = "minilm-l6-v2-int8",
    wire = true,
    desc = "Model that finds by meaning, a name from `python -m lcursor models list`; empty finds"
      .. " by words and names alone.",
  },
  {
    key = "index.unsaved",
    type = "boolean",
    default = true,
    desc = "Whether searches see the text of changed buffers in place of that of their files.",
  },
  {
    key = "index.limit",
    type = "number",
    default = 30,
    min = 1,
    desc = "Most hits that a search shows.",
  },
  {
    key = "index.picker",
    type = { "live", "select" },
    default = "live",
    desc = "What `:LCursor search` without words opens: our own window that searches while you"
      .. " type, or your |vim.ui.select()|.",
  },
}
