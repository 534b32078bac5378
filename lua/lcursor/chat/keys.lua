-- The keys of a chat's buffer, as the settings map them.

local buffer = require("lcursor.chat.buffer")
local code_blocks = require("lcursor.chat.code_blocks")
local code_window = require("lcursor.chat.code_window")
local commands = require("lcursor.chat.commands")
local config = require("lcursor.config")
local list = require("lcursor.chat.list")
local load = require("lcursor.chat.load")
local notify = require("lcursor.notify")
local ui = require("lcursor.ui.window")
local send = require("lcursor.chat.send")
local turn = require("lcursor.chat.turn")
local usage = require("lcursor.chat.usage")
local window = require("lcursor.chat.window")

local M = {}

local api = vim.api

local function jump(session, by)
  local span, index = buffer.span_at_cursor(session)
  local _, _, heading = buffer.rows(session, span)
  local is_below = by < 0 and api.nvim_win_get_cursor(0)[1] - 1 > heading
  local target = session.spans[is_below and index or index + by]
  if target then
    _, _, heading = buffer.rows(session, target)
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { heading + 1, 0 })
    vim.cmd("normal! zt")
  end
end

local function go_to_question(session)
  local span = buffer.question_at_cursor(session)
  if span then
    local first, last = buffer.rows(session, span)
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { math.min(first + 2, last), 0 })
  end
end

local function send_at_cursor(session)
  send.send(session, {})
end

local function stop(session)
  if not turn.stop(session) and api.nvim_get_mode().mode:find("^i") then
    vim.cmd.stopinsert()
  end
end

-- stylua: ignore
--- Name in chat.mappings, description, action; modes if not Normal mode only.
local KEYS = {
  { "send", "Send", send_at_cursor },
  { "send_insert", "Send", send_at_cursor, modes = { "i" } },
  { "stop", "Stop answer", stop, modes = { "n", "i" } },
  { "regenerate", "Answer again", function(session) send.regenerate(session, {}) end },
  { "edit", "Go to question", go_to_question },
  { "next_branch", "Next branch", function(session) load.step(session, vim.v.count1) end },
  { "previous_branch", "Previous branch", function(session) load.step(session, -vim.v.count1) end },
  { "next", "Next message", function(session) jump(session, 1) end },
  { "previous", "Previous message", function(session) jump(session, -1) end },
  { "context", "Preview context", usage.preview },
  { "sources", "Show sources", usage.sources },
  { "jump", "Go to file", code_window.follow },
  { "yank_block", "Yank code block", code_blocks.yank },
  { "insert_block", "Insert code block", code_blocks.insert },
  { "open_block", "Open code block", code_blocks.open },
  { "apply_block", "Apply as edit", code_blocks.apply },
  { "model", "Choose model", commands.choose_model },
  { "list", "List chats", function() list.open() end },
  { "close", "Close window", window.close },
  { "help", "Show keys", function() ui.float(M.lines(), "chat") end },
}

--- Return the default keys, for the help.
---@return { name: string, text: string, default: string }[]
function M.describe()
  local mappings = config.defaults().chat.mappings
  return vim.tbl_map(function(key)
    local text = key[1] == "send_insert" and key[2] .. ", in Insert mode" or key[2]
    return { name = key[1], text = text, default = mappings[key[1]] }
  end, KEYS)
end

--- Return the mapped keys and their descriptions.
---@return string[]
function M.lines()
  local mappings = config.get().chat.mappings
  local cells = {}
  for _, key in ipairs(KEYS) do
    local lhs = mappings[key[1]] or ""
    if lhs ~= "" then
      table.insert(cells, { lhs, key[2] })
    end
  end
  local width = 0
  for _, cell in ipairs(cells) do
    width = math.max(width, #cell[1])
  end
  return vim.tbl_map(function(cell)
    return ("%-" .. width .. "s  %s"):format(cell[1], cell[2])
  end, cells)
end

--- Map the keys in a chat's buffer.
---@param session lcursor.ChatSession
function M.map(session)
  local mappings = config.get().chat.mappings
  for _, key in ipairs(KEYS) do
    local lhs = mappings[key[1]] or ""
    if lhs ~= "" then
      vim.keymap.set(
        key.modes or { "n" },
        lhs,
        notify.guarded(function()
          key[3](session)
        end),
        { buffer = session.buf, nowait = true, desc = "lcursor: " .. key[2] }
      )
    end
  end
end

return M
