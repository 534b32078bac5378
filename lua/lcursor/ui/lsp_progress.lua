-- Long work as `$/progress` of a language server, which fidget.nvim, noice.nvim, snacks.nvim and
-- statuslines show. Where no LspProgress autocommand exists, nothing is sent, and the caller shows
-- a message instead. Work that a visible window shows is not reported.

local notify = require("lcursor.ui.notify")
local server = require("lcursor.ui.lsp_server")

local M = {}

local api = vim.api

local HANDLERS = {} ---@type lcursor.LspHandlers its client is asked nothing
local INTERVAL_MS = 100

---@type table<string, true> tokens of work that has begun
local begun = {}
---@type table<string, table> the newest report that was not sent yet, by token
local pending = {}

--- Send a report later: what the handlers of the user do must not disturb the work.
---@param token string
---@param value table
local function send(token, value)
  vim.schedule(function()
    local client = server.client("lcursor", {}, HANDLERS)
    if client then
      local ctx = { client_id = client.id, method = "$/progress" }
      vim.lsp.handlers["$/progress"](nil, { token = token, value = value }, ctx)
    end
  end)
end

--- Send the newest of the reports that come within an interval.
---@param token string
---@param value table
local function send_soon(token, value)
  local is_due = pending[token] ~= nil
  pending[token] = value
  if not is_due then
    notify.later(INTERVAL_MS, function()
      if pending[token] then
        send(token, pending[token])
        pending[token] = nil
      end
    end)
  end
end

--- Report how far some work is.
---@param token string
---@param title string of the work; the first one stays
---@param text string
---@param fraction? number 0 to 1; nil if unknown
---@return boolean whether something handles it
function M.report(token, title, text, fraction)
  local kind = begun[token] and "report" or "begin"
  if kind == "begin" and #api.nvim_get_autocmds({ event = "LspProgress" }) == 0 then
    return false
  end
  begun[token] = true
  local percentage = fraction and math.floor(100 * math.max(math.min(fraction, 1), 0)) or nil
  local value = { kind = kind, title = title, message = text, percentage = percentage }
  if kind == "begin" then
    send(token, value)
  else
    send_soon(token, value)
  end
  return true
end

---@param token string
---@return boolean whether this work is reported
function M.is_shown(token)
  return begun[token] ~= nil
end

--- Report that some work has ended, or is shown in a window now.
---@param token string
---@param text? string how it ended
---@return boolean whether it was reported before
function M.finish(token, text)
  if not begun[token] then
    return false
  end
  begun[token], pending[token] = nil, nil
  send(token, { kind = "end", message = text })
  return true
end

return M
