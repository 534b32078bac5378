-- `:LCursor server`: shows and controls the local chat server.

local buffers = require("lcursor.editor.buffers")
local notify = require("lcursor.ui.notify")
local ui = require("lcursor.ui.window")
local requests = require("lcursor.host.requests")

local M = {}

---@alias lcursor.ServerStatus table `server.status`

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

--- Run `:LCursor server {verb}`.
---@param verb "status"|"start"|"stop"|"restart"|"log"
function M.run(verb)
  if PROGRESS[verb] then
    notify.progress(("the local server is %s …"):format(PROGRESS[verb]))
  end
  requests.ask("server.ask", { ["do"] = verb }, function(answer)
    if verb == "log" then
      return buffers.when_normal("the log", function()
        open_log(answer.log)
      end)
    elseif verb == "status" then
      return buffers.when_normal("the status", function()
        ui.float(M.lines(answer), "server")
      end)
    end
    local model = answer.model ~= "" and (", " .. answer.model) or ""
    notify.info("the local server " .. (STATES[answer.state] or answer.state) .. model)
  end)
end

return M
