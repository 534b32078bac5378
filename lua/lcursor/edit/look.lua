-- Asks the language servers of a file what they say of a text before it is shown: of the proposal,
-- and, where that has errors, of the text that it was made from. Best effort and bounded: who is
-- slow, or sees a text beside the file otherwise than the file, says nothing. Changes nothing.

local config = require("lcursor.config")
local direct = require("lcursor.edit.direct")
local log = require("lcursor.log")
local notify = require("lcursor.notify")
local patience = require("lcursor.edit.patience")
local reader = require("lcursor.edit.reader")
local shadow = require("lcursor.edit.shadow")

local M = {}

local api = vim.api
local STEP_MS = 40
local MOST_LATE = 3 -- looks in a row without an answer, after which a server is left alone
local MOST_ODD = 2 -- looks after which it is not asked about a file that it does not know
local MOST_ERRORS = 200
-- What servers say, not as an error, of a document that is no part of the project to them: they
-- look at its syntax at most. gopls, rust-analyzer and jdtls know a project's files by their names.
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

-- Milliseconds after which a server is not waited for. Tests change them.
M.limits_ms = {
  first = 1500, -- for its first message
  cold = 2500, -- the same the first time: some servers load a project for it
  whole = 3000, -- for all of the check
  found = 5000, -- the same where errors were found and it is not known yet whether they are new
}

---@class (exact) lcursor.EditGlance one server that is asked
---@field client vim.lsp.Client
---@field shadow? lcursor.EditShadow nil as long as it was not asked
---@field heard? lsp.Diagnostic[] errors of the text that it has now
---@field word lcursor.EditWord how it came to that
---@field after? lsp.Diagnostic[] errors of the proposal
---@field before? lsp.Diagnostic[] errors of what was there
---@field first_ms integer until when it has to have said something
---@field is_outside boolean it says itself that it does not know such a document
---@field is_over boolean

---@class (exact) lcursor.EditLook
---@field id integer of the edit
---@field buf integer
---@field before string
---@field after string
---@field glances lcursor.EditGlance[]
---@field began_ms integer
---@field timer uv.uv_timer_t
---@field done fun(servers: lcursor.EditServer[])

---@type table<lcursor.EditLook, true>
local looks = {}
---@type table<integer, integer> looks without an answer, by client
local late = {}
---@type table<string, integer> looks at a text that a server saw otherwise, by client and buffer
local odd = {}

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
    return shadow.can(client)
      and (late[client.id] or 0) < MOST_LATE
      and (odd[key_of(client, buf)] or 0) < MOST_ODD
  end, vim.lsp.get_clients({ bufnr = buf }))
end

--- The files about which a language server can be asked.
---@return string[] absolute
function M.served()
  local found = {}
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if reader.is_file(buf) and #clients_of(buf) > 0 then
      table.insert(found, reader.path(buf))
    end
  end
  return found
end

---@param diagnostics lsp.Diagnostic[]
---@return lsp.Diagnostic[]
local function errors(diagnostics)
  return vim.tbl_filter(function(each)
    return (each.severity or 1) == 1 -- what a server leaves open is for us to say
  end, diagnostics)
end

---@param diagnostics lsp.Diagnostic[]
---@return boolean
local function is_outside(diagnostics)
  for _, each in ipairs(diagnostics) do
    if (each.severity or 1) > 1 and type(each.message) == "string" then
      for _, said in ipairs(OUTSIDE) do
        if each.message:find(said) then
          return true
        end
      end
    end
  end
  return false
end

---@param each lsp.Diagnostic
---@return string
local function words(each)
  local message = each.message
  return shadow.plain(type(message) == "table" and message.value or tostring(message))
end

--- What makes two errors the same wherever they stand: a message may name lines.
---@param message string
---@param code any
---@return string
local function kind(message, code)
  return message:gsub("%d+", "#") .. "\0" .. tostring(code or "")
end

--- Whether a server sees what was there as it sees the file: it finds no errors that the file
--- does not have, and some where the file has some.
---@param glance lcursor.EditGlance
---@param buf integer
---@return boolean
local function is_file_to(glance, buf)
  local client, counts, has_some = glance.client, {}, false
  local space = ("lsp.%s.%d"):format(client.name, client.id)
  local severity = vim.diagnostic.severity.ERROR
  for _, each in ipairs(vim.diagnostic.get(buf, { severity = severity })) do
    local name = vim.diagnostic.get_namespace(each.namespace).name .. "."
    if name:find(space .. ".", 1, true) then
      local one = kind(each.message, each.code)
      counts[one], has_some = (counts[one] or 0) + 1, true
    end
  end
  for _, each in ipairs(glance.before) do
    local one = kind(words(each), each.code)
    counts[one] = (counts[one] or 0) - 1
    if counts[one] < 0 then
      return false
    end
  end
  return #glance.before > 0 or not has_some
end

---@param found lsp.Diagnostic[]
---@return lcursor.EditProblem[]
local function problems(found)
  return vim.tbl_map(function(each)
    local row = vim.tbl_get(each, "range", "start", "line")
    return { row = row or 0, text = words(each), code = tostring(each.code or "") }
  end, found)
end

---@param look lcursor.EditLook
---@return boolean whether the file has the text that the edit began with
local function is_as_asked(look)
  local lines = api.nvim_buf_get_lines(look.buf, 0, -1, false)
  return table.concat(lines, "\n") .. "\n" == look.before
end

