-- All actions that can have a key, in one table. The options, the mappings, the <Plug> maps of
-- plugin/lcursor.lua, the keys that hints name and the tables of the help come from it. Data only.

local M = {}

---@class (exact) lcursor.Key
---@field [1] string name of its option, and with dashes of its <Plug> map
---@field [2] string|false default; "": no key; false: no option, only a <Plug> map
---@field [3] string modes, a letter each
---@field [4] string description of two or three words
---@field is_expr? boolean it returns what to type
---@field yields? string the modes in which a mapping of the user comes before the default
---@field passes? boolean the key also does what it did before

---@class (exact) lcursor.KeyGroup
---@field option string that holds the keys; "" for <Plug> maps only
---@field plug string how the names of the <Plug> maps begin
---@field plug_modes? string the modes of the <Plug> maps; nil: those of the keys
---@field module string whose press(name) does what a key stands for
---@field yields? boolean a mapping of the user comes before a default key
---@field covers? string a group whose keys are unmapped while those of this one are mapped
---@field keys lcursor.Key[]

-- stylua: ignore
---@type table<string, lcursor.KeyGroup>
M.groups = {
  suggestion = {
    option = "completion.keymap", plug = "", module = "complete", covers = "next_edit",
    keys = {
      { "accept", "<Tab>", "i", "Accept suggestion", is_expr = true },
      { "accept_line", "<S-Tab>", "i", "Accept line", is_expr = true },
      { "accept_word", "<C-Right>", "i", "Accept word", is_expr = true },
      { "dismiss", "<C-]>", "i", "Dismiss suggestion" },
      { "next", "<M-]>", "i", "Next alternative" },
      { "prev", "<M-[>", "i", "Previous alternative" },
      { "trigger", false, "i", "Request suggestion" },
    },
  },
  next_edit = {
    option = "next_edit.keymap", plug = "next-edit-", module = "next_edit",
    keys = {
      { "accept", "<Tab>", "ni", "Go there; apply", yields = "n" },
      { "accept_all", "<S-Tab>", "n", "Show as hunks", yields = "n" },
      { "dismiss", "<Esc>", "n", "Dismiss next edit", passes = true },
      { "dismiss_insert", "<C-]>", "i", "Dismiss next edit" },
    },
  },
  request = {
    option = "", plug = "", module = "edit.lcedit",
    keys = { { "edit", false, "nx", "Request edit" } },
  },
  edit = {
    option = "edit.keymap", plug = "edit-", plug_modes = "nxo", module = "edit.keys",
    yields = true,
    keys = {
      { "stop", "<C-c>", "n", "Stop edit" },
    },
  },
  hunk = {
    option = "edit.keymap", plug = "hunk-", plug_modes = "nxo", module = "edit.keys",
    yields = true,
    keys = {
      { "accept", "ghh", "n", "Accept hunk" },
      { "reject", "gHH", "n", "Reject hunk" },
      { "accept_operator", "gh", "nx", "Accept over motion", is_expr = true },
      { "reject_operator", "gH", "nx", "Reject over motion", is_expr = true },
      { "accept_next", "ghn", "n", "Accept, next hunk" },
      { "next", "]h", "nxo", "Next hunk" },
      { "prev", "[h", "nxo", "Previous hunk" },
      { "last", "]H", "nxo", "Last hunk" },
      { "first", "[H", "nxo", "First hunk" },
      { "object", "ih", "xo", "Hunk text object" },
      { "diff", "ghd", "n", "Show side-by-side" },
      { "edit", "", "n", "Edit hunk" },
      { "list", "", "n", "List hunks" },
      { "accept_file", "", "n", "Accept file" },
      { "reject_file", "", "n", "Reject file" },
      { "accept_all", "ghA", "n", "Accept edit" },
      { "reject_all", "", "n", "Reject edit" },
      { "next_alternative", "]v", "n", "Next alternative" },
      { "prev_alternative", "[v", "n", "Previous alternative" },
      { "again", "g.", "n", "Try again" },
    },
  },
  chat = {
    option = "chat.keymap", plug = "chat-", module = "chat.keys",
    keys = {
      { "send", "<CR>", "n", "Send" },
      { "send_insert", "<C-s>", "i", "Send while typing" },
      { "stop", "<C-c>", "ni", "Stop answer" },
      { "regenerate", "gr", "n", "Answer again" },
      { "edit", "ge", "n", "Go to question" },
      { "next_branch", "]b", "n", "Next branch" },
      { "prev_branch", "[b", "n", "Previous branch" },
      { "next", "]]", "n", "Next message" },
      { "prev", "[[", "n", "Previous message" },
      { "context", "gb", "n", "Preview context" },
      { "sources", "gs", "n", "Show sources" },
      { "jump", "gf", "n", "Go to file" },
      { "yank_block", "gy", "n", "Yank code block" },
      { "insert_block", "gp", "n", "Insert code block" },
      { "open_block", "go", "n", "Open code block" },
      { "apply_block", "ga", "n", "Apply or run" },
      { "allow", "gA", "n", "Allow tool" },
      { "reject", "gx", "n", "Reject call" },
      { "model", "gm", "n", "Choose model" },
      { "list", "gl", "n", "List chats" },
      { "close", "q", "n", "Close window" },
      { "help", "g?", "n", "Show keys" },
    },
  },
  agent = {
    option = "agent.keymap", plug = "agent-", module = "agent.keys",
    keys = {
      { "send", "<CR>", "n", "Send; approve plan" },
      { "send_insert", "<C-s>", "i", "Send while typing" },
      { "stop", "<C-c>", "ni", "Stop agent" },
      { "approve", "ga", "n", "Approve once" },
      { "approve_run", "gA", "n", "Approve for run" },
      { "reject", "gx", "n", "Reject, with reason" },
      { "change", "gE", "n", "Change command" },
      { "next_waiting", "]w", "n", "Next waiting question" },
      { "jump", "gf", "n", "Go to file" },
      { "model", "gm", "n", "Choose model" },
      { "list", "gl", "n", "List runs" },
      { "close", "q", "n", "Close window" },
      { "help", "g?", "n", "Show keys" },
    },
  },
}

-- Of the tables in the help.
local ORDER = { "suggestion", "next_edit", "request", "edit", "hunk", "chat", "agent" }

--- Return the default keys of an option.
---@return table<string, string> by action
function M.defaults(option)
  local found = {}
  for _, group in pairs(M.groups) do
    for _, key in ipairs(group.option == option and group.keys or {}) do
      found[key[1]] = key[2] or nil
    end
  end
  return found
end

---@param group lcursor.KeyGroup
---@param key lcursor.Key
function M.plug(group, key)
  return ("<Plug>(lcursor-%s)"):format(group.plug .. key[1]:gsub("_", "-"))
end

--- Return the actions, for the help and for plugin/lcursor.lua.
---@return table[]
function M.describe()
  local rows = {}
  for _, name in ipairs(ORDER) do
    local group = M.groups[name]
    for _, key in ipairs(group.keys) do
      table.insert(rows, {
        group = name,
        action = key[1],
        name = M.plug(group, key),
        default = key[2] or "",
        modes = group.plug_modes or key[3],
        text = key[4],
        is_expr = key.is_expr or false,
      })
    end
  end
  return rows
end

return M
