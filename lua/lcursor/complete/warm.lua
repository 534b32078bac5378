-- Tells the host which buffer was entered and where, so that it has read it before a key comes.
-- The rules of what is never read are those of the requests. Nothing answers, nothing is shown.

local config = require("lcursor.config")
local context = require("lcursor.context")
local gate = require("lcursor.complete.gate")
local privacy = require("lcursor.privacy")
local rpc = require("lcursor.rpc")
local trigger = require("lcursor.complete.trigger")

local M = {}

local api = vim.api

local REST_MS = 300 -- who looks through many files wants none of them read
local FIELDS = { "path", "name", "repo", "first_row", "prefix", "suffix", "top" }

---@param buf integer
local function warm(buf)
  if buf ~= api.nvim_get_current_buf() then
    return
  end
  local own = config.for_buffer(buf)
  local code = gate.buffer_refusal(buf, own, function()
    warm(buf)
  end)
  if code or not own.completion.auto_trigger or own.completion.backend ~= "inproc" then
    return
  end
  local cursor = api.nvim_win_get_cursor(0)
  local read, place = context.read(buf, cursor[1] - 1, cursor[2]), {}
  if privacy.has_private_key(read.prefix) or privacy.has_private_key(read.suffix) then
    return
  end
  for _, field in ipairs(FIELDS) do
    place[field] = read[field]
  end
  rpc.notify("fim.warm", place)
end

--- Begin to tell.
function M.start()
  local group = api.nvim_create_augroup("lcursor.warm", {})
  api.nvim_create_autocmd("BufEnter", {
    group = group,
    callback = trigger.guarded(function(event)
      vim.defer_fn(
        trigger.guarded(function()
          if not trigger.is_insert(api.nvim_get_mode().mode) then
            warm(event.buf) -- in insert mode a request is on its way
          end
        end),
        REST_MS
      )
    end),
  })
  api.nvim_create_autocmd("User", {
    group = group,
    pattern = "LCursorHostState",
    callback = trigger.guarded(function(event)
      if event.data.state == "ready" then
        vim.schedule(trigger.guarded(function()
          if not trigger.is_insert(api.nvim_get_mode().mode) then
            warm(api.nvim_get_current_buf())
          end
        end))
      end
    end),
  })
end

return M
