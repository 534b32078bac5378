-- `:LCursor status`.

local M = {}

---@param ms? number
---@return string
local function milliseconds(ms)
  return ms and ms > 0 and ("%.0f ms"):format(ms) or "-"
end

--- Describe how the last request for a completion ended, and what it cost.
---@return string? answer nil if there was none
---@return string? tokens
function M.last_answer()
  local answer = require("lcursor.complete").last_answer()
  if not answer then
    return nil
  end
  local it, text = answer.stats, "%s, first text after %s, all after %s"
  local tokens = ("%d of %d reused, %d read, %d generated"):format(
    it.reused_tokens,
    it.prompt_tokens,
    it.decoded_tokens,
    it.generated_tokens
  )
  return text:format(answer.reason, milliseconds(it.first_ms), milliseconds(it.total_ms)), tokens
end

--- Return the state, a line each.
---@return string[]
function M.lines()
  local host, state = require("lcursor.host").info(), require("lcursor.host.status").get()
  local lines = {}
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
  add("here", require("lcursor.complete").why().text)
  local index = package.loaded["lcursor.index"] and require("lcursor.index").describe()
  if index then
    add("index", index)
  end
  local edits = package.loaded["lcursor.edit"] and require("lcursor.edit.lcedit").describe()
  if edits then
    add("edits", edits)
  end
  local answer, tokens = M.last_answer()
  if answer then
    add("last answer", answer)
    add("tokens", tokens)
  end
  return lines
end

--- Show the state in a window.
function M.show()
  require("lcursor.ui.window").float(M.lines(), "lcursor")
end

return M
