-- Completes mentions and commands in the draft and the questions of a chat.

local buffers = require("lcursor.editor.buffers")
local completion = require("lcursor.editor.mention_completion")
local entries = require("lcursor.conversation.entries")
local mentions = require("lcursor.editor.mentions")

local M = {}

local api = vim.api

---@param session lcursor.ChatSession
---@return string? word
---@return integer? col from 0
local function find_in_chat(session)
  local buf = session.buf
  local cursor = api.nvim_win_get_cursor(0)
  local row = cursor[1] - 1
  local entry = entries.at(session, row)
  if entry.kind ~= "user" and entry.kind ~= "draft" then
    return nil
  end
  local first = entries.content(session, entry)
  local above = api.nvim_buf_get_lines(buf, first, math.max(row, first), false)
  local text = table.concat(above, "\n")
  local before = api.nvim_get_current_line():sub(1, cursor[2])
  local word, col = mentions.word(before, not text:find("%S"))
  -- A marker in place of the word shows whether it is in code.
  local marked = text .. "\n" .. before:sub(1, col or 0) .. "\1"
  if word and mentions.without_code(marked):find("\1", 1, true) then
    return word, col
  end
end

---@param session lcursor.ChatSession
function M.attach(session)
  completion.attach(session.buf, {
    find = function()
      return find_in_chat(session)
    end,
    path = buffers.here,
  })
end

return M
