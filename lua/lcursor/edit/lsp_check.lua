-- Asks the language servers of a file what they report about a proposal before it is shown and,
-- where that has errors, about the text before. Used only with `edit.diagnostics`. Best effort: a
-- server that is slow, or sees such a document differently from the file, reports nothing.

local buffers = require("lcursor.edit.buffers")
local config = require("lcursor.config")
local document = require("lcursor.edit.lsp_document")
local log = require("lcursor.log")
local notify = require("lcursor.notify")

local M = {}

local api = vim.api
local STEP_MS = 40
local MAX_LATE = 3 -- checks in a row without an answer, after which a server is left alone
local MAX_ODD = 2 -- checks after which it is not asked about a file that it sees differently
local MAX_ERRORS = 200
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
  empty = 1000, -- the same for an empty list, unless the server is known to report errors at once
}

---@class (exact) lcursor.LspServerCheck
---@field client vim.lsp.Client
---@field document? lcursor.LspDocument nil as long as it was not asked
---@field errors? lsp.Diagnostic[] of the text that it has now
---@field heard_ms integer
---@field changed_ms integer since when it has reported so many errors
---@field is_first boolean it has not reported anything else of this text before
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
---@type table<integer, integer> checks without an answer, by client
local late = {}
---@type table<string, integer> checks of a text that a server saw differently, by client and buffer
local odd = {}
---@type table<string, true> names of servers that report errors at once
local is_prompt = {}

---@param client vim.lsp.Client
---@param buf integer
---@return string
local function key_of(client, buf)
  return client.id .. " " .. buf
end

---@param buf integer
---@return vim.lsp.Client[] that can be asked about its file
local function clients_of(buf)
  if not config.for_buffer(buf).edit.diagnostics then
    return {}
  end
  return vim.tbl_filter(function(client)
    return document.is_supported(client)
      and (late[client.id] or 0) < MAX_LATE
      and (odd[key_of(client, buf)] or 0) < MAX_ODD
  end, vim.lsp.get_clients({ bufnr = buf }))
end

--- Return the files about which a language server can be asked.
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

---@param diagnostics lsp.Diagnostic[]
---@return boolean
local function is_outside(diagnostics)
  return vim.iter(diagnostics):any(function(each)
    return (each.severity or 1) > 1
      and type(each.message) == "string"
      and vim.iter(OUTSIDE):any(function(text)
        return each.message:find(text, 1, true) ~= nil
      end)
  end)
end

--- A text is about to be sent: nothing is known of it.
---@param server lcursor.LspServerCheck
local function expect(server)
  server.errors, server.heard_ms, server.changed_ms = nil, 0, 0
  server.is_first, server.is_stale = true, false
end

---@param server lcursor.LspServerCheck
---@param diagnostics lsp.Diagnostic[]
local function on_diagnostics(server, diagnostics)
  local before = server.errors
  server.errors = vim.tbl_filter(function(each)
    return (each.severity or 1) == 1
  end, diagnostics)
  server.heard_ms = vim.uv.now()
  if not before then
    server.changed_ms = server.heard_ms
  elseif #before ~= #server.errors then
    server.is_first, server.changed_ms = false, server.heard_ms
  end
  server.is_outside = server.is_outside or is_outside(diagnostics)
end

---@param check lcursor.LspCheck
---@param server lcursor.LspServerCheck
local function open(check, server)
  expect(server)
  server.document = document.open(server.client, check.buf, check.after, function(diagnostics)
    on_diagnostics(server, diagnostics)
  end)
  server.is_over = not server.document
end

--- Whether what a server reported is its last word. Some publish an empty list first and the errors
--- later, some answer while they still load a project.
---@param server lcursor.LspServerCheck that has reported something
---@return boolean is_last
---@return boolean is_stale it answered while it was busy: ask again
local function is_settled(server)
  local now, count, is_pulled = vim.uv.now(), #server.errors, server.document.is_pulled
  if count == 0 and next(vim.tbl_get(server.client, "progress", "pending") or {}) then
    server.heard_ms, server.changed_ms = now, now
    server.is_first, server.is_stale = false, true
    return false, false
  elseif is_pulled then
    local is_stale = server.is_stale and count == 0
    server.is_stale = false
    return not is_stale, is_stale
  end
  local is_slow = count == 0 and not is_prompt[server.client.name]
  local wait_ms = is_slow and M.limits_ms.empty or M.limits_ms.quiet
  if now - server.heard_ms < M.limits_ms.quiet or now - server.changed_ms < wait_ms then
    return false, false
  end
  if count > 0 and server.is_first then
    is_prompt[server.client.name] = true
  end
  return true, false
