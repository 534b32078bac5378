-- Turns code from a chat, or from elsewhere, into a proposal: the backend finds its place.

local buffers = require("lcursor.editor.buffers")
local context = require("lcursor.editor.context")
local edit = require("lcursor.edit")
local notify = require("lcursor.ui.notify")
local proposals = require("lcursor.edit.proposals")

local M = {}

local api = vim.api

---@type table<string, lcursor.EditRun> the latest by request
local runs = {}

--- Whether the user can still accept something of a proposal.
local function is_acceptable(proposal)
  return vim.iter(proposal.parts):any(function(part)
    return (proposals.is_whole(part) and part.state ~= "done")
      or vim.iter(part.hunks):any(function(hunk)
        return hunk.state == "open" or hunk.state == "waiting"
      end)
  end)
end

--- Go to an open proposal that was made from the same text.
---@return boolean is_there
---@return string? instead key of a proposal whose lines were modified, to be replaced
local function go_to_existing(key)
  local run = runs[key]
  local proposal = run and run.instead and proposals.get(run.instead)
  if run and vim.list_contains(edit.running(), run) then
    notify.info("still locating this change …")
    return true
  elseif not proposal or proposals.is_decided(proposal) then
    return false
  elseif not is_acceptable(proposal) then
    return false, proposal.key
  end
  if proposal.is_hidden then
    proposals.show(proposal)
  end
  if require("lcursor.edit.hunks").show(proposal) then
    notify.info("already proposed here")
  else
    local name = proposal.parts[1].file.name
    notify.info(("already proposed for %s; :LCursor hunk list shows it"):format(name))
  end
  return true
end

---@param file string path that it is said to be about
---@param chat string key
---@param message integer of the chat that it is in
---@param path string absolute
---@param buf? integer the current code
---@param answered? fun(proposal: table)
---@return lcursor.EditRun?
local function ask(text, file, chat, message, path, buf, answered)
  local where = file == "" and path or "" -- a name says more than what is current
  local key = vim.fn.sha256(table.concat({ chat, message, file, where, text }, "\n"))
  local is_there, instead = go_to_existing(key)
  if is_there then
    return nil
  end
  runs[key] = edit.begin("edit.apply", {
    path = path,
    text = text,
    file = file,
    chat = chat,
    message = message,
    buffers = buffers.visible(buf),
  }, { instead = instead, answered = answered })
  return runs[key]
end

---@return any[] where the user is
local function position()
  local win = api.nvim_get_current_win()
  return { win, api.nvim_win_get_cursor(win), api.nvim_get_mode().mode }
end

--- Apply a code block of a chat, and go to its first hunk, unless the cursor or the mode changed
--- meanwhile.
---@param session { buf: integer, key: string, root: string }
---@param block { first: integer, last: integer, path: string, message: integer }
---@param buf? integer with the code that the chat is about
---@return lcursor.EditRun?
function M.block(session, block, buf)
  local lines = api.nvim_buf_get_lines(session.buf, block.first, block.last + 1, false)
  local path = buf and buffers.is_file(buf) and buffers.path(buf)
    or (session.root ~= "" and session.root or buffers.here())
  local text, from = table.concat(lines, "\n"), position()
  return ask(text, block.path, session.key, block.message, path, buf, function(proposal)
    if proposal.parts and vim.deep_equal(position(), from) then
      require("lcursor.edit.hunks").show(proposal)
    end
  end)
end

--- Apply a diff of one file.
---@param text string
---@param path string absolute
---@return lcursor.EditRun?
function M.diff(text, path)
  return ask(text, "", "", 0, path, context.buffer(path))
end

--- Apply the text of a register: a block with or without fences, a diff, a whole answer.
---@param register? string its name; nil or "" is the unnamed one
---@return lcursor.EditRun?
function M.register(register)
  register = register and register ~= "" and register or '"'
  if #register ~= 1 then
    return notify.warn((":LCursor edit apply: '%s' is not the name of a register"):format(register))
  end
  local text = vim.fn.getreg(register)
  if not text:find("%S") then
    return notify.info(("the register %s is empty"):format(register))
  end
  local buf = api.nvim_get_current_buf()
  return ask(text, "", "", 0, buffers.here(), buffers.is_file(buf) and buf or nil)
end

return M
