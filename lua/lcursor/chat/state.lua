-- What is known of each chat in this Neovim, and which one is the current. Owns the table of
-- sessions and the file that one was in last; writes into no buffer.

local context = require("lcursor.context")

local M = {}

local api = vim.api

---@type lcursor.ChatSession[] in the order in which they were begun
local sessions = {}
---@type lcursor.ChatSession? the one that was used last
local current
local count = 0
---@type string? the file that one was in last
local file

--- The file that one is in, or was in before the chat; else the working folder.
---@return string absolute
function M.here()
  file = context.file(api.nvim_get_current_buf()) or file
  return file or assert(vim.uv.cwd())
end

--- Notice which file one is in.
---@param buf integer
function M.notice(buf)
  file = context.file(buf) or file
end

--- Begin to know of a chat.
---@param buf integer
---@param path string absolute
---@return lcursor.ChatSession
function M.new(buf, path)
  count = count + 1
  ---@type lcursor.ChatSession
  local session = {
    number = count,
    chat = "",
    buf = buf,
    path = path,
    root = "",
    title = "",
    model = "",
    models = {},
    messages = {},
    context_tokens = 0,
    used_tokens = 0,
    spans = {},
    undone = {},
    waiting = {},
    attached = {},
    dropped = {},
  }
  table.insert(sessions, session)
  current = session
  return session
end

---@param session lcursor.ChatSession
function M.remove(session)
  sessions = vim.tbl_filter(function(other)
    return other ~= session
  end, sessions)
  if current == session then
    current = sessions[#sessions]
  end
end

---@return lcursor.ChatSession[] in the order in which they were begun
function M.all()
  return sessions
end

---@param buf integer
---@return lcursor.ChatSession?
function M.of(buf)
  for _, session in ipairs(sessions) do
    if session.buf == buf then
      return session
    end
  end
end

---@param key string
---@return lcursor.ChatSession?
function M.named(key)
  for _, session in ipairs(sessions) do
    if session.chat == key and key ~= "" then
      return session
    end
  end
end

--- The chat whose buffer one is in, else the one that was used last.
---@return lcursor.ChatSession?
function M.current()
  current = M.of(api.nvim_get_current_buf()) or current
  return current
end

---@param session lcursor.ChatSession
function M.use(session)
  current = session
end

---@param session lcursor.ChatSession
---@param path string absolute
---@return boolean whether the chat is about the project that a file is in
function M.is_about(session, path)
  local root = session.root ~= "" and session.root or session.path
  return path == root or vim.startswith(path, root:gsub("/$", "") .. "/") or path == session.path
end

--- The chat to go on with for a file: the current one, else the last about its project.
---@param path string absolute
---@return lcursor.ChatSession?
function M.about(path)
  local here = M.current()
  if here and M.is_about(here, path) then
    return here
  end
  for i = #sessions, 1, -1 do
    if M.is_about(sessions[i], path) then
      return sessions[i]
    end
  end
end

---@param session lcursor.ChatSession
---@param number integer
---@return lcursor.ChatMessage?
---@return integer? index
function M.message(session, number)
  for i, message in ipairs(session.messages) do
    if message.number == number then
      return message, i
    end
  end
end

return M
