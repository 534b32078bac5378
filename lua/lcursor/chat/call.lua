-- `chat{}` of the Lua API: what a map or another plugin says, as the functions of the chat.

local attach = require("lcursor.chat.attach")
local chat = require("lcursor.chat")
local list = require("lcursor.chat.list")
local notify = require("lcursor.notify")

local M = {}

---@class lcursor.ChatCall: lcursor.ChatOpts
---@field question? string asked at once
---@field draft? string put where the next question is written
---@field range? integer[] first and last line of the current buffer, from 1, that go along
---@field selection? boolean false leaves what is selected out
---@field attachments? lcursor.ChatAttachment[] that go along as well
---@field toggle? boolean close the chat's window if it is open

--- Say all names that nobody knows, since a wrong one would do nothing in silence.
---@param opts lcursor.ChatCall
---@return boolean
local function is_known(opts)
  local known = {
    "new",
    "chat",
    "path",
    "side",
    "size",
    "float",
    "enter", -- lcursor.ChatOpts
    "question",
    "draft",
    "range",
    "selection",
    "attachments",
    "toggle",
  }
  for name in pairs(opts) do
    if not vim.list_contains(known, name) then
      notify.warn(("chat{}: there is no %s; see :help lcursor.chat()"):format(tostring(name)))
      return false
    end
  end
  return true
end

--- Read what goes along, while one still is where it stands.
---@param opts lcursor.ChatCall
---@return lcursor.ChatAttachment[]? nil where it must not be read; it was told
local function pieces(opts)
  local found = vim.tbl_map(attach.whole, opts.attachments or {})
  if opts.range then
    local piece = attach.range(vim.api.nvim_get_current_buf(), opts.range[1] - 1, opts.range[2])
    if not piece then
      return nil
    end
    table.insert(found, piece)
  elseif opts.selection ~= false and attach.is_visual() then
    local piece = attach.visual()
    if not piece then
      return nil
    end
    table.insert(found, piece)
  end
  return found
end

---@param opts lcursor.ChatCall
---@param found lcursor.ChatAttachment[]
local function open(opts, found)
  local session = chat.open(opts)
  if not session then
    return
  end
  attach.put(session, found)
  if opts.draft and opts.draft ~= "" then
    require("lcursor.chat.buffer").set_draft(session, opts.draft)
  end
  if opts.question and opts.question:find("%S") then
    require("lcursor.chat.turns").ask(session, opts.question, {})
  end
end

--- Do what is said.
---@param opts lcursor.ChatCall
function M.run(opts)
  if not is_known(opts) then
    return
  elseif opts.toggle then
    return chat.toggle(opts)
  end
  local found = pieces(opts)
  if not found then
    return
  end
  if attach.is_visual() then
    vim.cmd("normal! \27")
  end
  if opts.chat == "last" then
    return list.newest(opts.path, function(key)
      open(vim.tbl_extend("force", opts, { chat = key }), found)
    end)
  end
  open(opts, found)
end

return M
