-- Every setting with its default and its help. Data only: config.lua reads it. The default keys are
-- in keys.lua.

local keys = require("lcursor.config.keys")

---@class lcursor.Setting
---@field [1] string dotted name
---@field [2] any default; the type of a value must be the type of the default
---@field [3] string text for the help
---@field one_of? string[] the allowed values
---@field min? number the default may be less
---@field share? boolean a number from 0 to 1; other numbers are whole
---@field each? "key"|"boolean" the type of a table's values; with "key", its names are fixed, and
--- false stands for no keys
---@field fields? table<string, string|string[]> the fields of a table, with their types
---@field rows? table<string, string> the fields of each table in a table, with their types, or the
--- list of their values in servers.lua
---@field names? string pattern of the names in a table of tables; none begins or ends with an
--- underscore, or has two in a row
---@field either? string[] two fields of each table, of which it has exactly one
---@field is_function? boolean a function, or the default
---@field host? boolean sent to the Python host too

-- stylua: ignore
---@type lcursor.Setting[]
local settings = {
  { "enabled", true,
    "Enable the plugin." },
  { "python", "",
    "Python of the host; empty: that of :LCursor install." },
  { "log_level", "info", one_of = { "debug", "info", "warn", "error" },
    "Lowest level in the log." },
  { "should_attach", false, is_function = true,
    "Function: whether to read a buffer, by its number." },
  { "on_attach", false, is_function = true,
    "Function called with a buffer that is read from now on." },
  { "models", {}, host = true,
    rows = {
      provider = "providers",
      url = "string",
      api = "apis",
      model = "string",
      family = "string",
      key_env = "string",
      key_command = "string",
      context_tokens = "number",
    },
    "Models on servers, by names that the options `model` may use: |lcursor-endpoint|." },
  { "agents", {}, host = true,
    rows = {
      command = "table", env = "table", hosts = "table", login = "boolean", model = "string",
    },
    "Agents of others, by names that agent.model may use: |lcursor-foreign-agents|." },

  { "completion.enabled", true,
    "Show suggestions as ghost text." },
  { "completion.auto_trigger", true,
    "Suggest while typing, not only on request." },
  { "completion.debounce_ms", 0, min = 0,
    "Milliseconds without a key before a request; 0 sends one after every key, which cancels the"
    .. " one before." },
  { "completion.read_ahead", true,
    "In Normal mode, evaluate text of edited files." },
  { "completion.model", "auto", host = true,
    "A name in models or `models list`, a GGUF file, or |lcursor-auto|." },
  { "completion.gpu_layers", -1, min = -1, host = true,
    "Layers on the GPU; -1: all, if there is one." },
  { "completion.main_gpu", 0, min = -1, host = true,
    "Index of the GPU; -1: split over all GPUs." },
  { "completion.threads", 0, min = 0, host = true,
    "Threads of llama.cpp; 0: the physical cores." },
  { "completion.context_tokens", -1, min = 256, host = true,
    "KV cache in tokens; -1: 4096, on a GPU 16384." },
  { "completion.files_tokens", -1, min = 0, host = true,
    "Tokens of other files; -1: 256, on a GPU 2048; 0: none." },
  { "completion.max_tokens", 64, min = 1, host = true,
    "Maximum length of a suggestion in tokens." },
  { "completion.max_lines", 12, min = 1, host = true,
    "Maximum length of a suggestion in lines." },
  { "completion.min_confidence", 0.2, share = true, host = true,
    "Show no line below this probability; adapts to you." },
  { "completion.save_cache", true, host = true,
    "Keep KV caches on disk, see |lcursor-privacy|." },
  { "completion.in_comments", true,
    "Complete inside comments." },
  { "completion.filetypes", each = "boolean",
    { gitcommit = false, gitrebase = false, help = false, markdown = false, text = false },
    'Enable or disable filetypes; "*": all others.' },
  { "completion.keymap", keys.defaults("completion.keymap"), each = "key",
    "Keys while a suggestion is visible." },

  { "next_edit.mode", "draw", one_of = { "draw", "hint", "off" },
    "Show the next edit in its line, or only a hint; or predict none." },
  { "next_edit.rename", true,
    "Predict the other uses of a renamed name." },
  { "next_edit.repetition", true,
    "Predict the same change of similar lines." },
  { "next_edit.diagnostics", true,
    "Fix what your edit broke, by language servers." },
  { "next_edit.model", "", host = true,
    "Model that predicts more next edits: |lcursor-next-edit-model|." },
  { "next_edit.keymap", keys.defaults("next_edit.keymap"), each = "key",
    "Keys while a next edit is visible." },

  { "privacy.exclude", {}, host = true,
    "More globs of files never to read: |lcursor-secrets|." },

  { "index.enabled", true, host = true,
    "Allow indexing, which you start per project." },
  { "index.embedder", "minilm-l6-v2-int8", host = true,
    "Semantic search; empty: none." },

  { "chat.model", "", host = true,
    "A name like completion.model; empty: one that suits the machine." },
  { "chat.server", "auto", one_of = { "auto", "off" }, host = true,
    "Start the local server when needed, or never." },
  { "chat.context_tokens", 0, min = 0, host = true,
    "Context of the local server; 0: what fits." },
  { "chat.max_tokens", 0, min = 0, host = true,
    "Maximum length of an answer; 0: as fits." },
  { "chat.idle_minutes", 15, min = 1, host = true,
    "Unload the idle model of the local server." },
  { "chat.rule_files", true, host = true,
    "Add rules files, see |lcursor-chat-commands|." },
  { "chat.auto_context", true,
    "Attach visible lines, see |lcursor-chat-mentions|." },
  { "chat.window", { position = "right", size = 0.4 },
    fields = { position = { "right", "left", "above", "below", "float" }, size = "share" },
    "Position: right, left, above, below or float; size: share of the columns or lines." },
  { "chat.keymap", keys.defaults("chat.keymap"), each = "key",
    "Keys in the chat buffer." },

  { "edit.model", "", host = true,
    "A name like chat.model; empty: the model of the chat." },
  { "edit.formatter", "", host = true,
    "Command that formats standard input; {path}: file name." },
  { "edit.lint", "", host = true,
    "Command that checks a copy: |lcursor-edit-checks|" },
  { "edit.test", "", host = true,
    "Command that tests a copy: |lcursor-edit-checks|" },
  { "edit.evidence", false, host = true,
    "Run failed tests in Python, JavaScript or Lua again under a tracer, and show the model what"
    .. " happened." },
  { "edit.check_seconds", 20, min = 1, host = true,
    "Time limit of each of these commands." },
  { "edit.keymap", keys.defaults("edit.keymap"), each = "key",
    "Keys in a buffer with hunks or a running edit." },

  { "agent.model", "", host = true,
    "A name like chat.model, or of an agent in agents or |lcursor-foreign-agents|; empty: the model"
    .. " of the chat." },
  { "agent.escalate_model", "",
    "A name like agent.model that is offered for a task whose tests still fail; empty: none." },
  { "agent.policy", "auto", one_of = { "plan", "ask", "auto" }, host = true,
    "What needs your approval." },
  { "agent.max_steps", 40, min = 1, host = true,
    "Steps after which an agent stops." },
  { "agent.max_minutes", 30, min = 1, host = true,
    "Minutes of work after which an agent stops." },
  { "agent.allow", {}, host = true,
    "Beginnings of commands that run without approval." },
  { "agent.forbid", {}, host = true,
    "Beginnings of commands that never run." },
  { "agent.env", {}, host = true,
    "Environment variables for the sandbox." },
  { "agent.readable", {}, host = true,
    "Paths outside the project to read in the sandbox." },
  { "agent.keymap", keys.defaults("agent.keymap"), each = "key",
    "Keys in the buffer of an agent." },

  { "mcp.servers", {}, host = true, names = "^[a-z0-9_-]+$", either = { "command", "url" },
    rows = {
      command = "list",
      env = "texts",
      network = "list",
      write = "list",
      readable = "list",
      url = "string",
      headers = "texts",
    },
    "MCP servers for agents and chats, by name: |lcursor-mcp-servers|." },
}

return settings
