-- Collects text of other files for later completions, and sends it as `context.chunk`. Nothing is
-- read at a key: keys only restart a timer. What requests never read is not read here either. The
-- Python host decides what the model sees.

local by_buffer = require("lcursor.editor.by_buffer")
local config = require("lcursor.config")
local context = require("lcursor.editor.context")
local files = require("lcursor.editor.files")
local gate = require("lcursor.complete.gate")
local imports = require("lcursor.complete.imports")
local notify = require("lcursor.ui.notify")
local privacy = require("lcursor.editor.privacy")
local rpc = require("lcursor.host.rpc")
local text = require("lcursor.text")
local timers = require("lcursor.editor.timer")

local M = {}

local api = vim.api

local AROUND_LINES, MIN_LINES = 32, 3
local MAX_BYTES = 8 * 1024
local MAX_FILE_BYTES = 64 * 1024
local TOP_LINES = 80 -- in which imports are searched
local MAX_IMPORTS, MAX_PATHS = 8, 300
local REST_MS, ENTER_MS = 1000, 100

---@class lcursor.Gathered what was sent of a buffer
---@field picked? integer row of its last changes
---@field imported? string the imports that were sent

---@type table<integer, lcursor.Gathered>
local known = by_buffer.new()

---@return boolean whether prompts contain text of other files
local function is_on()
  return config.get().completion.files_tokens ~= 0
end

---@return lcursor.Gathered
local function of(buf)
  known[buf] = known[buf] or {}
  return known[buf]
end

--- Run a function if the buffer may be read, maybe after git has answered.
local function when_allowed(buf, fn)
  if not is_on() or not api.nvim_buf_is_loaded(buf) then
    return
  end
  local code = gate.buffer_block_reason(buf, function()
    when_allowed(buf, fn)
  end)
  if not code then
    fn()
  end
end

---@param kind string one of the wire's kinds
---@param symbols? string[]
local function send(kind, path, name, first_row, chunk, symbols)
  if privacy.has_private_key(chunk) then
    return
  end
  rpc.notify("context.chunk", {
    path = path,
    name = name,
    first_row = first_row,
    text = chunk,
    kind = kind,
    symbols = symbols or {},
  })
end

---@param last integer exclusive
---@return string? nil if the lines are too long to be code
local function lines_of(buf, first, last)
  local bytes = api.nvim_buf_get_offset(buf, last) - api.nvim_buf_get_offset(buf, first)
  return bytes <= MAX_BYTES and text.join(api.nvim_buf_get_lines(buf, first, last, false)) or nil
end

--- Send the lines around a row.
---@param kind "visited"|"edited"
local function pick(buf, row, kind)
  when_allowed(buf, function()
    local count = api.nvim_buf_line_count(buf)
    local first = math.max(0, math.min(row, count - 1) - AROUND_LINES)
    local last = math.min(count, first + 2 * AROUND_LINES)
    local chunk, location = lines_of(buf, first, last), context.location(buf)
    if chunk then
      send(kind, location.path, location.name, first, chunk)
    end
  end)
end

local function send_file(path, root, symbols)
  local name = vim.fs.relpath(root, path) or vim.fs.basename(path)
  ---@param content? string
  local function give(content)
    if content then
      send("import", path, name, 0, content, symbols)
    end
  end
  local buf = context.buffer(path)
  if buf then
    return when_allowed(buf, function()
      local last = api.nvim_buf_line_count(buf)
      while last > 0 and api.nvim_buf_get_offset(buf, last) > 8 * MAX_BYTES do
        last = math.floor(last / 2)
      end
      give(text.join(api.nvim_buf_get_lines(buf, 0, last, false)))
    end)
  end
  privacy.ask_file(path, config.get().privacy.exclude, function(is_fine)
    if is_fine then
      files.read(path, MAX_FILE_BYTES, notify.guarded(give))
    end
  end)
end

