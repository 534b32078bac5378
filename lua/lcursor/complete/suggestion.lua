-- A suggestion: where it is anchored, its text, and whether the buffer still matches it. Only reads
-- the buffer.

local text = require("lcursor.text")

local M = {}

local api = vim.api
local MAX_ROWS = 200 -- no suggestion is longer

---@param from integer
---@param to integer -1 is the end of the line
local function part(buf, row, from, to)
  return api.nvim_buf_get_text(buf, row, from, row, to, {})[1]
end

--- Return an empty suggestion, anchored at a position of the current buffer.
---@return lcursor.Suggestion
function M.new(id, buf, row, col, single_line)
  return {
    id = id,
    buf = buf,
    row = row,
    col = col,
    head = part(buf, row, 0, col),
    tail = part(buf, row, col, -1),
    line_count = api.nvim_buf_line_count(buf),
    single_line = single_line,
    text = "",
    is_done = false,
    is_announced = false,
  }
end

--- Return what was typed since the anchor; nil if anything else changed.
---@return string?
local function typed(s)
  if api.nvim_get_current_buf() ~= s.buf then
    return nil
  end
  local cursor = api.nvim_win_get_cursor(0)
  local row, col = cursor[1] - 1, cursor[2]
  local rows = row - s.row
  if rows < 0 or rows > MAX_ROWS or (rows == 0 and col < s.col) then
    return nil
  elseif api.nvim_buf_line_count(s.buf) ~= s.line_count + rows then
    return nil
  end
  local end_col = #s.head
  if #part(s.buf, s.row, 0, -1) < end_col or part(s.buf, s.row, 0, end_col) ~= s.head then
    return nil
  elseif part(s.buf, row, col, -1) ~= s.tail then
    return nil
  end
  return text.join(api.nvim_buf_get_text(s.buf, s.row, s.col, row, col, {}))
end

--- Return how many bytes of the text come before the text right of the cursor, if it repeats that
--- and continues after it; nil if all of it is inserted before.
---@param s lcursor.Suggestion
---@return integer?
function M.ahead(s)
  return s.covering == s.text and s.ahead or nil
end

--- Split the rest of a suggestion: drawn at the cursor, and after the end of the line.
---@param s lcursor.Suggestion
---@param rest string the part not typed yet
---@return string before
---@return string behind "" if nothing right of the cursor is replaced
function M.parts(s, rest)
  local ahead = M.ahead(s)
  if not ahead then
    return rest, ""
  end
  return s.text:sub(#s.text - #rest + 1, ahead), s.text:sub(ahead + #s.tail + 1)
end

--- Note that the text right of the cursor was replaced.
---@param s lcursor.Suggestion
function M.replaced(s)
  s.tail, s.covering, s.ahead = "", nil, nil
end

--- Return the part not typed yet; nil if the buffer no longer matches. Empty
--- while the user types faster than the model.
---@param s lcursor.Suggestion
---@return string?
function M.rest(s)
  local done = typed(s)
  if not done then
    return nil
  elseif #done > (M.ahead(s) or #done) then
    return nil -- the text right of the cursor was typed again
  elseif vim.startswith(s.text, done) then
    return s.text:sub(#done + 1)
  elseif not s.is_done and s.text ~= "" and vim.startswith(done, s.text) then
    return ""
  end
  return nil
end

--- Set the text so far, if it extends the one before: nothing visible ever changes.
---@param s lcursor.Suggestion
---@param replaces? integer bytes right of the cursor that it replaces
function M.extend(s, suggested, replaces)
  if s.single_line then
    suggested = text.first_line(suggested)
  end
  if not vim.startswith(suggested, s.text) then
    return
  elseif replaces and replaces > 0 then
    local at = replaces == #s.tail and suggested:find(s.tail, #s.text + 1, true)
    if not at then
      return -- for another text; what is visible so far comes before it
    end
    s.covering, s.ahead = suggested, at - 1
  end
  s.text = suggested
end

--- Set a better answer: one that extends the text, or another one if it may change.
---@param s lcursor.Suggestion
---@param replaces integer as in `extend`
---@param may_change boolean
---@return boolean whether the text changed
function M.improve(s, suggested, replaces, may_change)
  local before, covering, ahead = s.text, s.covering, s.ahead
  M.extend(s, suggested, replaces)
  if s.text == before and may_change then
    s.text, s.covering, s.ahead = "", nil, nil
    M.extend(s, suggested, replaces)
    if not text.is_visible(s.text) then
      s.text, s.covering, s.ahead = before, covering, ahead
    end
  end
  return s.text ~= before
end

return M
