-- `:LCursor status`.

local M = {}

---@param ms? number
---@return string
local function milliseconds(ms)
  return ms and ms > 0 and ("%.0f ms"):format(ms) or "-"
end

--- Describe the cost of a completion.
---@param stats lcursor.Stats
---@return string
function M.token_counts(stats)
  return ("%d of %d reused, %d read, %d generated"):format(
    stats.reused_tokens,
    stats.prompt_tokens,
    stats.decoded_tokens,
    stats.generated_tokens
  )
end

--- Return the state, a line each.
---@return string[]
function M.lines()
  local host, state = require("lcursor.host").info(), require("lcursor.host.status").get()
  local complete, lines = require("lcursor.complete"), {}
  local function add(name, text)
    table.insert(lines, ("%-11s %s"):format(name, text))
  end
  add("state", require("lcursor.host.status").describe())
  add("detail", state.detail ~= "" and state.detail or "-")
  add("model", require("lcursor.config").get().completion.model)
  add("python", host.python or "-")
  add("process", host.pid and ("%d, version %s"):format(host.pid, host.version) or "-")
  add("started in", milliseconds(host.ready_ms))
  add("model ready", milliseconds(host.model_ms))
  add("here", complete.why().text)
  local index = package.loaded["lcursor.index"] and require("lcursor.index").describe()
  if index then
    add("index", index)
  end
  local edits = package.loaded["lcursor.edit"] and require("lcursor.edit.lcedit").describe()
  if edits then
    add("edits", edits)
  end
  local answer = complete.last_answer()
  if answer then
    local first, total = milliseconds(answer.stats.first_ms), milliseconds(answer.stats.total_ms)
    add(
      "last answer",
      ("%s, first text after %s, all after %s"):format(answer.reason, first, total)
    )
    add("tokens", M.token_counts(answer.stats))
  end
  return lines
end

--- Show the state in a window.
function M.show()
  require("lcursor.ui.window").float(M.lines(), "lcursor")
end

return M
