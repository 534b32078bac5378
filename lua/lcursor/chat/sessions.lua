-- The chats of this Neovim, and which one is current.

local M = {}

local api = vim.api

---@type lcursor.ChatSession[] oldest first
local sessions = {}
---@type lcursor.ChatSession? the one used last
local current
local count = 0

---@param path string absolute
---@param create fun(number: integer): integer makes its buffer
---@return lcursor.ChatSession
function M.new(path, create)
  count = count + 1
  local buf = create(count)
  ---@type lcursor.ChatSession
  local session = {
    number = count,
    chat = "",
    buf = buf,
    tick = -1,
    path = path,
    root = "",
    title = "",
    model = "",
    models = {},
    messages = {},
    context_tokens = 0,
    used_tokens = 0,
    spans = {},
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

---@return lcursor.ChatSession[] oldest first
function M.all()
  return sessions
end

---@param buf integer
---@return lcursor.ChatSession?
function M.of_buffer(buf)
  for _, session in ipairs(sessions) do
    if session.buf == buf then
      return session
    end
  end
end

---@param key string
---@return lcursor.ChatSession?
function M.of_key(key)
  for _, session in ipairs(sessions) do
    if session.chat == key and key ~= "" then
      return session
    end
  end
end

--- Return the chat of the current buffer, else the one used last.
---@return lcursor.ChatSession?
function M.current()
  current = M.of_buffer(api.nvim_get_current_buf()) or current
  return current
end

---@param session lcursor.ChatSession
function M.use(session)
  current = session
end

--- Return the chat about the project of a file: the current one, else the newest.
---@param path string absolute
---@return lcursor.ChatSession?
function M.of_path(path)
  local candidates = vim.list_extend({}, sessions)
  table.insert(candidates, M.current())
  for i = #candidates, 1, -1 do
    local session = candidates[i]
    local root = session.root ~= "" and session.root or session.path
    if path == session.path or vim.fs.relpath(root, path) then
      return session
    end
  end
end

--- Return a message by its number.
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