---@param look lcursor.EditLook
---@return lcursor.EditServer[]
local function judged(look)
  local found = {}
  for _, glance in ipairs(look.glances) do
    local client = glance.client
    if glance.is_outside then
      local key = key_of(client, look.buf)
      odd[key] = (odd[key] or 0) + 1
      log.debug("%s knows no text beside the file", client.name)
    elseif glance.after or glance.heard then
      late[client.id] = 0
      if not glance.is_over and glance.heard and #glance.heard == 0 then
        patience.unsettled(glance.word)
      end
    elseif not glance.is_over then
      late[client.id] = (late[client.id] or 0) + 1
      log.debug("%s said nothing in time about a proposal", client.name)
    end
    if glance.before and glance.is_over and not glance.is_outside then
      if is_file_to(glance, look.buf) then
        local before, after = problems(glance.before), problems(glance.after)
        table.insert(found, { name = client.name, before = before, after = after })
      elseif is_as_asked(look) then
        local key = key_of(client, look.buf)
        odd[key] = (odd[key] or 0) + 1
        log.debug("%s sees a text beside the file otherwise than the file", client.name)
      end
    end
  end
  return found
end

---@param look lcursor.EditLook
---@param may_listen boolean to what is said of an empty list later, to know it the next time
local function close(look, may_listen)
  looks[look] = nil
  if not look.timer:is_closing() then
    look.timer:close()
  end
  for _, glance in ipairs(look.glances) do
    local document = glance.shadow
    local is_told = may_listen and document and not document.is_pulled and not glance.is_outside
    local ms = is_told and patience.listen_ms(glance.word) or 0
    if document and ms > 0 then
      vim.defer_fn(function()
        shadow.close(document)
      end, ms)
    elseif document then
      shadow.close(document)
    end
  end
end

---@param look lcursor.EditLook
---@param glance lcursor.EditGlance
local function open(look, glance)
  glance.shadow = shadow.open(glance.client, look.buf, look.after, function(diagnostics)
    glance.heard = errors(diagnostics)
    glance.is_outside = glance.is_outside or is_outside(diagnostics)
    patience.hear(glance.word, #glance.heard)
  end)
  glance.is_over = not glance.shadow
end

--- Go on with one server, as far as it has said something.
---@param look lcursor.EditLook
---@param glance lcursor.EditGlance
---@return boolean is_sent it was given a text, which takes some milliseconds
local function step(look, glance)
  if glance.is_over or glance.is_outside or glance.client:is_stopped() then
    glance.is_over = true
    return false
  elseif not glance.shadow then
    open(look, glance)
    return true
  end
  local document, heard = glance.shadow, glance.heard
  if not heard then
    return false
  end
  local is_last, is_stale = patience.is_last(glance.word, document.is_pulled)
  if not is_last and not is_stale then
    glance.is_over = patience.is_hopeless(glance.word, look.began_ms)
    return false
  end
  glance.heard = nil
  if is_stale then
    shadow.again(document)
    return true
  end
  if #heard > MOST_ERRORS then
    glance.is_over = true
  elseif glance.after then
    glance.before, glance.is_over = heard, true
  elseif #heard == 0 then
    glance.after, glance.before, glance.is_over = heard, {}, true
  else
    glance.after = heard
    glance.word = patience.word(glance.client)
    shadow.change(document, look.before)
    return true
  end
  return false
end

---@param look lcursor.EditLook
local function go_on(look)
  if not looks[look] then
    return
  elseif not api.nvim_buf_is_loaded(look.buf) then
    close(look, false)
    return look.done({})
  end
  local passed, whole_ms = vim.uv.now() - look.began_ms, M.limits_ms.whole
  local is_waiting, is_sent = false, false
  for _, glance in ipairs(look.glances) do
    is_sent = is_sent or step(look, glance) -- one text at a time: the editor is not held up
    local is_late = not glance.after and not glance.heard and passed > glance.first_ms
    is_waiting = is_waiting or not (glance.is_over or is_late)
    whole_ms = glance.after and not glance.is_over and M.limits_ms.found or whole_ms
  end
  if not is_waiting or passed > whole_ms then
    local servers = judged(look)
    close(look, true)
    look.done(servers)
  end
end

--- Ask about a proposal.
---@param asked lcursor.EditLookAsked
---@param done fun(servers: lcursor.EditServer[]) called once, at once or after five seconds at
--- most; never after `stop`
function M.look(asked, done)
  local buf = direct.buffer(asked.path)
  local clients = buf and clients_of(buf) or {}
  if not buf or #clients == 0 then
    return done({})
  end
  ---@type lcursor.EditLook
  local look = {
    id = asked.id,
    buf = buf,
    before = asked.before,
    after = asked.after,
    glances = {},
    began_ms = vim.uv.now(),
    timer = assert(vim.uv.new_timer()),
    done = done,
  }
  looks[look] = true
  for _, client in ipairs(clients) do
    ---@type lcursor.EditGlance
    local glance = {
      client = client,
      word = patience.word(client),
      first_ms = late[client.id] and M.limits_ms.first or M.limits_ms.cold,
      is_outside = false,
      is_over = false,
    }
    table.insert(look.glances, glance)
  end
  open(look, look.glances[1])
  look.timer:start(
    STEP_MS,
    STEP_MS,
    vim.schedule_wrap(notify.guarded(function()
      go_on(look)
    end))
  )
end

--- An edit is over, or to be stopped: nothing is asked about it any more.
---@param id integer of the edit
function M.stop(id)
  for look in pairs(looks) do
    if look.id == id then
      close(look, false)
    end
  end
end

return M
