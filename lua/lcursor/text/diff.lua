-- Pure functions of lines: which differ, which words of them, and where rows of one text are in
-- another. A change is `{ first_row, last_row, old, new }`, as on the wire.

local text = require("lcursor.text")

local M = {}

local MAX_LINEMATCH = 60 -- lines: aligning more takes seconds
local MAX_WORDS_BYTES = 1000 -- of a longer line only the ends are compared
local MIN_SIMILAR = 0.3 -- share of a line that must stay for its words to be worth showing

local function joined(lines, first, last)
  if last <= first then
    return ""
  end
  local found = {}
  for row = first, last - 1 do
    local line = lines[row + 1]
    found[row - first + 1] = line:find("\n", 1, true) and line:gsub("\n", "\0") or line
  end
  return table.concat(found, "\n") .. "\n"
end

local is_similar ---@type fun(old: string, new: string): boolean

--- Merge blocks that touch, except pairs of similar lines: all old lines are shown first, then all
--- new ones.
---@return lcursor.EditBlock[]
local function merged(old, new, blocks)
  local found, was_pair = {}, false
  for _, block in ipairs(blocks) do
    local before = found[#found]
    local is_pair = block.last - block.first == block.new_last - block.new_first
      and is_similar(old[block.first + 1], new[block.new_first + 1])
    local is_next = before
      and before.last == block.first
      and before.new_last == block.new_first
      and not is_pair
      and not was_pair
    if is_next then
      before.last, before.new_last = block.last, block.new_last
    else
      table.insert(found, block)
      was_pair = is_pair
    end
  end
  return found
end

--- Return how many lines are equal at the start and at the end of two texts.
---@param old string[]
---@param new string[]
---@return integer head
---@return integer tail
function M.equal_ends(old, new)
  local head, most = 0, math.min(#old, #new)
  while head < most and old[head + 1] == new[head + 1] do
    head = head + 1
  end
  local tail = 0
  while tail < most - head and old[#old - tail] == new[#new - tail] do
    tail = tail + 1
  end
  return head, tail
end

--- Return the rows that differ, in order.
---@param old string[]
---@param new string[]
---@param linematch? boolean pair each line of a block with the most similar one
---@return lcursor.EditBlock[]
function M.blocks(old, new, linematch)
  local head, tail = M.equal_ends(old, new)
  if #old == #new and head == #old then
    return {}
  end
  local rest_old, rest_new = #old - head - tail, #new - head - tail
  if rest_old == 0 or rest_new == 0 or (rest_old == 1 and rest_new == 1) then
    return {
      { first = head, last = #old - tail, new_first = head, new_last = #new - tail },
    }
  end
  local opts = { result_type = "indices", algorithm = "histogram" }
  if linematch then
    opts.linematch = MAX_LINEMATCH
  end
  ---@type integer[][]
  local found = text.diff(joined(old, head, #old - tail), joined(new, head, #new - tail), opts)
  local blocks = {}
  for _, indices in ipairs(found) do
    local at, count, new_at, new_count = unpack(indices)
    -- A count of 0 names the line before the place.
    local first = head + (count == 0 and at or at - 1)
    local new_first = head + (new_count == 0 and new_at or new_at - 1)
    table.insert(blocks, {
      first = first,
      last = first + count,
      new_first = new_first,
      new_last = new_first + new_count,
    })
  end
  return linematch and merged(old, new, blocks) or blocks
end

--- Return a text with changes made in it; nil where their old lines are not there.
---@param lines string[]
---@param changes lcursor.EditChange[] in the order of their rows
---@return string[]?
function M.apply(lines, changes)
  local out, row = {}, 0
  for _, change in ipairs(changes) do
    if change.first_row < row or change.last_row > #lines then
      return nil
    elseif change.last_row - change.first_row ~= #change.old then
      return nil
    end
    for i = row + 1, change.first_row do
      table.insert(out, lines[i])
    end
    for i, line in ipairs(change.old) do
      if lines[change.first_row + i] ~= line then
        return nil
      end
    end
    vim.list_extend(out, change.new)
    row = change.last_row
  end
  for i = row + 1, #lines do
    table.insert(out, lines[i])
  end
  return out
end

--- Return a function that finds rows of one text in another. They must be together with the line
--- above and the line below in both, or the place is not sure.
---@param old string[]
---@param new string[]
---@param may_grow? boolean lines may have been added at the ends of the file
---@return fun(first: integer, last: integer): integer? row of the other text
function M.finder(old, new, may_grow)
  local blocks = M.blocks(old, new)
  return function(first, last)
    local from, to = math.max(first - 1, 0), math.min(last + 1, #old)
    local by = 0
    for _, block in ipairs(blocks) do
      if block.first >= to and block.first > from then
        break
      elseif block.last <= from and block.first < to then
        by = block.new_last - block.last
      else
        return nil
      end
    end
    -- At an end of the file there is no line to go by: it must be an end of the other as well.
    local is_top, is_end = first + by == 0, last + by == #new
    local is_moved = (first == 0 and not is_top) or (last == #old and not is_end)
    if is_moved and not may_grow then
      return nil
    end
    return first + by
  end
end

---@return string[] words, and single characters between them
local function words_of(line)
  local words, at = {}, 1
  while at <= #line do
    local word = line:match("^[%w_]+", at)
      or line:match("^%s+", at)
      or line:match("^[\192-\255][\128-\191]*", at)
      or line:sub(at, at)
    table.insert(words, word)
    at = at + #word
  end
  return words
end

---@param words string[]
---@return integer[] byte at which each begins, and that after the last
local function starts_of(words)
  local starts, at = {}, 0
  for i, word in ipairs(words) do
    starts[i] = at
    at = at + #word
  end
  starts[#words + 1] = at
  return starts
end

--- Return how many bytes two lines begin and end with alike, in whole characters.
---@return integer head
---@return integer tail
function M.ends(old, new)
  local most, head, tail = math.min(#old, #new), 0, 0
  while head < most and old:byte(head + 1) == new:byte(head + 1) do
    head = head + 1
  end
  while head > 0 and (old:find("^[\128-\191]", head + 1) or new:find("^[\128-\191]", head + 1)) do
    head = head - 1
  end
  while tail < most - head and old:byte(#old - tail) == new:byte(#new - tail) do
    tail = tail + 1
  end
  while tail > 0 and old:find("^[\128-\191]", #old - tail + 1) do
    tail = tail - 1
  end
  return head, tail
end

---@alias lcursor.EditBytes integer[] first byte and the one after the last

--- Return which bytes of two lines differ, word by word; nothing where nearly all do.
---@return lcursor.EditBytes[] of the old
---@return lcursor.EditBytes[] of the new
function M.words(old, new)
  if old == new then
    return {}, {}
  end
  if #old > MAX_WORDS_BYTES or #new > MAX_WORDS_BYTES then
    local head, tail = M.ends(old, new)
    return { { head, #old - tail } }, { { head, #new - tail } }
  end
  local old_words, new_words = words_of(old), words_of(new)
  local old_at, new_at = starts_of(old_words), starts_of(new_words)
  local old_spans, new_spans = {}, {}
  local same = #old
  for _, block in ipairs(M.blocks(old_words, new_words)) do
    if block.last > block.first then
      local span = { old_at[block.first + 1], old_at[block.last + 1] }
      same = same - (span[2] - span[1])
      table.insert(old_spans, span)
    end
    if block.new_last > block.new_first then
      table.insert(new_spans, { new_at[block.new_first + 1], new_at[block.new_last + 1] })
    end
  end
  if same < MIN_SIMILAR * math.max(#old, #new) then
    return {}, {}
  end
  return old_spans, new_spans
end

--- Whether one line could have become the other.
is_similar = function(old, new)
  local head, tail = M.ends(old, new)
  if head + tail >= MIN_SIMILAR * math.max(#old, #new) then
    return true
  end
  local spans, new_spans = M.words(old, new)
  return #spans + #new_spans > 0
end

--- Return the digest of lines, as lcursor/changes/records.py does.
---@param lines string[]
function M.digest(lines)
  return vim.fn.sha256(table.concat(lines, "\n"))
end

---@param one string[]
---@param other string[]
function M.is_same(one, other)
  if #one ~= #other then
    return false
  end
  for i, line in ipairs(one) do
    if line ~= other[i] then
      return false
    end
  end
  return true
end

return M
