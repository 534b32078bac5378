-- Collects the diagnostics of language servers for a proposal before it is shown and, if that has
-- errors, for the text before. Used only with `edit.diagnostics`. The servers get
-- these texts as a document next to the file, in no buffer and never on disk. Best effort: a server
-- that is slow, or sees such a document differently from the file, reports nothing.

local buffers = require("lcursor.edit.buffers")
local config = require("lcursor.config")
local log = require("lcursor.log")
local notify = require("lcursor.notify")

local M = {}

local api = vim.api
local PUBLISH, PULL = "textDocument/publishDiagnostics", "textDocument/diagnostic"
local NAME, NUMBER = ".lcursor-check-%d-%s", "%.lcursor%-check%-(%d+)%-"
local STEP_MS, RETRY_MS = 40, 100
local RETRIED = { [-32801] = true, [-32802] = true } -- content modified, server cancelled
local MAX_USELESS = 2 -- checks in a row, after which a server is not used for a file again
-- What gopls, rust-analyzer and jdtls report, not as an error, of documents outside of the project.
local OUTSIDE = {
  "No packages found for",
  "No active builds contain",
  "may be excluded due to",
  "not included in module tree",
  "not included anywhere in the module tree",
  "not included in any crates",
  "not included in your workspace",
  "only syntax errors are reported",
}

-- Milliseconds. Tests change them.
M.limits_ms = {
  first = 2500, -- for the first answer of a server
  whole = 5000, -- for the whole check
  quiet = 250, -- after which published diagnostics are the last ones
  empty = 1000, -- the same for an empty list: some servers publish one first
}

---@class (exact) lcursor.LspServerCheck
---@field client vim.lsp.Client
---@field number integer of the document
---@field uri string
---@field version integer of the text that it has; 0 before the first
---@field is_pulled boolean diagnostics are requested; else the server publishes them
---@field errors? lsp.Diagnostic[] of the text that it has
---@field reported_ms integer
---@field is_stale boolean it was busy when it answered
---@field after? lsp.Diagnostic[] errors of the proposal
---@field before? lsp.Diagnostic[] errors of the text before
---@field is_outside boolean it says that the document is not part of the project
---@field is_over boolean

---@class (exact) lcursor.LspCheck
---@field id integer of the edit
---@field buf integer
---@field before string
---@field after string
---@field servers lcursor.LspServerCheck[]
---@field began_ms integer
---@field timer uv.uv_timer_t
---@field done fun(servers: table[])

---@type table<lcursor.LspCheck, true>
local checks = {}
---@type table<integer, lcursor.LspServerCheck> by the number of their open document
local open = {}
local last_number = 0
---@type table<string, integer> consecutive checks without a result, by client and buffer
local useless = {}
---@type table<table, function> our handlers by `client.handlers`, which clients may share
local handlers = setmetatable({}, { __mode = "k" })

---@return string
local function key_of(client, buf)
  return client.id .. " " .. buf
end

--- Whether a server tracks open documents and is a separate process: one inside Neovim may make a
--- buffer of a document.
local function is_supported(client)
  local sync = (client.server_capabilities or {}).textDocumentSync
  if client:is_stopped() or type(sync) ~= "table" or not sync.openClose then
    return false
  end
  local change = type(sync.change) == "number" and sync.change or 0
  local source = debug.getinfo(client.rpc.notify, "S").source
  return change > 0 and source:find("vim/lsp/rpc", 1, true) ~= nil
end

---@return vim.lsp.Client[] that can check its file
local function clients_of(buf)
  if not config.for_buffer(buf).edit.diagnostics then
    return {}
  end
  return vim.tbl_filter(function(client)
    return is_supported(client) and (useless[key_of(client, buf)] or 0) < MAX_USELESS
  end, vim.lsp.get_clients({ bufnr = buf }))
end

--- Return the files with a language server that can check them.
---@return string[] absolute
function M.served()
  local found = {}
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if buffers.is_file(buf) and #clients_of(buf) > 0 then
      table.insert(found, buffers.path(buf))
    end
  end
  return found
end

---@param each lsp.Diagnostic
---@return string without the names of our documents, so that it reads as if about the file
local function message_of(each)
  local message = each.message
  local text = type(message) == "table" and message.value or tostring(message)
  return (text:gsub(NUMBER, ""))
end