end

--- Go on with one server, as far as it has answered.
---@param check lcursor.LspCheck
---@param server lcursor.LspServerCheck
---@return boolean is_sent it was sent a text, which takes some milliseconds
local function step(check, server)
  if server.is_over or server.is_outside or server.client:is_stopped() then
    server.is_over = true
    return false
  elseif not server.document then
    open(check, server)
    return true
  elseif not server.errors then
    return false
  end
  local is_last, is_stale = is_settled(server)
  local errors = server.errors
  if is_stale then
    server.errors = nil
    document.pull(server.document)
  elseif not is_last then
    return false
  elseif #errors > MAX_ERRORS then
    server.is_over = true
  elseif server.after then
    server.before, server.is_over = errors, true
  elseif #errors == 0 then
    server.after, server.before, server.is_over = errors, {}, true
  else
    server.after = errors
    expect(server)
    document.change(server.document, check.before)
    return true
  end
  return is_stale
end

---@param each lsp.Diagnostic
---@return string
local function message_of(each)
  local message = each.message
  return document.without_names(type(message) == "table" and message.value or tostring(message))
end

--- Return what makes two errors the same wherever they are: a message may name lines.
---@param message string
---@param code any
---@return string
local function kind_of(message, code)
  return message:gsub("%d+", "#") .. "\0" .. tostring(code or "")
end

--- Whether a server sees the text before as it sees the file: it finds no errors that the file does
--- not have, and some where the file has some.
---@param server lcursor.LspServerCheck
---@param buf integer
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

--- Return what the servers found, and remember those that are late or see the text differently.
---@param check lcursor.LspCheck
---@return table[] with the fields of `EditServer`
local function results(check)
  local found = {}
  local text = table.concat(api.nvim_buf_get_lines(check.buf, 0, -1, false), "\n") .. "\n"
  for _, server in ipairs(check.servers) do
    local client = server.client
    local is_odd = server.is_outside
    if not is_odd and (server.after or server.errors) then
      late[client.id] = 0
    elseif not is_odd and not server.is_over then
      late[client.id] = (late[client.id] or 0) + 1
      log.debug("%s reported nothing in time about a proposal", client.name)
    end
    if not is_odd and server.before and server.is_over then
      if agrees_with_file(server, check.buf) then
        local before, after = problems_of(server.before), problems_of(server.after)
        table.insert(found, { name = client.name, before = before, after = after })
      else
        is_odd = text == check.before
      end
    end
    if is_odd then
      local key = key_of(client, check.buf)
      odd[key] = (odd[key] or 0) + 1
      log.debug("%s sees a text beside the file differently from the file", client.name)
    end
  end
  return found
end

---@param check lcursor.LspCheck
local function close(check)
  checks[check] = nil
  check.timer:close()
  for _, server in ipairs(check.servers) do
    if server.document then
      document.close(server.document)
    end
  end
end

---@param check lcursor.LspCheck
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
    local has_answered = server.after or server.errors
    local is_late = not has_answered and passed_ms > M.limits_ms.first
    is_waiting = is_waiting or not (server.is_over or is_late)
  end
  if not is_waiting or passed_ms > M.limits_ms.whole then
    local found = results(check)
    close(check)
    check.done(found)
  end
end

--- Check a proposal.
---@param asked { id: integer, path: string, before: string, after: string } fields of `edit.look`
---@param done fun(servers: table[]) called once, after five seconds at most; never
---after `stop`
function M.check(asked, done)
  local buf = buffers.find(asked.path)
  local clients = buf and clients_of(buf) or {}
  if not buf or #clients == 0 then
    return done({})
  end
  ---@type lcursor.LspCheck
  local check = {
    id = asked.id,
    buf = buf,
    before = asked.before,
    after = asked.after,
    servers = {},
    began_ms = vim.uv.now(),
    timer = assert(vim.uv.new_timer()),
    done = done,
  }
  for _, client in ipairs(clients) do
    local server = { client = client, is_outside = false, is_over = false }
    table.insert(check.servers, server --[[@as lcursor.LspServerCheck]])
  end
  checks[check] = true
  open(check, check.servers[1])
  local run = vim.schedule_wrap(notify.guarded(function()
    go_on(check)
  end))
  check.timer:start(STEP_MS, STEP_MS, run)
end

--- Stop the checks of an edit that is over, or was told to stop.
---@param id integer of the edit
function M.stop(id)
  for check in pairs(checks) do
    if check.id == id then
      close(check)
    end
  end
end

return M
