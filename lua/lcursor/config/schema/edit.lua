-- The settings of edits. Data; must not require anything.

---@type lcursor.Setting[]
return {
  {
    key = "edit.enabled",
    type = "boolean",
    default = true,
    wire = true,
    desc = "Whether edits can be asked for at all.",
  },
  {
    key = "edit.model",
    type = "string",
    default = "",
    wire = true,
    desc = "The model that writes changes, a name like chat.model; empty is what the chat has.",
  },
  {
    key = "edit.planner",
    type = "string",
    default = "",
    wire = true,
    desc = "The model that plans changes of several files and sketches them, a name like"
      .. " chat.model; empty is edit.model.",
  },
  {
    key = "edit.format",
    type = { "auto", "whole", "search_replace", "udiff" },
    default = "auto",
    wire = true,
    desc = "How a model writes a change: all lines of the region anew, blocks of what is there and"
      .. " what shall be, or a diff; auto is what was measured to suit it.",
  },
  {
    key = "edit.region_tokens",
    type = "number",
    default = 1500,
    min = 16,
    wire = true,
    desc = "A selection grows to whole definitions up to this many tokens.",
  },
  {
    key = "edit.max_tokens",
    type = "number",
    default = 4096,
    min = 16,
    wire = true,
    desc = "Most tokens of one rewrite, however long the region is.",
  },
  {
    key = "edit.retries",
    type = "number",
    default = 1,
    min = 0,
    wire = true,
    desc = "How often a rewrite that fails its checks is asked for again, with what failed.",
  },
  {
    key = "edit.temperature",
    type = "number",
    default = 0,
    share = true,
    wire = true,
    desc = "How freely the model chooses at its first try, 0 to 1.",
  },
  {
    key = "edit.formatter",
    type = "string",
    default = "",
    wire = true,
    desc = "Command that formats standard input before a change is shown, {path} standing for the"
      .. ' file\'s name, as "ruff format --stdin-filename {path} -"; empty for none.',
  },
  {
    key = "edit.lint",
    type = "string",
    default = "",
    wire = true,
    desc = "Command that is run in a copy of the project with the change made, {path} standing for"
      .. " the file; empty for none. It runs with your rights: see |lcursor-edit-checks|.",
  },
  {
    key = "edit.test",
    type = "string",
    default = "",
    wire = true,
    desc = "Command that tests a copy of the project with the change made; empty for none. It runs"
      .. " code that the model wrote, with your rights: see |lcursor-edit-checks|.",
  },
  {
    key = "edit.check_seconds",
    type = "number",
    default = 20,
    min = 1,
    wire = true,
    desc = "How long each of these commands may take.",
  },
  {
    key = "edit.diagnostics",
    type = "boolean",
    default = false,
    desc = "Check a change with the attached language servers before it is shown. This opens a"
      .. " hidden document in each of them and wraps their diagnostics handler, see"
      .. " |lcursor-edit-diagnostics|.",
  },
  {
    key = "edit.mappings",
    type = "table",
    each = "key",
    default = {
      next = "]h",
      previous = "[h",
      accept = "gh",
      reject = "gH",
      accept_file = "ga",
      reject_file = "gA",
      accept_turn = "",
      reject_turn = "",
      object = "ih",
      edit = "gE",
      next_alternative = "]H",
      previous_alternative = "[H",
      again = "g.",
      list = "gl",
      stop = "<C-c>",
    },
    desc = "Keys that are mapped in a buffer while changes are proposed in it, and stop while one"
      .. " is being written; false disables one. accept and reject take part of a change in"
      .. " Visual mode, object is of Visual and Operator-pending mode.",
  },
}
