-- Where the rows of a base are in a buffer that went on since: by what was typed, where that was
-- heard; else by a comparison with the base, where that can be had. Says nothing rather than guess.

local anchor = require("lcursor.edit.anchor")
local diff = require("lcursor.edit.diff")
local notify = require("lcursor.notify")
local texts = require("lcursor.edit.texts")

local M = {}

local api = vim.api
local MOST_EVENTS = 1000
local LONG_LINES = 5000 -- of which the digest takes long
local MOST_BYTES = 8 * 1024 * 1024 -- of a file that is read to compare with it

---@class (exact) lcursor.EditTrace
---@field tick integer
---@field lines string[]
---@field events integer[][] first, last, now
---@field is_whole boolean false where something was not heard
---@field users integer

---@type table<integer, lcursor.EditTrace[]> by the buffer
local traces = {}

---@param buf integer
---@param trace lcursor.EditTrace
---@return boolean whether it is still wanted
local function is_kept(buf, trace)
  return traces[buf] ~= nil and vim.list_contains(traces[buf], trace)
end

--- Keep the text of a buffer as it is now and hear what happens to it, until `forget`. Whoever asks
--- for an edit calls this when it sends the lines.
---@param buf integer
---@return integer tick
function M.remember(buf)
  local tick = api.nvim_buf_get_changedtick(buf)
  traces[buf] = traces[buf] or {}
  for _, trace in ipairs(traces[buf]) do
    if trace.tick == tick then
      trace.users = trace.users + 1
      return tick
    end
  end
  ---@type lcursor.EditTrace
  local trace = {
    tick = tick,
    lines = texts.lines(buf),
    events = {},
    is_whole = true,
    users = 1,
  }
  table.insert(traces[buf], trace)
  local count = #trace.lines
  local function lost()
    trace.is_whole, trace.events = false, {}
    return true
  end
  local follow = notify.guarded(function(first, last, now)
    now, count = anchor.told(count, last, now)
    local events = trace.events
    local before = events[#events]
    local is_again = before
      and before[1] == first
      and before[3] == last
      and last == first + 1
      and now == last
    if not is_again then -- else the same line once more
      events[#events + 1] = { first, last, now }
    end
    if #events > MOST_EVENTS then
      lost()
    end
  end)
  api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last, now)
      if not trace.is_whole or not is_kept(buf, trace) then
        return true
      end
      follow(first, last, now)
    end,
    on_reload = lost,
    on_detach = lost,
  })
  return tick
end

--- It is not needed any more.
---@param buf integer
---@param tick integer as `remember` gave it
function M.forget(buf, tick)
  local kept = {}
  for _, trace in ipairs(traces[buf] or {}) do
    trace.users = trace.users - (trace.tick == tick and 1 or 0)
    if trace.users > 0 then
      table.insert(kept, trace)
    end
  end
  traces[buf] = #kept > 0 and kept or nil
end

---@param trace lcursor.EditTrace
---@return fun(first: integer, last: integer): integer?
local function by_events(trace)
  return function(first, last)
    local span = anchor.span(first, last)
    for _, event in ipairs(trace.events) do
      anchor.move(span, event[1], event[2], event[3])
      if not span.is_exact then
        return nil
      end
    end
    return span.first
  end
end

--- Do in pieces what `finder` would do at once for a long buffer.
---@param buf integer
---@param file lcursor.EditFile
---@return boolean whether `done` comes later
---@param done fun()
function M.prepare(buf, file, done)
  if api.nvim_buf_line_count(buf) < LONG_LINES then
    return false
  end
  for _, trace in ipairs(traces[buf] or {}) do
    if trace.tick == file.tick then
      return false
    end
  end
  texts.prepare(buf, done)
  return true
end

---@param path string
---@return string[]? lines of a file as a buffer would have them
local function read(path)
  local stat = vim.uv.fs_stat(path)
  if not stat or stat.type ~= "file" or stat.size > MOST_BYTES then
    return nil
  end
  local file = io.open(path, "rb")
  local text = file and file:read("*a")
  if file then
    file:close()
  end
  if not text then
    return nil
  end
  text = text:gsub("^\239\187\191", "")
  local bare, breaks = text:gsub("\r\n", "\n")
  local _, all = text:gsub("\n", "")
  text = (breaks == all and bare or text):gsub("\n$", "")
  return vim.split(text, "\n", { plain = true })
end

--- The same by a comparison, which is made where it is asked for.
---@param trace lcursor.EditTrace
---@param buf integer
---@return fun(first: integer, last: integer): integer?
local function by_text(trace, buf)
  local find
  return function(first, last)
    find = find or diff.finder(trace.lines, texts.lines(buf))
    return find(first, last)
  end
end

---@param first integer
---@return integer
local function same(first)
  return first
end

--- What finds rows of the base of a file in its buffer. Nil where the base is not known: then
--- nothing can be said of any row.
---@param buf integer
---@param file lcursor.EditFile
---@return (fun(first: integer, last: integer): integer?)? find
---@return string[]? base its lines
function M.finder(buf, file)
  for _, trace in ipairs(traces[buf] or {}) do
    if trace.tick == file.tick then
      if api.nvim_buf_get_changedtick(buf) == trace.tick then
        return same, trace.lines
      end
      local one, other = by_events(trace), by_text(trace, buf)
      local function either(first, last)
        return one(first, last) or other(first, last)
      end
      return trace.is_whole and either or other, trace.lines
    end
  end
  local base = file.base ~= "" and file.base or diff.digest({})
  if texts.digest(buf) == base then
    return same, texts.lines(buf)
  end
  local disk = read(file.path)
  if disk and diff.digest(disk) == base then
    return diff.finder(disk, texts.lines(buf)), disk
  end
end

return M
