-- `:LCursor server`: shows and controls the local chat server.

local notify = require("lcursor.notify")
local ui = require("lcursor.ui.window")
local requests = require("lcursor.requests")

local M = {}

M.WORDS = { "status", "start", "stop", "restart", "log" }

local PROGRESS = { start = "starting", stop = "stopping", restart = "restarting" }
local STATES = {
  none = "is not running",
  starting = "is starting",
  running = "is running",
  sleeping = "is asleep until the next question",
  failed = "has failed",
  foreign = "is running, started by another program",
}

--- Describe the server.
---@param answer lcursor.ServerStatus
---@return string[]
function M.lines(answer)
  if #answer.lines > 0 then
    return answer.lines
  end
  local lines = { "server   " .. (STATES[answer.state] or answer.state) }
  local values = { model = answer.model, url = answer.url, process = answer.pid, log = answer.log }
  for _, name in ipairs({ "model", "url", "process", "log" }) do
    local value = values[name]
    if value and value ~= "" and value ~= 0 then
      table.insert(lines, ("%-8s %s"):format(name, value))
    end
  end
  return lines
end

local function open_log(path)
  if path == "" or not vim.uv.fs_stat(path) then
    return notify.info("the local server has no log yet")
  end
  vim.cmd.tabedit({ vim.fn.fnameescape(path) })
  vim.bo.readonly, vim.bo.autoread, vim.bo.modifiable = true, true, false
  vim.cmd("normal! G")
end

--- `:LCursor server {word}`.
---@param args string[]
function M.command(args)
  local word = args[1] or "status"
  if not vim.list_contains(M.WORDS, word) then
    local expected = table.concat(M.WORDS, ", ")
    local text = "invalid argument '%s' for :LCursor server (expected: %s)"
    return notify.warn(text:format(word, expected))
  end
  if PROGRESS[word] then
    notify.progress(("the local server is %s …"):format(PROGRESS[word]))
  end
  requests.ask("server.ask", { ["do"] = word }, function(answer)
    if word == "log" then
      return open_log(answer.log)
    elseif word == "status" then
      return ui.float(M.lines(answer), "server")
    end
    local model = answer.model ~= "" and (", " .. answer.model) or ""
    notify.info("the local server " .. (STATES[answer.state] or answer.state) .. model)
  end)
end

return M
