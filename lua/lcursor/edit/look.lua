-- Asks the language servers of a file what they say of a text before it is shown: of the proposal,
-- and, where that has errors, of the text that it was made from. Best effort and bounded: who is
-- slow, or sees a text beside the file otherwise than the file, says nothing. Changes nothing.

local config = require("lcursor.config")
local direct = require("lcursor.edit.direct")
local log = require("lcursor.log")
local notify = require("lcursor.notify")
local reader = require("lcursor.edit.reader")
local shadow = require("lcursor.edit.shadow")

local M = {}

local api = vim.api
local STEP_MS = 40
local FIRST_MS = 1500 -- who has said nothing by then is not waited for
local COLD_MS = 2500 -- the same, the first time: some load a project of their own for it
local WHOLE_MS = 3000
local QUIET_MS = 250 -- without more, who says things by himself has said all
local MOST_LATE = 3 -- looks in a row without an answer, after which a server is left alone
local MOST_ODD = 2 -- looks after which it is not asked about a file that it does not know
local MOST_ERRORS = 200

---@class (exact) lcursor.EditGlance one server that is asked
---@field client vim.lsp.Client
---@field shadow? lcursor.EditShadow nil as long as it was not asked
---@field heard? lsp.Diagnostic[] errors of the text that it has now
---@field heard_ms integer
---@field after? lsp.Diagnostic[] errors of the proposal
---@field before? lsp.Diagnostic[] errors of what was there
---@field first_ms integer until when it has to have said something
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
    local client, is_heard = glance.client, glance.after ~= nil
    if is_heard then
      late[client.id] = 0
    elseif not glance.is_over then
      late[client.id] = (late[client.id] or 0) + 1
      log.debug("%s said nothing in time about a proposal", client.name)
    end
    if glance.is_over and glance.before then
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
local function close(look)
  looks[look] = nil
  if not look.timer:is_closing() then
    look.timer:close()
  end
  for _, glance in ipairs(look.glances) do
    if glance.shadow then
      shadow.close(glance.shadow)
    end
  end
end

---@param look lcursor.EditLook
---@param glance lcursor.EditGlance
local function open(look, glance)
  glance.shadow = shadow.open(glance.client, look.buf, look.after, function(diagnostics)
    glance.heard, glance.heard_ms = errors(diagnostics), vim.uv.now()
  end)
  glance.is_over = not glance.shadow
end

--- Go on with one server, as far as it has said something.
---@param look lcursor.EditLook
---@param glance lcursor.EditGlance
---@param now integer
---@return boolean is_sent it was given a text, which takes some milliseconds
local function step(look, glance, now)
  if glance.is_over or glance.client:is_stopped() then
    glance.is_over = true
    return false
  elseif not glance.shadow then
    open(look, glance)
    return true
  end
  local document, heard = glance.shadow, glance.heard
  if not heard or (not document.is_pulled and now - glance.heard_ms < QUIET_MS) then
    return false
  end
  glance.heard = nil
  if #heard > MOST_ERRORS then
    glance.is_over = true
  elseif glance.after then
    glance.before, glance.is_over = heard, true
  elseif #heard == 0 then
    glance.after, glance.before, glance.is_over = heard, {}, true
  else
    glance.after = heard
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
    close(look)
    return look.done({})
  end
  local now, is_waiting, is_sent = vim.uv.now(), false, false
  local passed = now - look.began_ms
  for _, glance in ipairs(look.glances) do
    is_sent = is_sent or step(look, glance, now) -- one text at a time: the editor is not held up
    local is_late = not glance.after and not glance.heard and passed > glance.first_ms
    is_waiting = is_waiting or not (glance.is_over or is_late)
  end
  if not is_waiting or passed > WHOLE_MS then
    close(look)
    look.done(judged(look))
  end
end

--- Ask about a proposal.
---@param asked lcursor.EditLookAsked
---@param done fun(servers: lcursor.EditServer[]) called once, at once or after three seconds at
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
      heard_ms = 0,
      first_ms = late[client.id] and FIRST_MS or COLD_MS,
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
      close(look)
    end
  end
end

return M
