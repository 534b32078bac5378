-- Makes of what a chat, or someone else, wrote a proposal for files: asks Python where it belongs.
-- Parses nothing but what stands between fences of a chat.

local edit = require("lcursor.edit")
local kept = require("lcursor.edit.kept")
local notify = require("lcursor.notify")
local reader = require("lcursor.edit.reader")

local M = {}

local api = vim.api

---@type table<string, lcursor.EditRun> by what was asked; those whose proposal waits, or may come
local asked = {}

---@param turn lcursor.EditTurn
---@return boolean whether the user can still say yes to something of it
local function is_fit(turn)
  for _, part in ipairs(turn.parts) do
    if kept.is_whole(part) and part.state ~= "done" then
      return true
    end
    for _, hunk in ipairs(part.hunks) do
      if hunk.state == "open" or hunk.state == "waiting" then
        return true
      end
    end
  end
  return false
end

--- Lead to what was made of the same text already, where that still waits.
---@param key string
---@return boolean is_there
---@return string? instead key of a turn that waits in vain: its lines are others now
local function lead(key)
  local running = edit.running()
  for other, run in pairs(asked) do
    local turn = run.instead and kept.turn(run.instead)
    local is_open = turn and not kept.is_decided(turn)
    if not is_open and not vim.list_contains(running, run) then
      asked[other] = nil
    end
  end
  local run = asked[key]
  if not run then
    return false
  elseif vim.list_contains(running, run) then
    notify.info("it is being looked where this goes; a moment")
    return true
  end
  local turn = assert(kept.turn(run.instead))
  if not is_fit(turn) then
    return false, turn.key
  end
  if turn.is_hidden then
    require("lcursor.edit.store").show(turn)
  end
  if require("lcursor.edit.hunks").show(turn) then
    notify.info("this is proposed already, here")
  else
    local name = turn.parts[1].file.name
    notify.info(("this is proposed already, for %s; :LCursor hunks lists it"):format(name))
  end
  return true
end

---@param text string
---@param file string path that it is said to be about
---@param chat string key
---@param message integer of the chat that it is in
---@param path string absolute
---@param buf? integer that is looked at
---@return lcursor.EditRun?
local function ask(text, file, chat, message, path, buf)
  local where = file == "" and path or "" -- a name says more than what is looked at
  local key = vim.fn.sha256(table.concat({ chat, message, file, where, text }, "\n"))
  local is_there, instead = lead(key)
  if is_there then
    return nil
  end
  asked[key] = edit.begin("edit.apply", {
    path = path,
    text = text,
    file = file,
    chat = chat,
    message = message,
    buffers = reader.seen(buf),
  }, { what = "apply", instead = instead })
  return asked[key]
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