--- Send the files that a buffer imports, if its imports have changed.
local function follow_imports(buf)
  when_allowed(buf, function()
    local top = lines_of(buf, 0, math.min(TOP_LINES, api.nvim_buf_line_count(buf)))
    local location, own = context.location(buf), of(buf)
    if not top or location.path == "" then
      return
    end
    local found =
      imports.of(top, vim.bo[buf].filetype, vim.fs.dirname(location.path), location.root)
    local key = vim.json.encode(found)
    if own.imported == key then
      return
    end
    own.imported = key
    local sent, left = 0, MAX_PATHS
    local seen = { [location.path] = true }
    local function step(number)
      local import = found[number]
      if not import or sent == MAX_IMPORTS or left < #import.paths then
        return
      end
      left = left - #import.paths
      files.first(import.paths, function(path)
        -- Not through a link that leads out of the project.
        if path and not seen[path] and vim.startswith(path, location.root .. "/") then
          seen[path], sent = true, sent + 1
          vim.schedule(notify.guarded(function()
            send_file(path, location.root, import.symbols)
          end))
        end
        step(number + 1)
      end)
    end
    step(1)
  end)
end

--- Send what is worth keeping of the current buffer, after a pause in typing.
function M.rest()
  local buf = api.nvim_get_current_buf()
  when_allowed(buf, function()
    local own = of(buf)
    local row = api.nvim_buf_get_mark(buf, ".")[1] - 1 -- of the last change
    if own.picked and row >= 0 and math.abs(row - own.picked) > AROUND_LINES then
      pick(buf, own.picked, "edited") -- the place of the current changes is in the prompt
      own.picked = nil
    end
    own.picked = own.picked or (row >= 0 and row or nil)
    follow_imports(buf)
  end)
end

local function enter(buf)
  if buf ~= api.nvim_get_current_buf() then
    return
  end
  pick(buf, api.nvim_win_get_cursor(0)[1] - 1, "visited")
  M.rest()
end

local rest_later = timers.new(M.rest)

--- Send a new host the buffers that were used last, the current one at the end.
local function send_all()
  for _, own in pairs(known) do
    own.imported = nil
  end
  local infos = vim.fn.getbufinfo({ buflisted = 1, bufloaded = 1 })
  table.sort(infos, function(one, other)
    return one.lastused < other.lastused
  end)
  local current = api.nvim_get_current_buf()
  for _, info in ipairs(vim.list_slice(infos, math.max(1, #infos - MAX_IMPORTS))) do
    if info.bufnr ~= current then
      vim.schedule(notify.guarded(function()
        pick(info.bufnr, info.lnum - 1, "visited")
      end))
    end
  end
  vim.schedule(notify.guarded(function()
    enter(current)
  end))
end

function M.start()
  local on = notify.autocmds("gather")
  on({ "TextChanged", "TextChangedI" }, function()
    rest_later(REST_MS)
  end)
  on("BufEnter", function(event)
    notify.later(ENTER_MS, function()
      enter(event.buf)
    end)
  end)
  on({ "BufLeave", "BufWritePost" }, function(event)
    if event.buf ~= api.nvim_get_current_buf() then
      return -- `:wall` writes buffers that are not visible
    end
    local row = api.nvim_win_get_cursor(0)[1] - 1
    local is_written = event.event == "BufWritePost"
    vim.schedule(notify.guarded(function()
      if not api.nvim_buf_is_valid(event.buf) then
        return
      elseif is_written then
        local written = vim.json.encode(context.location(event.buf).path)
        for _, own in pairs(known) do
          if own.imported and own.imported:find(written, 1, true) then
            own.imported = nil -- it may have changed
          end
        end
      end
      pick(event.buf, row, is_written and "edited" or "visited")
    end))
  end)
  on("TextYankPost", function(event)
    local yanked = vim.v.event
    local lines = vim.list_slice(yanked.regcontents, 1, 2 * AROUND_LINES)
    if yanked.operator ~= "y" or #lines < MIN_LINES then
      return
    end
    local row = api.nvim_buf_get_mark(event.buf, "[")[1] - 1
    vim.schedule(notify.guarded(function()
      when_allowed(event.buf, function()
        local chunk, location = text.join(lines), context.location(event.buf)
        if #chunk <= MAX_BYTES then
          send("yanked", location.path, location.name, row, chunk)
        end
      end)
    end))
  end)
  on("User", function(event)
    if event.data.state == "ready" then
      send_all()
    end
  end, { pattern = "LCursorHostState" })
end

return M
