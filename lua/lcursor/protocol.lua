-- Generated from lcursor/protocol.py and lcursor/errors.py by `make docs`: do not edit.
-- The wire as the Lua half knows it: the version, each message with its fields, the
-- severity of each error code.

local M = {}

M.version = 1

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
    "single_line",
    "trigger",
  },
  ["fim.cancel"] = { "id" },
}

M.to_lua = {
  ready = { "protocol", "version", "python", "pid" },
  state = { "state", "detail", "progress" },
  ["fim.partial"] = { "id", "buf", "tick", "text" },
  ["fim.done"] = { "id", "buf", "tick", "text", "reason", "stats" },
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
  model_error = "error",
  model_unknown = "error",
  model_missing = "error",
  model_corrupt = "error",
  model_unsuitable = "error",
  download_failed = "error",
  disk_full = "error",
  engine_error = "error",
  engine_failed = "error",
  out_of_memory = "error",
  cancelled = "silent",
}

return M
