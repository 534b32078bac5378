-- Keeps rows of a buffer while it is typed in, from what Neovim says of each change: exact, also
-- where lines are like others. What is touched becomes an area that is known to have had the lines;
-- they are found in it again where they come back. Writes nothing, draws nothing.

local diff = require("lcursor.edit.diff")
local notify = require("lcursor.notify")

local M = {}

local api = vim.api

---@alias lcursor.EditHear fun(buf: integer, what: "changed"|"reloaded"|"gone")

---@class (exact) lcursor.EditBufferWatch
---@field spans lcursor.EditSpan[] in no order; a loop over an array is compiled
---@field places table<lcursor.EditSpan, integer> where each is in it
---@field is_aside boolean spans are left as they are: who changes the text sets them
---@field hear lcursor.EditHear
---@field is_due boolean
---@field count integer lines of the buffer

---@type table<integer, lcursor.EditBufferWatch> by the buffer
local watched = {}

---@param first integer
---@param last integer
---@return lcursor.EditSpan
function M.span(first, last)
  return { first = first, last = last, is_exact = true, head = 0, tail = 0, is_dirty = false }
end

--- Rows `first` to `last` of a buffer have become rows `first` to `now`: move a span accordingly.
--- Pure arithmetic.
---@param span lcursor.EditSpan
---@param first integer
---@param last integer
---@param now integer
function M.move(span, first, last, now)
  local by = now - last
  if span.is_exact then
    local is_between = span.last == span.first
    if is_between then
      -- Nothing but its neighbours says whether it still is where it was meant to be.
      span.is_dirty = span.is_dirty or (first <= span.first and last >= span.first - 1)
    end
    -- With a neighbour that goes, so does the knowledge on which side of it that comes back.
    local is_bare = is_between and by < 0 and first <= span.first and last >= span.first
    if not is_bare and span.last <= first then
      return
    elseif not is_bare and span.first >= last then
      span.first, span.last = span.first + by, span.last + by
      return
    end
    span.is_exact, span.head, span.tail = false, 0, 0
  elseif span.last < first or (span.last == first and by < 0) then
    return
  elseif span.first > last or (span.first == last and by < 0) then
    span.first, span.last = span.first + by, span.last + by
    return
  end
  local from, to = math.min(span.first, first), math.max(span.last, last)
  span.head = span.head + span.first - from
  span.tail = span.tail + to - span.last
  span.first, span.last = from, to + by
  span.is_dirty = true
end

--- A buffer that loses all its lines has one, of which Neovim does not tell.
---@param count integer lines there were
---@param last integer
---@param now integer
---@return integer now as it is
---@return integer count lines there are
function M.told(count, last, now)
  if count + now - last < 1 then
    now = last - count + 1
  end
  return now, count + now - last
end

---@param buf integer
---@param span lcursor.EditSpan
---@param row integer
---@param lines string[]
---@return boolean
local function stands(buf, span, row, lines)
  if row < span.first or row + #lines > span.last then
    return false
  end
  return diff.is_same(api.nvim_buf_get_lines(buf, row, row + #lines, false), lines)
end

--- The row at which lines stand in the area of a span: as far from its beginning and its end as
--- they were. Nearly so is not enough: that may be what somebody has typed.
---@param buf integer
---@param span lcursor.EditSpan
---@param lines string[] at least one
---@return integer?
function M.find(buf, span, lines)
  local row = span.first + span.head
  local is_whole = row + #lines + span.tail == span.last
  return is_whole and stands(buf, span, row, lines) and row or nil
end

--- Set where a span is.
---@param span lcursor.EditSpan
---@param first integer
---@param last integer
---@param is_exact? boolean false: what is written next to it counts as its own
function M.set(span, first, last, is_exact)
  span.first, span.last = first, last
  span.is_exact, span.head, span.tail = is_exact ~= false, 0, 0
  span.is_dirty = false
end

--- The span that a row is in, or next to where that is between lines.
---@generic T: lcursor.EditSpan
---@param spans T[]
---@param row integer
---@return T?
---@return integer? index
function M.at(spans, row)
  local near, index
  for i, span in ipairs(spans) do
    if span.first <= row and row < span.last then
      return span, i
    elseif
      span.first == span.last and (span.first == row + 1 or (not near and span.first == row))
    then
      near, index = span, i
    end
  end
  return near, index
end

--- The same for many. One undo of 500 changes asks this 500 times about 500 spans.
---@param spans lcursor.EditSpan[]
---@param first integer
---@param last integer
---@param now integer
local function move_all(spans, first, last, now)
  local by = now - last
  for i = 1, #spans do
    local span = spans[i]
    local from, to = span.first, span.last
    if from > last + 1 then
      span.first, span.last = from + by, to + by
    elseif to >= first then
      M.move(span, first, last, now)
    end
  end
end

---@param buf integer
local function later(buf)
  local watch = watched[buf]
  if not watch or watch.is_due then
    return
  end
  watch.is_due = true
  vim.schedule(notify.guarded(function()
    if watched[buf] == watch then
      watch.is_due = false
      watch.hear(buf, "changed")
    end
  end))
end

--- Follow a buffer; `hear` is told of changes soon after them, and at once that it was read anew or
--- is gone.
---@param buf integer loaded
---@param hear lcursor.EditHear
function M.watch(buf, hear)
  if watched[buf] then
    return
  end
  local count = api.nvim_buf_line_count(buf)
  ---@type lcursor.EditBufferWatch
  local watch =
    { spans = {}, places = {}, is_aside = false, hear = hear, is_due = false, count = count }
  watched[buf] = watch
  local function over(what)
    return function()
      if watched[buf] == watch then
        watched[buf] = nil
        vim.schedule(notify.guarded(function()
          hear(buf, what)
        end))
      end
      return true
    end
  end
  local follow = notify.guarded(function(first, last, now)
    now, watch.count = M.told(watch.count, last, now)
    move_all(watch.spans, first, last, now)
    later(buf) -- also where there is no span: an undo may bring back what was nowhere
  end)
  api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last, now)
      if watched[buf] ~= watch then
        return true
      end
      follow(first, last, now)
    end,
    on_reload = over("reloaded"),
    on_detach = over("gone"),
  })
end

---@param buf integer watched
---@param span lcursor.EditSpan
function M.keep(buf, span)
  local watch = watched[buf]
  if watch and not watch.places[span] then
    table.insert(watch.spans, span)
    watch.places[span] = #watch.spans
  end
end

--- Follow it no longer.
---@param buf integer
---@param span lcursor.EditSpan
function M.forget(buf, span)
  local watch = watched[buf]
  local place = watch and watch.places[span]
  if watch and place then
    local last = table.remove(watch.spans)
    watch.places[span] = nil
    if last ~= span then
      watch.spans[place], watch.places[last] = last, place
    end
  end
end

--- Change the text while some spans are not followed: `fn` sets them anew itself, since it knows
--- better. Neovim tells of each of many changes, and to move all spans for each takes long.
---@param buf integer
---@param spans lcursor.EditSpan[]
---@param fn fun()
function M.aside(buf, spans, fn)
  local watch = watched[buf]
  if not watch or watch.is_aside then
    return fn()
  end
  local kept = {}
  for _, span in ipairs(spans) do
    if watch.places[span] then
      table.insert(kept, span)
      M.forget(buf, span)
    end
  end
  watch.is_aside = true
  local ok, err = pcall(fn) -- it writes into a buffer, which others listen to
  watch.is_aside = false
  for _, span in ipairs(kept) do
    M.keep(buf, span)
  end
  if not ok then
    error(err, 0)
  end
end

return M
