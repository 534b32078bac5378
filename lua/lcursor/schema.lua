-- Every setting with its default and its help. Data only: config.lua reads it.

---@class lcursor.Setting
---@field [1] string dotted name
---@field [2] any default; the type of a value must be the type of the default
---@field [3] string text for the help
---@field one_of? string[] the allowed values
---@field key? boolean a key to map, or false
---@field min? number the default may be less
---@field share? boolean a number from 0 to 1; other numbers are whole
---@field each? "key"|"boolean" the type of a table's values; with "key", its names are fixed
---@field rows? table<string, string|string[]> the fields of each table in a table, with their types
---@field host? boolean sent to the Python host too

-- stylua: ignore
---@type lcursor.Setting[]
return {
  { "enabled", true,
    "Enable the plugin." },
  { "python", "",
    "Python interpreter of the host; empty uses the one from :LCursor install." },
  { "log_level", "info", one_of = { "debug", "info", "warn", "error" },
    "Lowest level that is written to the log." },

  { "completion.enabled", true,
    "Show suggestions as ghost text." },
  { "completion.auto_trigger", true,
    "Suggest while typing; otherwise only on <Plug>(lcursor-trigger)." },
  { "completion.debounce_ms", 0, min = 0,
    "Upper limit of the adaptive debounce in milliseconds; 0 sends a request after every key,"
    .. " which cancels the one before. The delay follows from how fast you type and how fast the"
    .. " model answers; there is none after a pause or a punctuation character." },
  { "completion.model", "qwen2.5-coder-0.5b", host = true,
    "A name from `python -m lcursor models list`, or the path of a GGUF file." },
  { "completion.gpu_layers", -1, min = -1, host = true,
    "Layers on the GPU; -1 is all if the build supports the GPU." },
  { "completion.main_gpu", 0, min = -1, host = true,
    "Index of the GPU that holds the layers; -1 splits them over all GPUs, for a model that "
    .. "is too large for one." },
  { "completion.threads", 0, min = 0, host = true,
    "Threads of llama.cpp; 0 is the number of physical cores." },
  { "completion.context_tokens", -1, min = 256, host = true,
    "Size of the KV cache in tokens. -1 is 4096 on a CPU, 16384 on a GPU." },
  { "completion.kv_type", "f16", one_of = { "f16", "q8_0" }, host = true,
    "Data type of the KV cache. q8_0 halves its size, in memory and on disk, and enables "
    .. "flash attention." },
  { "completion.prefix_tokens", -1, min = 16, host = true,
    "Maximum number of tokens before the cursor. -1 is 768 on a CPU, 3072 on a GPU." },
  { "completion.suffix_tokens", -1, min = 0, host = true,
    "Maximum number of tokens after the cursor. -1 is 512 on a CPU, 1024 on a GPU, and 96 for a "
    .. "server." },
  { "completion.files_tokens", -1, min = 0, host = true,
    "Maximum number of tokens from other files (visited, edited, imported) and from the imports at "
    .. "the top of this one. -1 is 256 on a CPU, 2048 on a GPU; 0 disables this." },
  { "completion.max_tokens", 64, min = 1, host = true,
    "Maximum number of tokens in a suggestion." },
  { "completion.max_lines", 12, min = 1, host = true,
    "Maximum number of lines in a suggestion." },
  { "completion.budget_ms", 4000, min = 50, host = true,
    "Time limit for generating a suggestion; it is cut off after that." },
  { "completion.min_confidence", 0.5, share = true, host = true,
    "Probability (0 to 1) of a line below which only its certain part is shown; half of it is"
    .. " enough for a complete first line. Adapts to what you accept and reject." },
  { "completion.read_ahead", true,
    "Evaluate the text around the cursor in advance when the cursor rests in Normal mode; off"
    .. " on battery power (detected on Linux)." },
  { "completion.idle_minutes", -1, min = 0, host = true,
    "Minutes without a request after which the model is unloaded; the next request loads it "
    .. "again. 0 is never. -1 is never on a CPU, and 30 on a GPU." },
  { "completion.save_cache", true, host = true,
    "Save the KV cache of buffers (up to 512 MB in $XDG_CACHE_HOME/lcursor/kv) for the next "
    .. "start. The text can be reconstructed from it." },
  { "completion.backend", "inproc", one_of = { "inproc", "endpoint" }, host = true,
    "Where the model runs: in lcursor's process, or on a server, see |lcursor-endpoint|." },
  { "completion.endpoint_url", "http://127.0.0.1:8012", host = true,
    "Address of that server. What you write is sent there." },
  { "completion.endpoint_api", "auto", one_of = { "auto", "llama.cpp", "ollama", "openai" },
    host = true,
    "API of the server; auto detects it." },
  { "completion.endpoint_model", "", host = true,
    "Name of the model there; empty uses the only one it has." },
  { "completion.endpoint_family", "", host = true,
    "Family of that model, which determines the format of the prompt; empty infers it from "
    .. "its name." },
  { "completion.endpoint_key_env", "", host = true,
    "Environment variable that holds the server's API key." },
  { "completion.endpoint_key_command", "", host = true,
    "Command that prints the API key, run without a shell if no variable is set." },
  { "completion.with_diagnostics", false,
    "Show the model the diagnostics nearest to the cursor. They mislead a small model as "
    .. "often as they help." },
  { "completion.with_changes", false,
    "Show the model your changes of the past five minutes. They mislead a small model as "
    .. "often as they help." },
  { "completion.in_comments", true,
    "Complete inside comments." },
  { "completion.filetypes", each = "boolean",
    { gitcommit = false, gitrebase = false, help = false, markdown = false, text = false },
    'Enable (true) or disable (false) a filetype; "*" stands for all others.' },
  { "completion.max_file_bytes", 2 * 1024 * 1024, min = 0,
    "No suggestions in larger buffers." },
  { "completion.max_line_bytes", 4096, min = 0,
    "No suggestions in longer lines." },
  { "completion.secrets", {}, host = true,
    "More file name patterns (globs) that are never read and never indexed, besides the "
    .. "built-in list; see |lcursor-secrets|." },

  { "index.enabled", true, host = true,
    "Allow projects to be indexed and searched. None is indexed before you say so; see "
    .. "|lcursor-index|." },
  { "index.auto", true, host = true,
    "Continue an index that was started once, and follow changes, as soon as you work on a "
    .. "file of its project." },
  { "index.embedder", "minilm-l6-v2-int8", host = true,
    "Model for semantic search, a name from `python -m lcursor models list`; empty searches "
    .. "for words and names only." },
  { "index.unsaved", true,
    "Search the text of modified buffers instead of their files." },
  { "index.limit", 30, min = 1,
    "Maximum number of search results." },
  { "index.picker", "live", one_of = { "live", "select" },
    "What `:LCursor search` without arguments opens: a window that searches while you type, "
    .. "or |vim.ui.select()|." },

  { "chat.enabled", true, host = true,
    "Enable the chat." },
  { "chat.model", "", host = true,
    "The model: a name from chat.models, or for the local server a name from `python -m "
    .. "lcursor models list` or the path of a GGUF file. Empty chooses one that suits the "
    .. "machine." },
  { "chat.models", {}, host = true,
    rows = {
      url = "string",
      api = { "auto", "llama.cpp", "ollama", "openai" },
      model = "string",
      key_env = "string",
      key_command = "string",
      context_tokens = "number",
    },
    "Models on other servers, by a name of your choice: tables with url and optionally api "
    .. "(auto, llama.cpp, ollama, openai), model, key_env, key_command and context_tokens. Your "
    .. "messages and attachments are sent there; see |lcursor-chat-models|." },
  { "chat.server", "auto", one_of = { "auto", "off" }, host = true,
    "The local server: auto finds or starts one when it is needed, off never does." },
  { "chat.context_tokens", 0, min = 0, host = true,
    "Context size of the local server in tokens; 0 is what fits into memory." },
  { "chat.max_tokens", 0, min = 0, host = true,
    "Maximum number of tokens in an answer; 0 is as many as fit." },
  { "chat.temperature", 0.2, share = true, host = true,
    "Sampling temperature, 0 to 1." },
  { "chat.summarize_at", 0.85, share = true, host = true,
    "Share of the context (0 to 1) at which earlier messages are summarized, which you see "
    .. "and can undo; 0 is never." },
  { "chat.speculate", true, host = true,
    "Let the local server draft tokens from earlier text (speculative decoding): faster where"
    .. " an answer repeats code." },
  { "chat.idle_minutes", 15, min = 1, host = true,
    "Idle minutes after which the local server unloads the model." },
  { "chat.rules", true, host = true,
    "Include the project's rules (AGENTS.md, .cursor/rules, .lcursor/rules) in the prompt." },
  { "chat.screen", true,
    "Attach the visible lines of code to a question without a mention, selection or command, "
    .. "if the model is on this machine and git does not ignore the file." },
  { "chat.route", false, host = true,
    "Send small talk and short questions to chat.route_small." },
  { "chat.route_small", "", host = true,
    "The model for these, a name like chat.model." },
  { "chat.side", "right", one_of = { "right", "left", "above", "below" },
    "Where the chat window opens." },
  { "chat.size", 0.4, share = true,
    "Its share (0 to 1) of the columns, or of the lines above and below." },
  { "chat.float", false,
    "Open the chat in a floating window instead." },
  { "chat.mappings", each = "key", {
      send = "<CR>",
      send_insert = "<C-s>",
      stop = "<C-c>",
      regenerate = "gr",
      edit = "ge",
      next_branch = "]b",
      previous_branch = "[b",
      next = "]]",
      previous = "[[",
      context = "gb",
      sources = "gs",
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
    "Normal mode keys in the chat buffer; false disables one. send_insert is for Insert mode,"
    .. " stop for both." },

  { "edit.enabled", true, host = true,
    "Enable edits." },
  { "edit.model", "", host = true,
    "The model that writes edits, a name like chat.model; empty uses the model of the chat." },
  { "edit.planner", "", host = true,
    "The model that plans and sketches edits of several files, a name like chat.model; empty "
    .. "is edit.model." },
  { "edit.format", "auto", one_of = { "auto", "whole", "search_replace", "udiff" }, host = true,
    "How a model writes a change: the whole region, search-and-replace blocks, or a diff; "
    .. "auto uses what measured best for the model." },
  { "edit.region_tokens", 1500, min = 16, host = true,
    "A selection is extended to whole definitions of up to this many tokens." },
  { "edit.max_tokens", 4096, min = 16, host = true,
    "Maximum number of tokens in a rewrite." },
  { "edit.retries", 1, min = 0, host = true,
    "How often a rewrite that fails its checks is repeated, with the failure in the prompt." },
  { "edit.temperature", 0, share = true, host = true,
    "Sampling temperature of the first attempt, 0 to 1." },
  { "edit.formatter", "", host = true,
    'Command that formats standard input before a change is shown; {path} stands for the name'
    .. ' of the file, as in "ruff format --stdin-filename {path} -". Empty for none.' },
  { "edit.lint", "", host = true,
    "Command that is run in a copy of the project with the change applied; {path} stands for "
    .. "the file. Empty for none. It runs with your rights: see |lcursor-edit-checks|." },
  { "edit.test", "", host = true,
    "Command that tests a copy of the project with the change applied; empty for none. It "
    .. "runs code that the model wrote, with your rights: see |lcursor-edit-checks|." },
  { "edit.check_seconds", 20, min = 1, host = true,
    "Time limit of each of these commands." },
  { "edit.diagnostics", false,
    "Check a change with the attached language servers before it is shown. This opens a "
    .. "hidden document in each of them and wraps their diagnostics handler, see "
    .. "|lcursor-edit-diagnostics|." },
  { "edit.mappings", each = "key", {
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
    "Keys that are mapped in a buffer while it has hunks, and stop while an edit is written; "
    .. "false disables one. accept and reject apply to the selected part in Visual mode; object "
    .. "is for Visual and Operator-pending mode." },

  { "keymaps.enabled", true,
    "Map the keys below while a suggestion is visible; false for one of them disables it." },
  { "keymaps.accept", "<Tab>", key = true,
    "Accept the suggestion." },
  { "keymaps.accept_line", "<S-Tab>", key = true,
    "Accept the next line." },
  { "keymaps.accept_word", "<C-Right>", key = true,
    "Accept the next word." },
  { "keymaps.dismiss", "<C-]>", key = true,
    "Dismiss the suggestion until the text changes." },
  { "keymaps.next", "<M-]>", key = true,
    "Show the next alternative." },
  { "keymaps.prev", "<M-[>", key = true,
    "Show the previous alternative." },
}
