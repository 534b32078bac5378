-- The conversations of this Neovim: chats, and runs of agents. Which one of each kind is current.

local M = {}

local api = vim.api

---@class lcursor.ConversationKind what differs between chats and runs of agents
---@field name "chat"|"agent" of its buffers, of its group of keys, of its filetype
---@field is_parsed boolean whether tree-sitter highlights its buffers
---@field interval_ms integer how often the winbar changes while something is done
---@field press fun(action: string) does what a key stands for
---@field stop fun(conversation: table): boolean stops what is done; false if there is nothing
---@field heading fun(entry: table): string? its first line, unless that is a blank one
---@field body fun(entry: table, before?: table): string[], integer[][] lines, and rows of folds
---@field decorate fun(conversation: table, entry: table, first: integer, last: integer)
---@field fold fun(line: string, count: integer, width: integer): string|lcursor.Chunk[]
---@field title fun(conversation: table): string
---@field parts fun(conversation: table): lcursor.WinbarPart[]
---@field activity fun(conversation: table): string? what is being done; nil for nothing
---@field reloaded fun(conversation: table) writes the buffer again, which `:edit` emptied
---@field unloaded fun(conversation: table) handles that there is no buffer any more

---@class lcursor.Conversation
---@field kind lcursor.ConversationKind
---@field number integer of its kind, in this Neovim
---@field key string of the host; "" until that has opened it
---@field path string absolute: the file or folder it was started from
---@field buf? integer
---@field tick integer changedtick after our own last change
---@field entries lcursor.Entry[] in the order of the buffer; the draft is the last one
---@field has_late? boolean entries are written later
---@field is_drawn_later? boolean the winbar is

---@type lcursor.Conversation[] oldest first
local conversations = {}
---@type table<string, lcursor.Conversation> the ones used last, by kind
local current = {}
---@type table<string, integer> by kind
local counts = {}

--- Return a conversation without a buffer, which is not listed yet.
---@param kind lcursor.ConversationKind
---@param path string absolute
---@return table its fields
function M.new(kind, path)
  counts[kind.name] = (counts[kind.name] or 0) + 1
  ---@type lcursor.Conversation
  return {
    kind = kind,
    number = counts[kind.name],
    key = "",
    path = path,
    tick = -1,
    entries = { { kind = "draft", mark = 0, text = "" } },
  }
end

---@param conversation lcursor.Conversation
function M.add(conversation)
  table.insert(conversations, conversation)
  M.use(conversation)
end

---@param conversation lcursor.Conversation
function M.remove(conversation)
  conversations = vim.tbl_filter(function(other)
    return other ~= conversation
  end, conversations)
  local name = conversation.kind.name
  if current[name] == conversation then
    local all = M.all(name)
    current[name] = all[#all]
  end
end

---@param name "chat"|"agent" kind
---@return any[] oldest first
function M.all(name)
  return vim.tbl_filter(function(conversation)
    return conversation.kind.name == name
  end, conversations)
end

---@param buf integer
---@return any
function M.of_buffer(buf)
  return vim.iter(conversations):find(function(conversation)
    return conversation.buf == buf
  end)
end

---@param name "chat"|"agent" kind
---@param key string
---@return any
function M.of_key(name, key)
  return vim.iter(M.all(name)):find(function(conversation)
    return conversation.key == key and key ~= ""
  end)
end

---@param conversation lcursor.Conversation
function M.use(conversation)
  current[conversation.kind.name] = conversation
end

--- Return the conversation of the current buffer, else the one used last.
---@param name "chat"|"agent" kind
---@return any
function M.current(name)
  local here = M.of_buffer(api.nvim_get_current_buf())
  if here then
    M.use(here)
  end
  return current[name]
end

return M
