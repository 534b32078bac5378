-- Documents that only a language server knows: beside a file, under a name of their own, never on
-- the disk, in no buffer. Opens, changes and closes them and receives what the server publishes
-- about them; Neovim would make a buffer of it. What it publishes about other documents is handled
-- at once, as ever. Used only where the user has set `edit.diagnostics`.

local notify = require("lcursor.notify")

local M = {}

local PUBLISH = "textDocument/publishDiagnostics"
local PULL = "textDocument/diagnostic"
local HEAD = ".lcursor-check-"
local NUMBER = "%.lcursor%-check%-(%d+)%-"
local LINGER_MS = 30000 -- after the last document was closed a slow server may still speak of it
local AGAIN_MS = 100
local AGAIN = { [-32801] = true, [-32802] = true } -- the text changed, the server gave up: ask anew

---@class (exact) lcursor.EditShadow
---@field client vim.lsp.Client
---@field number integer
---@field uri string
---@field version integer
---@field identifier? string of the server's diagnostics
---@field is_pulled boolean it is asked for them; else it says them by itself
---@field hear fun(diagnostics: lsp.Diagnostic[])

---@class (exact) lcursor.EditHandler our handler, and the one that it stands in front of
---@field users integer documents that are open, or were closed a short time ago
---@field before? function
---@field ours function

local number = 0
---@type table<integer, lcursor.EditShadow> by number
local shadows = {}
---@type table<table, lcursor.EditHandler> by `client.handlers`, which several clients may share
local handlers = {}

---@param result any
---@return boolean whether it is about a document of ours
local function is_ours(result)
  local uri = type(result) == "table" and result.uri or nil
  local found = type(uri) == "string" and uri:match(NUMBER)
  local shadow = found and shadows[tonumber(found)]
  if shadow and not shadow.is_pulled then
    local version = tonumber(result.version) -- not each server says of which text it speaks
    if not version or version == shadow.version then
      shadow.hear(result.diagnostics or {})
    end
  end
  return found ~= nil and found ~= false
end

--- Receive what is published about our documents, once per table of handlers.
---@param client vim.lsp.Client
local function add_handler(client)
  local all = client.handlers
  local handler = handlers[all]
  if not handler then
    handler = { users = 0, before = all[PUBLISH] }
    function handler.ours(err, result, ...)
      if is_ours(result) then
        return
      end
      return (handler.before or vim.lsp.handlers[PUBLISH])(err, result, ...)
    end
    all[PUBLISH], handlers[all] = handler.ours, handler
  end
  handler.users = handler.users + 1
end

--- Put the former handler back when nobody needs ours any more. Where somebody has put another one
--- in front of ours meanwhile, that one stays, and ours passes everything on.
---@param client vim.lsp.Client
local function remove_handler(client)
  local all = client.handlers
  local handler = handlers[all]
  handler.users = handler.users - 1
  if handler.users > 0 then
    return
  end
  handlers[all] = nil
  if all[PUBLISH] == handler.ours then
    all[PUBLISH] = handler.before
  end
end

--- Whether a server can be asked about a text beside a file: it is told of open documents and of
--- their changes, and is a program of its own. One inside the editor may make a buffer of it.
---@param client vim.lsp.Client
---@return boolean
function M.can(client)
  local sync = (client.server_capabilities or {}).textDocumentSync
  if client:is_stopped() or type(sync) ~= "table" or not sync.openClose then
    return false
  end
  local change = type(sync.change) == "number" and sync.change or 0
  local source = debug.getinfo(client.rpc.notify, "S").source
  return change > 0 and source:find("vim/lsp/rpc", 1, true) ~= nil
end

---@param shadow lcursor.EditShadow
local function pull(shadow)
  local version = shadow.version
  local function is_wanted()
    return shadows[shadow.number] == shadow and shadow.version == version
  end
  shadow.client.rpc.request(PULL, {
    textDocument = { uri = shadow.uri },
    identifier = shadow.identifier,
  }, function(err, result)
    if not is_wanted() then
      return
    elseif type(result) == "table" and type(result.items) == "table" then
      shadow.hear(result.items)
    elseif err and AGAIN[err.code] then
      vim.defer_fn(function()
        if is_wanted() then
          pull(shadow)
        end
      end, AGAIN_MS)
    end
  end)
end

--- Tell a server of a document. Neovim's own calls would tell plugins of it as of the current
--- buffer's, so the wire itself is taken.
---@param client vim.lsp.Client that can
---@param buf integer beside whose file it is
---@param text string
---@param hear fun(diagnostics: lsp.Diagnostic[]) what the server says of the newest text, whenever
---@return lcursor.EditShadow? nil where the server is gone
function M.open(client, buf, text, hear)
  number = number + 1
  local path = vim.fs.abspath(vim.api.nvim_buf_get_name(buf))
  local name = HEAD .. number .. "-" .. vim.fs.basename(path)
  local provider = (client.server_capabilities or {}).diagnosticProvider
  ---@type lcursor.EditShadow
  local shadow = {
    client = client,
    number = number,
    uri = vim.uri_from_fname(vim.fs.joinpath(vim.fs.dirname(path), name)),
    version = 1,
    identifier = type(provider) == "table" and provider.identifier or nil,
    is_pulled = client:supports_method(PULL, buf),
    hear = hear,
  }
  add_handler(client)
  local is_sent = client.rpc.notify("textDocument/didOpen", {
    textDocument = {
      uri = shadow.uri,
      version = shadow.version,
      languageId = client.get_language_id(buf, vim.bo[buf].filetype),
      text = text,
    },
  })
  if not is_sent then
    remove_handler(client)
    return nil
  end
  shadows[number] = shadow
  if shadow.is_pulled then
    pull(shadow)
  end
  return shadow
end

--- Give a document another text.
---@param shadow lcursor.EditShadow
---@param text string
function M.change(shadow, text)
  shadow.version = shadow.version + 1
  shadow.client.rpc.notify("textDocument/didChange", {
    textDocument = { uri = shadow.uri, version = shadow.version },
    contentChanges = { { text = text } },
  })
  if shadow.is_pulled then
    pull(shadow)
  end
end

--- Ask for what is wrong with a document once more, when it was answered.
---@param shadow lcursor.EditShadow that is pulled
function M.again(shadow)
  pull(shadow)
end

--- Close a document; nothing of it is heard any more.
---@param shadow lcursor.EditShadow
function M.close(shadow)
  if shadows[shadow.number] ~= shadow then
    return
  end
  shadows[shadow.number] = nil
  shadow.client.rpc.notify("textDocument/didClose", { textDocument = { uri = shadow.uri } })
  vim.defer_fn(
    notify.guarded(function()
      remove_handler(shadow.client)
    end),
    LINGER_MS
  )
end

--- A message without the names of such documents: what it would be about the file itself.
---@param text string
---@return string
function M.plain(text)
  return (text:gsub(NUMBER, ""))
end

return M