local function on_diagnostics(server, diagnostics)
  server.errors, server.reported_ms = {}, vim.uv.now()
  for _, each in ipairs(diagnostics) do
    if (each.severity or 1) == 1 then
      table.insert(server.errors, each)
    else
      server.is_outside = server.is_outside
        or vim.iter(OUTSIDE):any(function(text)
          return message_of(each):find(text, 1, true) ~= nil
        end)
    end
  end
end

--- Put a handler in front of the client's one for published diagnostics: Neovim would make buffers
--- for our documents. It passes everything else on at once.
local function add_handler(client)
  local all = client.handlers
  local before = all[PUBLISH]
  if before and before == handlers[all] then
    return
  end
  all[PUBLISH] = function(err, result, ...)
    local uri = type(result) == "table" and result.uri or nil
    local number = type(uri) == "string" and uri:match(NUMBER)
    if not number then
      return (before or vim.lsp.handlers[PUBLISH])(err, result, ...)
    end
    local server = open[tonumber(number)]
    local version = tonumber(result.version) -- not every server says it
    if server and not server.is_pulled and (not version or version == server.version) then
      on_diagnostics(server, result.diagnostics or {})
    end
  end
  handlers[all] = all[PUBLISH]
end

local function pull(server)
  local version, provider = server.version, server.client.server_capabilities.diagnosticProvider
  local params = {
    textDocument = { uri = server.uri },
    identifier = type(provider) == "table" and provider.identifier or nil,
  }
  server.client.rpc.request(PULL, params, function(err, result)
    if open[server.number] ~= server or server.version ~= version then
      return
    elseif type(result) == "table" and type(result.items) == "table" then
      on_diagnostics(server, result.items)
    elseif err and RETRIED[err.code] then
      vim.defer_fn(function()
        if open[server.number] == server and server.version == version then
          pull(server)
        end
      end, RETRY_MS)
    end
  end)
end

--- Send a text. By `client.rpc`: with `client:notify` plugins would take it for the current buffer.
local function send(server, buf, text)
  local client, version = server.client, server.version + 1
  server.version, server.errors, server.is_stale = version, nil, false
  local method, params = "textDocument/didChange", { contentChanges = { { text = text } } }
  params.textDocument = { uri = server.uri, version = version }
  if version == 1 then
    add_handler(client)
    open[server.number] = server
    local language = client.get_language_id(buf, vim.bo[buf].filetype)
    method, params = "textDocument/didOpen", { textDocument = { uri = server.uri, text = text } }
    params.textDocument.version, params.textDocument.languageId = version, language
  end
  if not client.rpc.notify(method, params) then
    server.is_over = true
  elseif server.is_pulled then
    pull(server)
  end
end

--- Whether a server's diagnostics are complete: some servers report while they load a project.
---@param server lcursor.LspServerCheck that has reported something
local function is_complete(server)
  local now, count = vim.uv.now(), #server.errors
  if count == 0 and next(vim.tbl_get(server.client, "progress", "pending") or {}) then
    server.reported_ms, server.is_stale = now, true
    return false
  elseif server.is_pulled and server.is_stale and count == 0 then
    server.errors, server.is_stale = nil, false
    pull(server)
    return false
  end
  local wait_ms = count == 0 and M.limits_ms.empty or M.limits_ms.quiet
  return server.is_pulled or now - server.reported_ms >= wait_ms
end

--- Go on with one server, as far as it has answered.
---@return boolean is_sent it was sent a text, which takes some milliseconds
local function step(check, server)
  if server.is_over or server.is_outside or server.client:is_stopped() then
    server.is_over = true
  elseif server.version == 0 then
    send(server, check.buf, check.after)
    return true
  elseif server.errors and is_complete(server) then
    if server.after then
      server.before, server.is_over = server.errors, true
    elseif #server.errors == 0 then
      server.after, server.before, server.is_over = {}, {}, true
    else
      server.after = server.errors
      send(server, check.buf, check.before)
      return true
    end
  end
  return false
end

--- Return what makes two errors the same wherever they are: a message may name lines.
---@param code any
---@return string
local function kind_of(message, code)
  return message:gsub("%d+", "#") .. "\0" .. tostring(code or "")
end

