-- Row ranges that follow the text of a buffer, by arithmetic on Neovim's report of each change.
-- Extmarks do not suffice here: redo does not restore them, and one at the edge of replaced lines
-- ends up on the wrong side. Nor does a diff of the buffer and another text: of equal lines it does
-- not tell which one was deleted, and it joins hunks that touch. A range whose lines were touched
-- becomes an area that held them; `find` checks whether they are back in it. Writes nothing.

local diff = require("lcursor.text.diff")
local notify = require("lcursor.ui.notify")

local M = {}

local api = vim.api

---@class (exact) lcursor.EditWatch
---@field moved fun(first: integer, last: integer, now: integer) rows first..last became first..now
---@field changed fun() soon after a change
---@field detached fun() after the buffer was read again or unloaded

---@type table<integer, lcursor.EditWatch> by buffer
local watched = {}

--- Set where a range is.
---@param span lcursor.EditSpan
---@param first integer
---@param last integer
---@param is_exact? boolean false: lines written next to it count as its own
function M.set(span, first, last, is_exact)
  span.first, span.last = first, last
  span.is_exact, span.head, span.tail = is_exact ~= false, 0, 0
  span.is_dirty = false
end

--- Move a range after rows `first` to `last` of the buffer became rows `first` to `now`.
---@param span lcursor.EditSpan
---@param first integer
---@param last integer
---@param now integer
function M.move(span, first, last, now)
  local by = now - last
  if span.first > last + 1 then
    span.first, span.last = span.first + by, span.last + by
    return
  elseif span.last < first then
    return
  end
  if span.is_exact then
    local is_empty = span.last == span.first
    if is_empty then
      -- Only the lines around it show whether an insertion is still in its place.
      span.is_dirty = span.is_dirty or (first <= span.first and last >= span.first - 1)
    end
    -- A deleted neighbor may come back on either side.
    local is_unsure = is_empty and by < 0 and first <= span.first and last >= span.first
    if not is_unsure and span.last <= first then
      return
    elseif not is_unsure and span.first >= last then
      span.first, span.last = span.first + by, span.last + by
      return
    end
    span.is_exact, span.head, span.tail = false, 0, 0
  elseif span.last == first and by < 0 then
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

--- Correct what Neovim reports when a buffer loses all its lines: one empty line stays.
---@param count integer lines before the change
---@param last integer
---@param now integer
---@return integer now
---@return integer count lines after the change
function M.corrected(count, last, now)
  if count + now - last < 1 then
    now = last - count + 1
  end
  return now, count + now - last
end

--- Return the row at which lines stand in a range, as far from its ends as they were.
---@param buf integer
---@param span lcursor.EditSpan
---@param lines string[] at least one
---@return integer?
function M.find(buf, span, lines)
  local row = span.first + span.head
  local last = row + #lines
  if last + span.tail ~= span.last or row < span.first then
    return nil
  end
  return diff.is_same(api.nvim_buf_get_lines(buf, row, last, false), lines) and row or nil
end

--- Return the range that a row is in, or next to where that range is empty.
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

--- Report soon that a buffer may have changed.
---@param buf integer
function M.report(buf)
  local watch = watched[buf]
  vim.schedule(notify.guarded(function()
    if watch and watched[buf] == watch then
      watch.changed()
    end
  end))
end

--- Follow the changes of a buffer.
---@param buf integer loaded
---@param watch lcursor.EditWatch
function M.watch(buf, watch)
  if watched[buf] then
    return
  end
  watched[buf] = watch
  local count, is_due = api.nvim_buf_line_count(buf), false
  local function report()
    is_due = false
    if watched[buf] == watch then
      watch.changed()
    end
  end
  local function follow(first, last, now)
    now, count = M.corrected(count, last, now)
    watch.moved(first, last, now)
    if not is_due then
      is_due = true
      vim.schedule(notify.guarded(report))
    end
  end
  local function detach()
    if watched[buf] == watch then
      watched[buf] = nil
      vim.schedule(notify.guarded(watch.detached))
    end
    return true
  end
  local guarded = notify.guarded(follow)
  api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last, now)
      if watched[buf] ~= watch then
        return true
      end
      guarded(first, last, now)
    end,
    on_reload = detach,
    on_detach = detach,
  })
end

return M
