-- `:LCursor server`: how the local server of the chat is, and what can be done with it.

local notify = require("lcursor.notify")
local window = require("lcursor.ui.window")
local requests = require("lcursor.requests")

local M = {}

M.WORDS = { "status", "start", "stop", "restart", "log" }

local DOING = { start = "starting", stop = "stopping", restart = "restarting" }
local NAMES = {
  none = "is not running",
  starting = "is starting",
  running = "is running",
  sleeping = "sleeps until it is asked something",
  failed = "has failed",
  foreign = "is running, and was started by somebody else",
}

--- What the host says of the server, for people.
---@param told lcursor.ServerTold
---@return string[]
function M.lines(told)
  if #told.lines > 0 then
    return told.lines
  end
  local lines = { "server   " .. (NAMES[told.state] or told.state) }
  local function add(name, value)
    if value and value ~= "" and value ~= 0 then
      table.insert(lines, ("%-8s %s"):format(name, value))
    end
  end
  add("model", told.model)
  add("url", told.url)
  add("process", told.pid)
  add("log", told.log)
  return lines
end

---@param path string
local function open_log(path)
  if path == "" or not vim.uv.fs_stat(path) then
    return notify.info("the local server has written no log yet")
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
    local known = table.concat(M.WORDS, ", ")
    return notify.warn((":LCursor server knows %s, not %s"):format(known, word))
  end
  if DOING[word] then
    notify.progress(("the local server is %s …"):format(DOING[word]))
  end
  requests.ask("server.ask", { ["do"] = word }, function(told)
    if word == "log" then
      return open_log(told.log)
    elseif word == "status" then
      return window.float(M.lines(told), "server")
    end
    local name = told.model ~= "" and ("%s, %s"):format(NAMES[told.state] or told.state, told.model)
    notify.info("the local server " .. (name or NAMES[told.state] or told.state))
  end)
end

return M
