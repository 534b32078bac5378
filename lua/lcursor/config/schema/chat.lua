-- The settings of the chat. Data; must not require anything.

---@type lcursor.Setting[]
return {
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
    key = "chat.screen",
    type = "boolean",
    default = true,
    desc = "Whether the lines of code on the screen go with a question that says nothing of what"
      .. " it is about (no mention, no selection, no command), if the model is on this machine and"
      .. " git does not ignore the file.",
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
    each = "key",
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
    desc = "Keys of Normal mode in the chat's buffer; false disables one. send_insert is of Insert"
      .. " mode, stop of both.",
  },
}
