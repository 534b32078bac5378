-- A language server inside Neovim: `cmd` of a client. Answers textDocument/completion and
-- textDocument/inlineCompletion. Reads the buffer itself, so that no text is ever synchronized.

local config = require("lcursor.config")
local host = require("lcursor.host")
local items = require("lcursor.integrations.items")
local notify = require("lcursor.notify")
local source = require("lcursor.complete.source")
local text = require("lcursor.text")

local M = {}

local api = vim.api
local ENCODINGS = { "utf-8", "utf-16", "utf-32" } -- the best first
local CODES = vim.lsp.protocol.ErrorCodes
local REST = "lcursor.insert_rest" -- command of items that have more lines than one
local INVOKED = 1 -- lsp.InlineCompletionTriggerKind, which Neovim 0.11 has no table of

---@class (exact) lcursor.LspCall a request in work
---@field params table
---@field encoding string of columns on the wire
---@field reply fun(err?: lsp.ResponseError, result?: any) ends it
---@field cancel? fun() set where there is something to stop

local has_warned = false

--- Warn once if lcursor's ghost text and the client's would both be drawn.
local function warn_of_two_ghosts(buf)
  local settings = config.for_buffer(buf).completion
  if settings.enabled and settings.auto_trigger and not has_warned then
    has_warned = true
    notify.warn("suggestions are drawn twice; see :help lcursor-lsp")
  end
end

--- The loaded buffer of a URI. `vim.uri_to_bufnr` would make one where there is none.
---@param uri string
---@return integer?
local function buffer_of(uri)
  local here = api.nvim_get_current_buf()
  if vim.uri_from_bufnr(here) == uri then
    return here
  end
  return vim.iter(api.nvim_list_bufs()):find(function(buf)
    return api.nvim_buf_is_loaded(buf) and vim.uri_from_bufnr(buf) == uri
  end)
end

---@class (exact) lcursor.LspPosition
---@field buf integer
---@field line string
---@field row integer
---@field col integer in bytes
---@field position lsp.Position as the client gave it

---@return lcursor.LspPosition? nil where there is no such buffer or line
local function position_of(call)
  local buf = buffer_of(call.params.textDocument.uri)
  local position = call.params.position
  local line = buf and api.nvim_buf_get_lines(buf, position.line, position.line + 1, false)[1]
  if buf and line then
    local col = vim.str_byteindex(line, call.encoding, position.character, false)
    return { buf = buf, line = line, row = position.line, col = col, position = position }
  end
end

--- Ask, and reply with what `make` makes of the text; "" when nothing came, or the buffer has
--- changed since: the client then sends a new request.
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

---@type table<string, fun(call: lcursor.LspCall)>
local handlers = {}

handlers["initialize"] = function(call)
  call.reply(nil, {
    capabilities = {
      positionEncoding = call.encoding,
      completionProvider = { triggerCharacters = items.TRIGGERS },
      executeCommandProvider = { commands = { REST } },
      inlineCompletionProvider = true,
    },
    serverInfo = { name = "lcursor", version = host.version() },
  })
end

handlers["shutdown"] = function(call)
  call.reply(nil, nil)
end

--- Neovim's menu indents every line of an item but the first once more. So the menu inserts that
--- one only, and a command the others.
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
      -- Without a text edit: Neovim 0.11 takes but the first word of one.
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

---@param params table of `initialize`
---@return string
local function encoding_for(params)
  local offered = vim.tbl_get(params, "capabilities", "general", "positionEncodings")
  for _, encoding in ipairs(ENCODINGS) do
    if vim.list_contains(offered or {}, encoding) then
      return encoding
    end
  end
  return "utf-16"
end

--- Start a server: the `cmd` of a client.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@return vim.lsp.rpc.PublicClient
function M.cmd(dispatchers)
  local last_id, encoding, is_closing = 0, "utf-16", false
  ---@type table<integer, lcursor.LspCall>
  local calls = {}

  ---@param id integer
  local function cancel(id)
    local call = calls[id]
    if call and call.cancel then
      call.cancel()
      call.reply({ code = CODES.RequestCancelled, message = "cancelled" })
    end
  end

  local function close()
    if not is_closing then
      is_closing = true
      vim.iter(vim.tbl_keys(calls)):each(cancel)
      dispatchers.on_exit(0, 0)
    end
  end

  ---@param method string
  ---@param params? table
  ---@param callback fun(err?: lsp.ResponseError, result?: any)
  ---@param notify_reply? fun(id: integer)
  ---@return boolean sent
  ---@return integer? id
  local function request(method, params, callback, notify_reply)
    if is_closing then
      return false
    end
    last_id = last_id + 1
    local id = last_id
    if method == "initialize" then
      encoding = encoding_for(params or {})
    end
    local function reply(err, result)
      calls[id] = nil
      if notify_reply then
        notify_reply(id)
      end
      -- As in Neovim's transport: a cancelled request gets no answer.
      if not err or err.code ~= CODES.RequestCancelled then
        callback(err, result)
      end
    end
    local call = { params = params or {}, encoding = encoding, reply = reply }
    calls[id] = call
    local handle = handlers[method]
    if handle then
      handle(call)
    else
      reply({ code = CODES.MethodNotFound, message = "lcursor does not support " .. method })
    end
    return true, id
  end

  ---@param method string
  ---@param params? table
  ---@return boolean sent
  local function notified(method, params)
    if method == "$/cancelRequest" then
      cancel(params and params.id)
    elseif method == "exit" then
      close()
    end
    return true
  end

  return {
    request = request,
    notify = notified,
    is_closing = function()
      return is_closing
    end,
    terminate = close,
  }
end

return M
