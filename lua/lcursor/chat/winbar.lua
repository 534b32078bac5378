-- The line above a chat: its title, the model, how full the context is, how fast it goes. Set as
-- plain text, and only when it changed: nothing is worked out while Neovim draws.

local words = require("lcursor.chat.words")
local notify = require("lcursor.notify")

local M = {}

local api, uv = vim.api, vim.uv
local EVERY_MS = 250

---@type table<integer, uv.uv_timer_t> by the session's number
local timers = {}

---@param text string
---@return string
local function plain(text)
  return (text:gsub("[%c]", " "):gsub("%%", "%%%%"))
end

--- What the winbar says, as 'winbar' wants it.
---@param session lcursor.ChatSession
---@param width integer
---@return string
function M.text(session, width)
  local whole = session.title ~= "" and session.title or "new chat"
  local title, parts = words.fit(whole, words.bar(session, uv.now()), width)
  local text = "%#LCursorChatTitle# " .. plain(title) .. " %*%<"
  for i, part in ipairs(parts) do
    if part.is_busy then
      text = text .. "%=%#LCursorChatBusy#" .. plain(part.text) .. " "
    else
      text = text .. (i > 1 and " · " or " ") .. plain(part.text)
    end
  end
  return text
end

--- Draw it in all windows of a chat.
---@param session lcursor.ChatSession
function M.draw(session)
  if not api.nvim_buf_is_valid(session.buf) then
    return
  end
  for _, win in ipairs(vim.fn.win_findbuf(session.buf)) do
    local text = M.text(session, api.nvim_win_get_width(win))
    if vim.wo[win].winbar ~= text then
      vim.wo[win][0].winbar = text
    end
  end
end

--- Keep it up to date as long as a turn runs.
---@param session lcursor.ChatSession
function M.watch(session)
  M.draw(session)
  if timers[session.number] then
    return
  end
  local timer = assert(uv.new_timer())
  timers[session.number] = timer
  timer:start(
    EVERY_MS,
    EVERY_MS,
    vim.schedule_wrap(notify.guarded(function()
      M.draw(session)
      if not session.turn and timers[session.number] == timer then
        timers[session.number] = nil
        timer:close()
      end
    end))
  )
end

return M
