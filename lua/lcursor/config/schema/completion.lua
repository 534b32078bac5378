-- The settings of completion. Data; must not require anything.

---@type lcursor.Setting[]
return {
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
    key = "completion.main_gpu",
    type = "number",
    default = 0,
    min = -1,
    wire = true,
    desc = "Number of the GPU that takes the layers, counted from 0; -1 spreads them over all GPUs,"
      .. " for a model that is too large for one.",
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
    default = -1,
    min = 256,
    wire = true,
    desc = "Cells of the KV cache, in tokens. -1 is 4096 on a CPU, 16384 on a GPU.",
  },
  {
    key = "completion.kv_type",
    type = { "f16", "q8_0" },
    default = "f16",
    wire = true,
    desc = "Type of the numbers in the KV cache. q8_0 takes about half the memory, in the GPU and"
      .. " on the disk, and turns flash attention on.",
  },
  {
    key = "completion.prefix_tokens",
    type = "number",
    default = -1,
    min = 16,
    wire = true,
    desc = "Most tokens before the cursor that the model reads. -1 is 768 on a CPU, 3072 on a GPU.",
  },
  {
    key = "completion.suffix_tokens",
    type = "number",
    default = -1,
    min = 0,
    wire = true,
    desc = "Most tokens after the cursor that the model reads. -1 is 512 on a CPU, 1024 on a GPU,"
      .. " and 96 for a server.",
  },
  {
    key = "completion.files_tokens",
    type = "number",
    default = -1,
    min = 0,
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
    key = "completion.read_ahead",
    type = "boolean",
    default = true,
    desc = "Evaluate the text around the cursor in advance when the cursor rests in Normal mode;"
      .. " off on battery power (detected on Linux).",
  },
  {
    key = "completion.idle_minutes",
    type = "number",
    default = -1,
    min = 0,
    wire = true,
    desc = "After how many minutes without a request the model is freed from memory; the next"
      .. " request loads it again. 0 is never. -1 is never on a CPU, and 30 on a GPU.",
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
    each = "boolean",
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
}
