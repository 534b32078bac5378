-- Every setting: its type, its default and its help, one file a table. Data.

---@class lcursor.Setting
---@field key string dotted path
---@field type string|string[] Lua type, "key" (a string or false), or the allowed strings
---@field default any
---@field desc string one sentence for the help
---@field min? number the default may be less
---@field share? boolean a number of 0 to 1; others are whole
---@field each? "key"|"boolean" what a table holds; with "key", only the names of the default
---@field rows? table<string, string|string[]> of a table of tables: their keys, each with its type
---@field wire? boolean the Python half reads it too

---@type lcursor.Setting[]
local settings = {}
for _, part in ipairs({ "general", "completion", "index", "chat", "edit", "keymaps" }) do
  vim.list_extend(settings, require("lcursor.config.schema." .. part))
end

return settings
