-- Documents that only a language server knows: beside a file, under a name of their own, never on
-- the disk, in no buffer. Opens, changes and closes them, hears what the server says of them, and
-- keeps that from Neovim, which would make a buffer of it. While one is open, what the server says
-- of other documents waits: it may speak of the two as of two files.

local M = {}

local PUBLISH = "textDocument/publishDiagnostics"
local PULL = "textDocument/diagnostic"
local HEAD = ".lcursor-check-"
local NUMBER = "%.lcursor%-check%-(%d+)%-"
local SETTLE_MS = 250 -- after a document was closed, what is said of others waits so long
local MOST_WAIT_MS = 3500 -- nothing that is said of others waits longer
local LINGER_MS = 30000 -- so long after the last document, what a slow server says of it is dropped
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

---@class (exact) lcursor.EditTap how one server is listened to
---@field open integer documents
---@field handlers table of the client
---@field before? function that was there
---@field ours function
---@field waiting table<string, fun()> what was said of other documents, the newest, by URI
---@field timer uv.uv_timer_t hands them on
---@field since_ms integer when the first of them came; 0 for none
---@field closed_ms integer

local number = 0
---@type table<integer, lcursor.EditShadow> by number
local shadows = {}
---@type table<integer, lcursor.EditTap> by the client's id
local taps = {}

---@param tap lcursor.EditTap
---@param id integer
local function hand_on(tap, id)
  local waiting = tap.waiting
  tap.waiting, tap.since_ms = {}, 0
  if vim.lsp.get_client_by_id(id) then -- of one that is gone nothing is to be shown any more
    for _, say in pairs(waiting) do
      say()
    end
  end
end

---@param tap lcursor.EditTap
---@param id integer
---@param ms integer
local function hand_on_in(tap, id, ms)
  tap.timer:start(
    ms,
    0,
    vim.schedule_wrap(function()
      hand_on(tap, id)
    end)
  )
end

--- Leave a server as it was, unless something is open again.
---@param id integer
local function untap(id)
  local tap = taps[id]
  if not tap or tap.open > 0 then
    return
  end
  taps[id] = nil
  hand_on(tap, id)
  tap.timer:close()
  if tap.handlers[PUBLISH] == tap.ours then
    tap.handlers[PUBLISH] = tap.before
  end
end

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

---@param client vim.lsp.Client
---@return lcursor.EditTap
local function tap_of(client)
  local id = client.id
  if taps[id] then
    return taps[id]
  end
  local tap = {
    open = 0,
    handlers = client.handlers,
    before = client.handlers[PUBLISH],
    waiting = {},
    timer = assert(vim.uv.new_timer()),
    since_ms = 0,
    closed_ms = 0,
  }
  ---@param err? lsp.ResponseError
  ---@param result any
  ---@param ctx lsp.HandlerContext
  function tap.ours(err, result, ctx, ...)
    if is_ours(result) then
      return
    end
    local function say(...)
      return (tap.before or vim.lsp.handlers[PUBLISH])(err, result, ctx, ...)
    end
    local is_quiet = vim.uv.now() - tap.closed_ms > SETTLE_MS
    -- Clients of one configuration may share their handlers.
    if ctx.client_id ~= id or (tap.open == 0 and is_quiet) or type(result) ~= "table" then
      return say(...)
    end
    tap.waiting[result.uri] = say
    if tap.since_ms == 0 then
      tap.since_ms = vim.uv.now()
      hand_on_in(tap, id, tap.open > 0 and MOST_WAIT_MS or SETTLE_MS)
    end
  end
  client.handlers[PUBLISH] = tap.ours
  taps[id] = tap
  return tap
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
  local tap = tap_of(client)
  local is_sent = client.rpc.notify("textDocument/didOpen", {
    textDocument = {
      uri = shadow.uri,
      version = shadow.version,
      languageId = client.get_language_id(buf, vim.bo[buf].filetype),
      text = text,
    },
  })
  if not is_sent then
    untap(client.id)
    return nil
  end
  tap.open = tap.open + 1
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
  local id = shadow.client.id
  shadow.client.rpc.notify("textDocument/didClose", { textDocument = { uri = shadow.uri } })
  local tap = taps[id]
  tap.open = tap.open - 1
  if tap.open > 0 then
    return
  end
  local now = vim.uv.now()
  tap.closed_ms = now
  if tap.since_ms > 0 then
    local left = tap.since_ms + MOST_WAIT_MS - now
    hand_on_in(tap, id, math.max(math.min(left, SETTLE_MS), 1))
  end
  vim.defer_fn(function()
    if tap == taps[id] and tap.closed_ms == now then
      untap(id)
    end
  end, LINGER_MS)
end

--- A message without the names of such documents: what it would be about the file itself.
---@param text string
---@return string
function M.plain(text)
  return (text:gsub(NUMBER, ""))
end

return M
