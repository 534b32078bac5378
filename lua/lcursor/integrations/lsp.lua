-- The language server of suggestions: answers textDocument/completion and
-- textDocument/inlineCompletion. The user makes it the `cmd` of a client.

local config = require("lcursor.config")
local items = require("lcursor.integrations.items")
local notify = require("lcursor.ui.notify")
local server = require("lcursor.ui.lsp_server")
local source = require("lcursor.complete.source")
local text = require("lcursor.text")

local M = {}

local api = vim.api
local REST = "lcursor.insert_rest" -- command of items with several lines
local INVOKED = 1 -- lsp.InlineCompletionTriggerKind, which Neovim 0.11 has no table of

local CAPABILITIES = {
  completionProvider = { triggerCharacters = items.TRIGGERS },
  executeCommandProvider = { commands = { REST } },
  inlineCompletionProvider = true,
}

local has_warned = false

--- Warn once if lcursor's ghost text and the client's would both be drawn.
local function warn_of_two_ghosts(buf)
  local settings = config.for_buffer(buf).completion
  if settings.enabled and settings.auto_trigger and not has_warned then
    has_warned = true
    notify.warn("suggestions are drawn twice; see :help lcursor-lsp")
  end
end

---@class (exact) lcursor.LspPosition
---@field buf integer
---@field line string
---@field row integer
---@field col integer in bytes
---@field position lsp.Position as the client gave it

---@return lcursor.LspPosition? nil where there is no such buffer or line
local function position_of(call)
  local buf = server.buffer(call.params.textDocument.uri)
  local position = call.params.position
  local line = buf and api.nvim_buf_get_lines(buf, position.line, position.line + 1, false)[1]
  if buf and line then
    local col = vim.str_byteindex(line, call.encoding, position.character, false)
    return { buf = buf, line = line, row = position.line, col = col, position = position }
  end
end

--- Request a suggestion and reply with what `make` makes of it; of "" if there is none, or if the
--- buffer has changed since: the client then sends a new request.
---@param at lcursor.LspPosition?
---@param make fun(suggested: string, replaces: integer): table
local function answer(call, at, is_manual, make)
  if not at then
    return call.reply(nil, make("", 0))
  end
  local tick = api.nvim_buf_get_changedtick(at.buf)
  local spot = { buf = at.buf, row = at.row, col = at.col, is_manual = is_manual }
  call.cancel = source.ask(spot, function(suggested, replaces)
    local is_fresh = api.nvim_buf_is_valid(at.buf) and api.nvim_buf_get_changedtick(at.buf) == tick
    call.reply(nil, make(is_fresh and suggested or "", replaces))
  end)
end

---@type lcursor.LspHandlers
local handlers = {}

--- Let the menu insert only the first line of an item, and a command the others: Neovim's menu
--- would indent these once more.
---@param it lsp.CompletionItem
---@param at lcursor.LspPosition
local function split(it, at)
  local line = text.first_line(it.insertText)
  local rest = it.insertText:sub(#line + 1)
  if rest == "" then
    return
  end
  it.command = { title = "Insert the rest", command = REST, arguments = { line, rest } }
  it.insertText = line
  if line == "" then -- a client would insert the label
    it.textEdit = { range = { start = at.position, ["end"] = at.position }, newText = "" }
  end
end

handlers["workspace/executeCommand"] = function(call)
  local line, rest = unpack(call.params.arguments or {})
  local row, col = unpack(api.nvim_win_get_cursor(0))
  local before = api.nvim_get_current_line():sub(1, col)
  if call.params.command == REST and vim.endswith(before, line) then
    local lines = vim.split(rest, "\n", { plain = true })
    api.nvim_buf_set_text(0, row - 1, col, row - 1, col, lines)
    api.nvim_win_set_cursor(0, { row + #lines - 1, #lines[#lines] })
  end
  call.reply(nil, vim.NIL)
end

handlers["textDocument/completion"] = function(call)
  local at = position_of(call)
  local before = at and at.line:sub(1, at.col) or ""
  local word = before:sub(vim.fn.match(before, "\\k*$") + 1)
  answer(call, at, false, function(suggested, replaces)
    local made = {}
    if at and replaces > 0 then -- these items insert only
      suggested = text.before(suggested, at.line:sub(at.col + 1))
    end
    if at and suggested ~= "" then
      -- Without a text edit: Neovim 0.11 uses only the first word of one.
      made = items.make(word, suggested, vim.bo[at.buf].filetype)
      for _, it in ipairs(made) do
        split(it, at)
      end
    end
    return { isIncomplete = true, items = made }
  end)
end

handlers["textDocument/inlineCompletion"] = function(call)
  local at = position_of(call)
  local is_manual = vim.tbl_get(call.params, "context", "triggerKind") == INVOKED
  if at and not is_manual then
    warn_of_two_ghosts(at.buf)
  end
  answer(call, at, is_manual, function(suggested, replaces)
    if not at or suggested == "" then
      return { items = {} }
    end
    local range = { start = at.position, ["end"] = at.position }
    if replaces > 0 then
      local column = vim.str_utfindex(at.line, call.encoding, at.col + replaces, false)
      range["end"] = { line = at.row, character = column }
    end
    return { items = { { insertText = suggested, range = range } } }
  end)
end

--- Start a server: the `cmd` of a client.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@return vim.lsp.rpc.PublicClient
function M.cmd(dispatchers)
  return server.run(CAPABILITIES, handlers, dispatchers)
end

return M