--- Whether a server sees the text before as it sees the file: it finds no errors that the file does
--- not have, and some where the file has some.
---@return boolean
local function agrees_with_file(server, buf)
  local client, counts, has_errors = server.client, {}, false
  local space = ("lsp.%s.%d."):format(client.name, client.id)
  for _, each in ipairs(vim.diagnostic.get(buf, { severity = vim.diagnostic.severity.ERROR })) do
    local name = vim.diagnostic.get_namespace(each.namespace).name .. "."
    if name:find(space, 1, true) then
      local kind = kind_of(each.message, each.code)
      counts[kind], has_errors = (counts[kind] or 0) + 1, true
    end
  end
  for _, each in ipairs(server.before) do
    local kind = kind_of(message_of(each), each.code)
    counts[kind] = (counts[kind] or 0) - 1
    if counts[kind] < 0 then
      return false
    end
  end
  return #server.before > 0 or not has_errors
end

---@param found lsp.Diagnostic[]
---@return table[] with the fields of `EditProblem`
local function problems_of(found)
  return vim.tbl_map(function(each)
    local row = vim.tbl_get(each, "range", "start", "line")
    return { row = row or 0, text = message_of(each), code = tostring(each.code or "") }
  end, found)
end

--- Return the results of the servers, and remember those without any.
---@return table[] with the fields of `EditServer`
local function results(check)
  local found = {}
  local text = table.concat(api.nvim_buf_get_lines(check.buf, 0, -1, false), "\n") .. "\n"
  for _, server in ipairs(check.servers) do
    local key = key_of(server.client, check.buf)
    if server.before and not server.is_outside and agrees_with_file(server, check.buf) then
      local before, after = problems_of(server.before), problems_of(server.after)
      table.insert(found, { name = server.client.name, before = before, after = after })
      useless[key] = 0
    elseif text == check.before then
      useless[key] = (useless[key] or 0) + 1
      log.debug("%s reported nothing about a proposal", server.client.name)
    end
  end
  return found
end

local function close(check)
  checks[check] = nil
  check.timer:close()
  for _, server in ipairs(check.servers) do
    if open[server.number] then
      open[server.number] = nil
      local params = { textDocument = { uri = server.uri } }
      server.client.rpc.notify("textDocument/didClose", params)
    end
  end
end

local function go_on(check)
  if not checks[check] then
    return
  elseif not api.nvim_buf_is_loaded(check.buf) then
    close(check)
    return check.done({})
  end
  local passed_ms, is_waiting, is_sent = vim.uv.now() - check.began_ms, false, false
  for _, server in ipairs(check.servers) do
    is_sent = is_sent or step(check, server) -- one text at a time: the editor is not held up
    local is_late = not (server.after or server.errors) and passed_ms > M.limits_ms.first
    is_waiting = is_waiting or not (server.is_over or is_late)
  end
  if not is_waiting or passed_ms > M.limits_ms.whole then
    local found = results(check)
    close(check)
    check.done(found)
  end
end

---@return lcursor.LspServerCheck
local function new_server(client, buf)
  last_number = last_number + 1
  local path = buffers.path(buf)
  local name = NAME:format(last_number, vim.fs.basename(path))
  return {
    client = client,
    number = last_number,
    uri = vim.uri_from_fname(vim.fs.joinpath(vim.fs.dirname(path), name)),
    version = 0,
    is_pulled = client:supports_method(PULL, buf),
    reported_ms = 0,
    is_stale = false,
    is_outside = false,
    is_over = false,
  }
end

--- Check a proposal.
---@param request { id: integer, path: string, before: string, after: string } as in `edit.diagnose`
---@param done fun(servers: table[]) called once, after five seconds at most; never
---after `stop`
function M.check(request, done)
  local buf = buffers.find(request.path)
  local clients = buf and clients_of(buf) or {}
  if not buf or #clients == 0 then
    return done({})
  end
  ---@type lcursor.LspCheck
  local check = {
    id = request.id,
    buf = buf,
    before = request.before,
    after = request.after,
    servers = vim.tbl_map(function(client)
      return new_server(client, buf)
    end, clients),
    began_ms = vim.uv.now(),
    timer = assert(vim.uv.new_timer()),
    done = done,
  }
  checks[check] = true
  step(check, check.servers[1])
  local run = vim.schedule_wrap(notify.guarded(function()
    go_on(check)
  end))
  check.timer:start(STEP_MS, STEP_MS, run)
end

--- Stop the checks of an edit that has ended or was stopped.
---@param id integer of the edit
function M.stop(id)
  for check in pairs(checks) do
    if check.id == id then
      close(check)
    end
  end
end

return M
