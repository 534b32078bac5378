-- Every setting: its type, its default and its help. Data; must not require anything.

---@class lcursor.Setting
---@field key string dotted path
---@field type string|string[] Lua type, or the list of allowed strings
---@field default any
---@field desc string one sentence for the help
---@field min? number
---@field share? boolean a number of 0 to 1; others are whole
---@field rows? table<string, string|string[]> of a table of tables: their keys, each with its type
---@field wire? boolean the Python half reads it too

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
  {
    key = "completion.enabled",
    type = "boolean",
    default = true,
    desc = "Whether ghost text is offered.",
  },
  {
    key = "completion.auto_trigger",
    type = "boolean",
    default = true,
    desc = "Ask while typing; otherwise only on <Plug>(lcursor-trigger).",
  },
  {
    key = "completion.debounce_ms",
    type = "number",
    default = 0,
    min = 0,
    desc = "Most milliseconds that a key waits before the model is asked. 0 asks at once: a newer"
      .. " request stops an older one. How long it is follows from how fast you type and how fast"
      .. " the engine answers. A quick engine is asked at once, and so is any after a pause or"
      .. " behind what is no letter or digit.",
  },
  {
    key = "completion.model",
    type = "string",
    default = "qwen2.5-coder-0.5b",
    wire = true,
    desc = "A name from `python -m lcursor models list`, or the path of a GGUF file.",
  },
  {
    key = "completion.gpu_layers",
    type = "number",
    default = -1,
    min = -1,
    wire = true,
    desc = "Layers on the GPU; -1 is all where the build has a GPU backend.",
  },
  {
    key = "completion.threads",
    type = "number",
    default = 0,
    min = 0,
    wire = true,
    desc = "Threads of llama.cpp; 0 is the number of physical cores.",
  },
  {
    key = "completion.context_tokens",
    type = "number",
    default = 4096,
    min = 256,
    wire = true,
    desc = "Cells of the KV cache.",
  },
  {
    key = "completion.prefix_tokens",
    type = "number",
    default = 768,
    min = 16,
    wire = true,
    desc = "Most tokens before the cursor that the model reads.",
  },
  {
    key = "completion.suffix_tokens",
    type = "number",
    default = 96,
    min = 0,
    wire = true,
    desc = "Most tokens after the cursor that the model reads.",
  },
  {
    key = "completion.files_tokens",
    type = "number",
    default = -1,
    min = -1,
    wire = true,
    desc = "Most tokens that the model reads of other files (visited, edited, imported) and of the"
      .. " imports at the top of this one. -1 is 256 on a CPU, 2048 on a GPU; 0 reads none.",
  },
  {
    key = "completion.max_tokens",
    type = "number",
    default = 64,
    min = 1,
    wire = true,
    desc = "Most tokens of one suggestion.",
  },
  {
    key = "completion.max_lines",
    type = "number",
    default = 12,
    min = 1,
    wire = true,
    desc = "Most lines of one suggestion.",
  },
  {
    key = "completion.budget_ms",
    type = "number",
    default = 4000,
    min = 50,
    wire = true,
    desc = "Time that the model may write; then the suggestion is cut at what it has.",
  },
  {
    key = "completion.min_confidence",
    type = "number",
    default = 0.5,
    share = true,
    wire = true,
    desc = "Probability (0 to 1) of a line below which only its sure part is shown; half of it is"
      .. " enough for a first line that is whole. Accepts and rejections move it.",
  },
  {
    key = "completion.save_cache",
    type = "boolean",
    default = true,
    wire = true,
    desc = "Keep what the model read of a buffer (its KV cache, up to 512 MB in"
      .. " $XDG_CACHE_HOME/lcursor/kv) for the next start. It can be turned back into the text.",
  },
  {
    key = "completion.backend",
    type = { "inproc", "endpoint" },
    default = "inproc",
    wire = true,
    desc = "Where the model runs: in lcursor's process, or on a server, see |lcursor-endpoint|.",
  },
  {
    key = "completion.endpoint_url",
    type = "string",
    default = "http://127.0.0.1:8012",
    wire = true,
    desc = "Address of that server. What you write goes there.",
  },
  {
    key = "completion.endpoint_api",
    type = { "auto", "llama.cpp", "ollama", "openai" },
    default = "auto",
    wire = true,
    desc = "What the server speaks; auto asks it.",
  },
  {
    key = "completion.endpoint_model",
    type = "string",
    default = "",
    wire = true,
    desc = "Name of the model there; empty takes the only one it has.",
  },
  {
    key = "completion.endpoint_family",
    type = "string",
    default = "",
    wire = true,
    desc = "Family of that model, which says how its prompt is written; empty goes by its name.",
  },
  {
    key = "completion.endpoint_key_env",
    type = "string",
    default = "",
    wire = true,
    desc = "Name of the environment variable that holds the server's key.",
  },
  {
    key = "completion.endpoint_key_command",
    type = "string",
    default = "",
    wire = true,
    desc = "Command that prints the key, run without a shell where no variable is named.",
  },
  {
    key = "completion.with_diagnostics",
    type = "boolean",
    default = false,
    desc = "Whether the model is told the diagnostics nearest to the cursor. A small model is as"
      .. " often misled by them as helped.",
  },
  {
    key = "completion.with_changes",
    type = "boolean",
    default = false,
    desc = "Whether the model is told your last changes of the past five minutes. A small model is"
      .. " as often misled by them as helped.",
  },
  {
    key = "completion.in_comments",
    type = "boolean",
    default = true,
    desc = "Whether to complete inside comments.",
  },
  {
    key = "completion.filetypes",
    type = "table",
    default = {
      gitcommit = false,
      gitrebase = false,
      help = false,
      markdown = false,
      text = false,
    },
    desc = 'Per filetype: false is off, true is on; "*" stands for all others.',
  },
  {
    key = "completion.max_file_bytes",
    type = "number",
    default = 2 * 1024 * 1024,
    min = 0,
    desc = "Larger buffers are left alone.",
  },
  {
    key = "completion.max_line_bytes",
    type = "number",
    default = 4096,
    min = 0,
    desc = "Lines longer than this are left alone.",
  },
  {
    key = "completion.secrets",
    type = "table",
    default = {},
    wire = true,
    desc = "More file name patterns (globs) that are never read and never indexed, besides the"
      .. " built-in list; see |lcursor-secrets|.",
  },
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
  {
    key = "chat.enabled",
    type = "boolean",
    default = true,
    wire = true,
    desc = "Whether there is a chat at all.",
  },
  {
    key = "chat.model",
    type = "string",
    default = "",
    wire = true,
    desc = "The model to talk to: a name from chat.models, or for the local server a name from"
      .. " `python -m lcursor models list` or the path of a GGUF file. Empty takes what suits the"
      .. " machine.",
  },
  {
    key = "chat.models",
    type = "table",
    default = {},
    rows = {
      url = "string",
      api = { "auto", "llama.cpp", "ollama", "openai" },
      model = "string",
      key_env = "string",
      key_command = "string",
      context_tokens = "number",
    },
    wire = true,
    desc = "Models on other servers, each by a name of yours: a table with url, and if needed api"
      .. " (auto, llama.cpp, ollama, openai), model, key_env, key_command and context_tokens. What"
      .. " you say and attach goes there; see |lcursor-chat-models|.",
  },
  {
    key = "chat.server",
    type = { "auto", "off" },
    default = "auto",
    wire = true,
    desc = "The local server: auto finds or starts one when you ask something, off never does.",
  },
  {
    key = "chat.context_tokens",
    type = "number",
    default = 0,
    min = 0,
    wire = true,
    desc = "Context of the local server in tokens; 0 is what fits into the memory.",
  },
  {
    key = "chat.max_tokens",
    type = "number",
    default = 0,
    min = 0,
    wire = true,
    desc = "Most tokens of one answer; 0 is as many as fit.",
  },
  {
    key = "chat.temperature",
    type = "number",
    default = 0.2,
    share = true,
    wire = true,
    desc = "How freely the model chooses its words, 0 to 1.",
  },
  {
    key = "chat.summarize_at",
    type = "number",
    default = 0.85,
    share = true,
    wire = true,
    desc = "Share of the context (0 to 1) at which earlier messages are summarized, which you see"
      .. " and can take back; 0 never does.",
  },
  {
    key = "chat.speculate",
    type = "boolean",
    default = true,
    wire = true,
    desc = "Whether the local server guesses the next words from what was said before, and checks"
      .. " them at once: faster where an answer repeats code.",
  },
  {
    key = "chat.idle_minutes",
    type = "number",
    default = 15,
    min = 1,
    wire = true,
    desc = "Minutes after which the local server lets go of its memory.",
  },
  {
    key = "chat.rules",
    type = "boolean",
    default = true,
    wire = true,
    desc = "Whether the project's rules (AGENTS.md, .cursor/rules, .lcursor/rules) go into the"
      .. " prompt.",
  },
  {
    key = "chat.route",
    type = "boolean",
    default = false,
    wire = true,
    desc = "Whether small talk and short questions go to chat.route_small.",
  },
  {
    key = "chat.route_small",
    type = "string",
    default = "",
    wire = true,
    desc = "The model for these, a name like chat.model.",
  },
  {
    key = "chat.side",
    type = { "right", "left", "above", "below" },
    default = "right",
    desc = "Where the chat's window opens.",
  },
  {
    key = "chat.size",
    type = "number",
    default = 0.4,
    share = true,
    desc = "Its share (0 to 1) of the columns, or of the lines above and below.",
  },
  {
    key = "chat.float",
    type = "boolean",
    default = false,
    desc = "Whether it floats over the others instead.",
  },
  {
    key = "chat.mappings",
    type = "table",
    default = {
      send = "<CR>",
      send_insert = "<C-s>",
      stop = "<C-c>",
      regenerate = "gr",
      edit = "ge",
      next_branch = "]b",
      previous_branch = "[b",
      next = "]]",
      previous = "[[",
      bill = "gb",
      receipts = "gs",
      jump = "gf",
      yank_block = "gy",
      insert_block = "gp",
      open_block = "go",
      apply_block = "ga",
      model = "gm",
      list = "gl",
      close = "q",
      help = "g?",
    },
    desc = "Keys of Normal mode in the chat's buffer; an empty one is not mapped. send_insert is of"
      .. " Insert mode, stop of both.",
  },
  {
    key = "keymaps.enabled",
    type = "boolean",
    default = true,
    desc = "Whether the keys below are mapped while a ghost is visible.",
  },
  {
    key = "keymaps.accept",
    type = "string",
    default = "<Tab>",
    desc = "Takes the whole suggestion.",
  },
  {
    key = "keymaps.accept_line",
    type = "string",
    default = "<S-Tab>",
    desc = "Takes its first line.",
  },
  {
    key = "keymaps.accept_word",
    type = "string",
    default = "<C-Right>",
    desc = "Takes its first word.",
  },
  {
    key = "keymaps.dismiss",
    type = "string",
    default = "<C-]>",
    desc = "Hides it until the text changes.",
  },
  {
    key = "keymaps.next",
    type = "string",
    default = "<M-]>",
    desc = "Shows the next suggestion for the same place.",
  },
  {
    key = "keymaps.prev",
    type = "string",
    default = "<M-[>",
    desc = "Shows the one before.",
  },
}
