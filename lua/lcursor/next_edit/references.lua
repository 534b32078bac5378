-- Asks language servers for the references of functions whose parameters were changed: they know
-- the calls in other files, and those of methods. Servers answer late, wrongly or never: nothing
-- here waits.

local notify = require("lcursor.ui.notify")
local recorder = require("lcursor.next_edit.recorder")

local M = {}

local api = vim.api
local METHOD = "textDocument/references"
local MAX_FOUND = 500

M.limit_ms = 1000 -- until other files are asked about without an answer
M.late_ms = 5000 -- after which an answer is ignored

---@class (exact) lcursor.NextFunction as on the wire
---@field path string
---@field row integer
---@field column integer
---@field name string

---@class (exact) lcursor.NextReferences of a function
---@field path string
---@field name string
---@field order integer of the last edit before the server was asked
---@field asked_ms integer when it was
---@field encoding? string nil until there is an answer
---@field found { path: string, row: integer, character: integer }[]

---@type table<string, lcursor.NextReferences> by path and name of the function
local known = {}

---@param it lcursor.NextFunction
---@return string
local function key_of(it)
  return it.path .. "\n" .. it.name
end

--- Return the references for a request.
---@param edits lcursor.NextEdit[] of the request
---@return table[] as on the wire
function M.known(edits)
  local found = {}
  for _, it in pairs(known) do
    if it.encoding and #it.found > 0 then
      local before = vim.iter(edits):fold(0, function(count, edit)
        return count + (edit.order <= it.order and 1 or 0)
      end)
      table.insert(found, {
        path = it.path,
        name = it.name,
        encoding = it.encoding,
        edits = before,
        found = it.found,
      })
    end
  end
  return found
end

--- Forget all references: the edits that they depend on were undone, or are unknown.
function M.forget()
  known = {}
end

--- Read an answer; what a server answers may be nonsense.
---@param result any
---@return { path: string, row: integer, character: integer }[]
local function read(result)
  local found = {}
  for i = 1, math.min(#result, MAX_FOUND) do
    local start, path = result[i].range.start, vim.uri_to_fname(result[i].uri)
    table.insert(found, { path = path, row = start.line, character = start.character })
  end
  return found
end

--- Ask for the references of a function, and call a function when they are there.
---@param it lcursor.NextFunction
---@param client vim.lsp.Client
---@param buf integer
---@param on_answer fun()
local function request(it, client, buf, on_answer)
  local encoding, line =
    client.offset_encoding, api.nvim_buf_get_lines(buf, it.row, it.row + 1, false)[1]
  local position = {
    line = it.row,
    character = vim.str_utfindex(line or "", encoding, it.column, false),
  }
  local last = recorder.edits()
  local order, asked_ms = last[#last] and last[#last].order or 0, vim.uv.now()
  local own = { path = it.path, name = it.name, found = {}, order = order, asked_ms = asked_ms }
  known[key_of(it)] = own
  client:request(METHOD, {
    textDocument = { uri = vim.uri_from_bufnr(buf) },
    position = position,
    context = { includeDeclaration = false },
  }, function(err, result)
    if known[key_of(it)] ~= own then
      return
    elseif err or vim.uv.now() - asked_ms > M.late_ms then
      known[key_of(it)] = nil -- after the next edit the server is asked again
      return
    end
    local ok, found = pcall(read, result)
    own.found = ok and found or {}
    own.encoding = encoding
    on_answer()
  end, buf)
end

--- Ask for the references of functions that are not known yet, and call a function once or twice:
--- after a while at the latest, and when all are there.
---@param functions lcursor.NextFunction[] of an answer
---@param callback fun()
---@return boolean asked
function M.ask(functions, callback)
  local changed_ms, open, edits = {}, 0, recorder.edits()
  local last = edits[#edits]
  for _, it in ipairs(functions) do
    local is_last = last and last.path == it.path and last.row == it.row
    changed_ms[key_of(it)] = is_last and last.at_ms or 0
  end
  for key, own in pairs(known) do
    if not changed_ms[key] or changed_ms[key] > own.asked_ms then
      known[key] = nil -- the function is unchanged again, or was changed again
    end
  end
  local timer ---@type uv.uv_timer_t?
  local function on_answer()
    open = open - 1
    if open == 0 then
      if timer and not timer:is_closing() then
        timer:close()
      end
      callback()
    end
  end
  for _, it in ipairs(functions) do
    local buf = vim.fn.bufnr(it.path)
    local client = buf > 0 and vim.lsp.get_clients({ bufnr = buf, method = METHOD })[1]
    if client and not known[key_of(it)] and not recorder.is_changed(buf) then
      open = open + 1
      request(it, client, buf, on_answer)
    end
  end
  if open > 0 then
    timer = vim.defer_fn(notify.guarded(callback), M.limit_ms)
  end
  return open > 0
end

return M
