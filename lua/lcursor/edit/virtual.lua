-- Lines that are in no buffer, as chunks for `virt_lines`: tabs and control characters as the
-- buffer would show them, colours over the background of what is new, long lines wrapped and never
-- cut: what is taken shall have been seen. Pure.

local text = require("lcursor.text")

local M = {}

local ADDED, WORD = "LCursorEditAdded", "LCursorEditAddedWord"

---@alias lcursor.EditChunk { [1]: string, [2]: string|string[] }

---@class (exact) lcursor.EditWindowOptions how a buffer shows its lines
---@field tabstop integer
---@field stops integer[]
---@field width integer cells of the narrowest window that shows it
---@field is_wrapped boolean

---@param length integer
---@param colours lcursor.EditColour[]?
---@return table<integer, string|false> by the byte; a later colour covers an earlier one
local function flat(length, colours)
  local groups = {}
  for _, colour in ipairs(colours or {}) do
    for byte = colour.first + 1, math.min(colour.last, length) do
      groups[byte] = colour.group
    end
  end
  return groups
end

--- The pieces of a line that have the same groups.
---@param line string
---@param colours lcursor.EditColour[]?
---@param spans lcursor.EditBytes[] words that are new
---@return { first: integer, last: integer, groups: string|string[] }[]
local function runs(line, colours, spans)
  local groups = flat(#line, colours)
  local is_word = {}
  for _, span in ipairs(spans) do
    for byte = span[1] + 1, span[2] do
      is_word[byte] = true
    end
  end
  local found, first = {}, 1
  for byte = 1, #line do
    local next_byte = line:byte(byte + 1)
    local is_inside = next_byte and next_byte >= 0x80 and next_byte < 0xC0
    local is_other = groups[byte] ~= groups[byte + 1] or is_word[byte] ~= is_word[byte + 1]
    if byte == #line or (is_other and not is_inside) then
      local back = is_word[byte] and WORD or ADDED
      local group = groups[byte]
      table.insert(
        found,
        { first = first, last = byte, groups = group and { back, group } or back }
      )
      first = byte + 1
    end
  end
  return found
end

---@param piece string without tabs
---@param cells integer
---@return string head what fits, at least one character
---@return string rest
local function fit(piece, cells)
  local count = math.max(cells, 1)
  local head = vim.fn.strcharpart(piece, 0, count)
  while count > 1 and vim.api.nvim_strwidth(head) > cells do
    count = count - 1
    head = vim.fn.strcharpart(piece, 0, count)
  end
  return head, piece:sub(#head + 1)
end

--- One new line, as one row of chunks, or several where it is wider than the window.
---@param line string
---@param look lcursor.EditWindowOptions
---@param colours? lcursor.EditColour[]
---@param spans? lcursor.EditBytes[]
---@return lcursor.EditChunk[][]
function M.line(line, look, colours, spans)
  local rows, row, column, cells = {}, {}, 0, 0
  local fill = { (" "):rep(look.width), ADDED }
  for _, run in ipairs(runs(line, colours, spans or {})) do
    local piece = text.expand(line:sub(run.first, run.last), column, look.tabstop, look.stops)
    local wide = vim.api.nvim_strwidth(piece)
    column = column + wide
    while look.is_wrapped and cells + wide > look.width do
      local head, rest = fit(piece, look.width - cells)
      if vim.api.nvim_strwidth(head) > look.width - cells and cells > 0 then
        head, rest = "", piece
      end
      table.insert(row, { head, run.groups })
      table.insert(rows, row)
      row, cells, piece = {}, 0, rest
      wide = vim.api.nvim_strwidth(piece)
      if head ~= "" and wide == 0 then
        break
      end
    end
    if piece ~= "" then
      table.insert(row, { piece, run.groups })
      cells = cells + wide
    end
  end
  if #row > 0 or #rows == 0 then
    table.insert(row, fill) -- the window cuts it off
    table.insert(rows, row)
  end
  return rows
end

return M
