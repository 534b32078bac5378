-- Documents that only a language server knows: beside a file, under a name of their own, in no
-- buffer, never on disk. Used only with `edit.diagnostics`. A handler stands in front of the
-- client's one for published diagnostics, since Neovim would make buffers for these documents; it
-- passes everything else on at once.

local notify = require("lcursor.notify")

local M = {}

local PUBLISH = "textDocument/publishDiagnostics"
local PULL = "textDocument/diagnostic"
local PREFIX = ".lcursor-check-"
local NUMBER = "%.lcursor%-check%-(%d+)%-"
local LINGER_MS = 30000 -- a slow server may still report on a document that was closed
local RETRY_MS = 100
local RETRIED = { [-32801] = true, [-32802] = true } -- content modified, server cancelled

---@class (exact) lcursor.LspDocument
---@field client vim.lsp.Client
---@field number integer
---@field uri string
---@field version integer
---@field identifier? string of the server's diagnostics
---@field is_pulled boolean diagnostics are requested; else the server publishes them
---@field on_diagnostics fun(diagnostics: lsp.Diagnostic[])

---@class (exact) lcursor.LspHandler
---@field users integer documents that are open, or were closed a short time ago
---@field before? function
---@field ours function

local number = 0
---@type table<integer, lcursor.LspDocument> by number
local documents = {}
---@type table<table, lcursor.LspHandler> by `client.handlers`, which clients may share
local handlers = {}

---@param result any
---@return boolean whether it is about a document of ours
local function receive(result)
  local uri = type(result) == "table" and result.uri or nil
  local found = type(uri) == "string" and uri:match(NUMBER) or nil
  local document = found and documents[tonumber(found)]
  if document and not document.is_pulled then
    local version = tonumber(result.version) -- not every server says it
    if not version or version == document.version then
      document.on_diagnostics(result.diagnostics or {})
    end
  end
  return found ~= nil
end

---@param client vim.lsp.Client
local function add_handler(client)
  local all = client.handlers
  local handler = handlers[all]
  if not handler then
    handler = { users = 0, before = all[PUBLISH] }
    function handler.ours(err, result, ...)
      if not receive(result) then
        return (handler.before or vim.lsp.handlers[PUBLISH])(err, result, ...)
      end
    end
    all[PUBLISH], handlers[all] = handler.ours, handler
  end
  handler.users = handler.users + 1
end

--- Restore the former handler when ours is not needed any more, unless somebody put another one in
--- front of it; then ours stays and passes everything on.
---@param client vim.lsp.Client
local function remove_handler(client)
  local all = client.handlers
  local handler = handlers[all]
  handler.users = handler.users - 1
  if handler.users == 0 then
    handlers[all] = nil
    if all[PUBLISH] == handler.ours then
      all[PUBLISH] = handler.before
    end
  end
end

--- Whether a server is told of open documents and their changes, and is a process of its own: one
--- inside Neovim may make a buffer of a document.
---@param client vim.lsp.Client
---@return boolean
function M.is_supported(client)
  local sync = (client.server_capabilities or {}).textDocumentSync
  if client:is_stopped() or type(sync) ~= "table" or not sync.openClose then
    return false
  end
  local change = type(sync.change) == "number" and sync.change or 0
  local source = debug.getinfo(client.rpc.notify, "S").source
  return change > 0 and source:find("vim/lsp/rpc", 1, true) ~= nil
end

--- Request the diagnostics of a document.
---@param document lcursor.LspDocument that is pulled
function M.pull(document)
  local version = document.version
  local params = { textDocument = { uri = document.uri }, identifier = document.identifier }
  document.client.rpc.request(PULL, params, function(err, result)
    if documents[document.number] ~= document or document.version ~= version then
      return
    elseif type(result) == "table" and type(result.items) == "table" then
      document.on_diagnostics(result.items)
    elseif err and RETRIED[err.code] then
      vim.defer_fn(function()
        if documents[document.number] == document and document.version == version then
          M.pull(document)
        end
      end, RETRY_MS)
    end
  end)
end

--- Open a document. Sent by `client.rpc`: with `client:notify` plugins would take it for the
--- current buffer.
---@param client vim.lsp.Client that is supported
---@param buf integer beside whose file it is
---@param text string
---@param on_diagnostics fun(diagnostics: lsp.Diagnostic[]) of the newest text
---@return lcursor.LspDocument? nil where the server is gone
function M.open(client, buf, text, on_diagnostics)
  number = number + 1
  local path = vim.fs.abspath(vim.api.nvim_buf_get_name(buf))
  local name = PREFIX .. number .. "-" .. vim.fs.basename(path)
  local provider = (client.server_capabilities or {}).diagnosticProvider
  ---@type lcursor.LspDocument
  local document = {
    client = client,
    number = number,
    uri = vim.uri_from_fname(vim.fs.joinpath(vim.fs.dirname(path), name)),
    version = 1,
    identifier = type(provider) == "table" and provider.identifier or nil,
    is_pulled = client:supports_method(PULL, buf),
    on_diagnostics = on_diagnostics,
  }
  add_handler(client)
  local is_sent = client.rpc.notify("textDocument/didOpen", {
    textDocument = {
      uri = document.uri,
      version = document.version,
      languageId = client.get_language_id(buf, vim.bo[buf].filetype),
      text = text,
    },
  })
  if not is_sent then
    remove_handler(client)
    return nil
  end
  documents[number] = document
  if document.is_pulled then
    M.pull(document)
  end
  return document
end

--- Replace the text of a document.
---@param document lcursor.LspDocument
---@param text string
function M.change(document, text)
  document.version = document.version + 1
  document.client.rpc.notify("textDocument/didChange", {
    textDocument = { uri = document.uri, version = document.version },
    contentChanges = { { text = text } },
  })
  if document.is_pulled then
    M.pull(document)
  end
end

--- Close a document; its diagnostics are ignored from now on.
---@param document lcursor.LspDocument
function M.close(document)
  if documents[document.number] ~= document then
    return
  end
  documents[document.number] = nil
  document.client.rpc.notify("textDocument/didClose", { textDocument = { uri = document.uri } })
  vim.defer_fn(
    notify.guarded(function()
      remove_handler(document.client)
    end),
    LINGER_MS
  )
end

--- Remove the names of such documents from a message, so that it reads as if about the file.
---@param text string
---@return string
function M.without_names(text)
  return (text:gsub(NUMBER, ""))
end

return M
