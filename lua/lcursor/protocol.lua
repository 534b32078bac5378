-- Generated from lcursor/protocol.py and lcursor/errors.py by `make docs`: do not edit.
-- The wire as the Lua half knows it: the version, each message with its fields, the
-- severity of each error code.

local M = {}

M.version = 2

M.to_python = {
  hello = { "protocol", "version", "config" },
  config = { "config" },
  shutdown = {},
  ["model.load"] = {},
  ["fim.request"] = {
    "id",
    "buf",
    "tick",
    "path",
    "name",
    "repo",
    "filetype",
    "first_row",
    "row",
    "col",
    "prefix",
    "suffix",
    "top",
    "single_line",
    "trigger",
  },
  ["fim.warm"] = { "path", "name", "repo", "first_row", "prefix", "suffix", "top" },
  ["fim.cancel"] = { "id" },
  ["fim.more"] = { "id" },
  ["fim.outcome"] = {
    "id",
    "filetype",
    "outcome",
    "source",
    "shown_chars",
    "kept_chars",
    "through_keys",
    "shown_ms",
    "latency_ms",
    "confidence",
  },
  ["stats.request"] = {},
  ["stats.reset"] = {},
  ["prompt.request"] = {},
  ["context.chunk"] = { "path", "name", "first_row", "text", "kind", "symbols" },
}

M.to_lua = {
  ready = { "protocol", "version", "python", "pid" },
  state = { "state", "detail", "progress" },
  ["fim.partial"] = { "id", "buf", "tick", "text" },
  ["fim.done"] = { "id", "buf", "tick", "text", "replaces", "reason", "stats" },
  ["fim.alternatives"] = { "id", "texts" },
  stats = { "rows", "total", "since_s", "path", "problem" },
  prompt = { "pieces" },
  error = { "id", "code", "message", "hint", "level" },
  log = { "level", "message" },
}

M.levels = {
  internal = "error",
  config_invalid = "warn",
  dependency_missing = "error",
  neovim_missing = "error",
  install_failed = "error",
  host_died = "warn",
  host_failed = "error",
  protocol_mismatch = "error",
  message_invalid = "error",
  journal_failed = "warn",
  key_missing = "error",
  server_error = "error",
  server_unreachable = "warn",
  server_insecure = "error",
  server_slow = "warn",
  server_denied = "error",
  server_model_missing = "error",
  server_failed = "error",
  server_garbled = "error",
  model_error = "error",
  model_unknown = "error",
  model_missing = "error",
  model_corrupt = "error",
  model_unsuitable = "error",
  tokenizer_odd = "warn",
  download_failed = "error",
  disk_full = "error",
  engine_error = "error",
  engine_failed = "error",
  out_of_memory = "error",
  cancelled = "silent",
}

return M
