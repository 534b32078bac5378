-- Makes of what a chat, or someone else, wrote a proposal for files: asks Python where it belongs.
-- Parses nothing but what stands between fences of a chat.

local notify = require("lcursor.notify")
local reader = require("lcursor.edit.reader")

local M = {}

local api = vim.api

---@param text string
---@param file string path that it is said to be about
---@param chat string key
---@param message integer of the chat that it is in
---@param path string absolute
---@param buf? integer that is looked at
---@return lcursor.EditRun?
local function ask(text, file, chat, message, path, buf)
  return require("lcursor.edit").begin("edit.apply", {
    path = path,
    text = text,
    file = file,
    chat = chat,
    message = message,
    buffers = reader.seen(buf),
  }, { what = "apply" })
end

--- A block of a chat. The names of its fields are those of the chat's own.
---@param session { buf: integer, chat: string, root: string }
---@param block { first: integer, last: integer, path: string, message: integer }
---@param buf? integer with the code that the chat is about
---@return lcursor.EditRun?
function M.block(session, block, buf)
  local lines = api.nvim_buf_get_lines(session.buf, block.first, block.last + 1, false)
  local path = buf and reader.is_file(buf) and reader.path(buf)
    or (session.root ~= "" and session.root or reader.here())
  local text = table.concat(lines, "\n")
  return ask(text, block.path, session.chat, block.message, path, buf)
end

--- Text of a register: a block with or without fences, a diff, a whole answer.
---@param register? string its name; nil or "" is the unnamed one
---@return lcursor.EditRun?
function M.register(register)
  register = register and register ~= "" and register or '"'
  if #register ~= 1 then
    return notify.warn((":LCursor apply takes the name of a register, not %s"):format(register))
  end
  local text = vim.fn.getreg(register)
  if not text:find("%S") then
    return notify.info(("the register %s is empty"):format(register))
  end
  local buf = api.nvim_get_current_buf()
  return ask(text, "", "", 0, reader.here(), reader.is_file(buf) and buf or nil)
end

return M
