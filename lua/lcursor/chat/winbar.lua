-- The winbar of a chat: its title, the model, how full the context is, and what it is doing. Set as
-- plain text when it changes, so that Neovim evaluates nothing while it draws.

local format = require("lcursor.chat.format")
local lsp_progress = require("lcursor.lsp_progress")
local notify = require("lcursor.notify")
local text = require("lcursor.text")

local M = {}

local api, uv = vim.api, vim.uv
local INTERVAL_MS = 250
local MODEL_RANK, BUSY_RANK = 5, 9 -- of parts
local MIN_TITLE = 6 -- cells of one that is cut
local DETAILS = { " of [%d.]+[kM]?", ", [^,]*$", ", [^,]*$" } -- of what it does, first to go
local TOKEN_BYTES = 3.6 -- on average; the exact count comes with the end of the answer

---@return string
local function duration(seconds)
  if seconds >= 90 then
    return ("%.0f min"):format(seconds / 60)
  end
  return ("%.0f s"):format(math.ceil(seconds))
end

--- Describe what a turn is doing, and how fast.
---@param turn lcursor.ChatTurn
---@param now_ms integer
---@return string
function M.phase(turn, now_ms)
  local progress = turn.progress
  if turn.is_stopping then
    return "stopping"
  elseif turn.first_ms then
    local seconds = (now_ms - turn.first_ms) / 1000
    local tokens = turn.bytes / TOKEN_BYTES
    local speed = seconds > 0.5 and (", about %.0f tokens/s"):format(tokens / seconds) or ""
    return "writing" .. speed .. (turn.is_followed and ", next question queued" or "")
  elseif not progress then
    return "waiting " .. duration((now_ms - turn.started_ms) / 1000)
  end
  local detail = progress.detail ~= "" and (" " .. progress.detail) or ""
  if progress.phase == "server" then
    return "server:" .. (detail ~= "" and detail or " starting")
  elseif progress.phase == "context" then
    return "reading files" .. detail
  end
  local words = progress.phase == "summary" and "summarizing" or "reading"
  if progress.total > 0 then
    local percent = math.floor(100 * progress.done / progress.total)
    words = ("%s %d%% of %s"):format(words, percent, format.short(progress.total))
  end
  if progress.seconds_left >= 0 then
    words = ("%s, %s left"):format(words, duration(progress.seconds_left))
  end
  return words
end

---@alias lcursor.WinbarPart { text: string, rank: integer, is_busy?: boolean }

---@return lcursor.WinbarPart[] in order; the lowest ranks are left out first
local function parts_of(session)
  local parts = {}
  local function add(rank, words, is_busy)
    table.insert(parts, { text = words, rank = rank, is_busy = is_busy })
  end
  if session.model ~= "" then
    add(MODEL_RANK, session.model)
  end
  local used = format.short(session.used_tokens)
  if session.context_tokens > 0 then
    add(4, ("%s of %s"):format(used, format.size(session.context_tokens)))
  elseif session.used_tokens > 0 then
    add(4, used .. " tokens")
  end
  local last = session.last
  if session.turn and not session.turn.failure then
    add(BUSY_RANK, M.phase(session.turn, uv.now()), true)
  elseif session.turn or session.failure then
    add(BUSY_RANK, "failed", true)
  elseif session.chat == "" then
    add(BUSY_RANK, "opening", true)
  elseif last then
    if last.is_exact and last.prompt_tokens > 0 then
      add(3, ("%.0f%% cached"):format(100 * last.cached_tokens / last.prompt_tokens))
    end
    if last.answer_ms > 0 and last.answer_tokens > 1 then
      add(2, ("%.0f tokens/s"):format(1000 * last.answer_tokens / last.answer_ms))
    end
  end
  return parts
end

---@param str string
---@param cells integer
---@return string
local function cut(str, cells)
  if api.nvim_strwidth(str) <= cells then
    return str
  end
  local head = cells > 1 and vim.trim((text.fit(str, cells - 1))) or ""
  return head ~= "" and head .. "…" or ""
end

--- Fit a title and parts into a width. First parts of a low rank are left out, then the title is
--- shortened, then details of what the chat is doing, and last the model is left out.
---@param title string
---@param parts lcursor.WinbarPart[]
---@param width integer
---@return string title
---@return lcursor.WinbarPart[]
function M.fit(title, parts, width)
  parts = vim.deepcopy(parts)
  local function remaining()
    local cells = 0
    for i, part in ipairs(parts) do
      local separator = part.is_busy and 2 or i > 1 and 3 or 1
      cells = cells + separator + api.nvim_strwidth(part.text)
    end
    return width - cells
  end
  --- Leave out parts, up to a rank, until so many cells are free.
  local function leave_out(max_rank, cells)
    while #parts > 1 and remaining() < cells do
      local lowest = 1
      for i, part in ipairs(parts) do
        lowest = part.rank < parts[lowest].rank and i or lowest
      end
      if parts[lowest].rank > max_rank then
        return
      end
      table.remove(parts, lowest)
    end
  end
  leave_out(MODEL_RANK - 1, math.min(api.nvim_strwidth(title), 12) + 2)
  local last = parts[#parts]
  for _, detail in ipairs(last and DETAILS or {}) do
    if remaining() < 0 then
      last.text = last.text:gsub(detail, "")
    end
  end
  leave_out(MODEL_RANK, 0)
  if last and remaining() < 0 then
    last.text = cut(last.text, math.max(width - 2, 1))
  end
  local cells = remaining() - 2
  return (cells >= MIN_TITLE or cells >= api.nvim_strwidth(title)) and cut(title, cells) or "",
    parts
end

---@return string as 'winbar' expects it
local function winbar(session, width)
  local function escape(words)
    return (words:gsub("%c", " "):gsub("%%", "%%%%"))
  end
  local title = session.title ~= "" and session.title or "new chat"
  local parts
  title, parts = M.fit(title, parts_of(session), width)
  local bar = title ~= "" and "%#LCursorChatTitle# " .. escape(title) .. " %*" or ""
  for i, part in ipairs(parts) do
    local separator = part.is_busy and "%=%#LCursorChatBusy#" or i > 1 and " · " or " "
    bar = bar .. separator .. escape(part.text) .. (part.is_busy and " " or "")
  end
  return bar
end

--- Draw it in all windows of a chat.
---@param session lcursor.ChatSession
function M.draw(session)
  if not api.nvim_buf_is_valid(session.buf) then
    return
  end
  for _, win in ipairs(vim.fn.win_findbuf(session.buf)) do
    local bar = winbar(session, api.nvim_win_get_width(win))
    if vim.wo[win].winbar ~= bar then
      vim.wo[win][0].winbar = bar
    end
  end
end

--- Draw it repeatedly while the current turn runs. Where no window shows the chat, what handles
--- LspProgress shows the turn.
---@param session lcursor.ChatSession
function M.watch(session)
  local turn, token = session.turn, "chat " .. session.number
  M.draw(session)
  if not turn or vim.fn.bufwinid(session.buf) > 0 then
    lsp_progress.finish(token)
  else
    local title = session.title ~= "" and session.title or "new chat"
    lsp_progress.report(token, "chat: " .. title, M.phase(turn, uv.now()))
  end
  notify.later(INTERVAL_MS, function()
    if turn and session.turn == turn then
      M.watch(session)
    elseif not session.turn then
      lsp_progress.finish(token)
    end
  end)
end

return M
