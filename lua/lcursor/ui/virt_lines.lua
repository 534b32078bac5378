-- Lines that are in no buffer, as chunks for `virt_lines`: tabs and control characters as the
-- buffer would show them, colors of code over the background of new text, long lines wrapped and
-- never cut.

local highlights = require("lcursor.ui.highlights")
local text = require("lcursor.text")

local M = {}

local api = vim.api
local ADDED, WORD = "LCursorEditAdded", "LCursorEditAddedWord"

---@alias lcursor.EditChunk lcursor.Chunk

---@class (exact) lcursor.EditWindowOptions how a buffer shows its lines
---@field tabstop integer
---@field stops integer[]
---@field width integer cells of the narrowest window that shows it
---@field is_wrapped boolean
---@field has_signs boolean before lines, where colors cannot mark them

--- Return how the windows of a buffer show its lines.
---@param buf integer
---@return lcursor.EditWindowOptions
function M.options(buf)
  local width, is_wrapped = math.huge, false
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local info = vim.fn.getwininfo(win)[1]
    width = math.min(width, info.width - info.textoff)
    is_wrapped = is_wrapped or vim.wo[win].wrap
  end
  local stops = vim.bo[buf].vartabstop
  return {
    tabstop = vim.bo[buf].tabstop,
    stops = stops == "" and {} or vim.tbl_map(tonumber, vim.split(stops, ",")),
    width = math.max(width == math.huge and vim.o.columns or width, 10),
    is_wrapped = is_wrapped,
    has_signs = not highlights.has_colours(),
  }
end

--- Split a line into pieces that have the same highlight groups.
---@param colors lcursor.EditColor[] a later one covers an earlier one
---@param words lcursor.EditBytes[] that are new
---@return { [1]: string, [2]: string|string[] }[]
local function pieces_of(line, colors, words)
  local groups, is_word = {}, {}
  for _, color in ipairs(colors) do
    for byte = color.first + 1, math.min(color.last, #line) do
      groups[byte] = color.group
    end
  end
  for _, span in ipairs(words) do
    for byte = span[1] + 1, span[2] do
      is_word[byte] = true
    end
  end
  local found, first = {}, 1
  for byte = 1, #line do
    local next_byte = line:byte(byte + 1)
    local is_inside = next_byte and next_byte >= 0x80 and next_byte < 0xC0 -- of a character
    local is_other = groups[byte] ~= groups[byte + 1] or is_word[byte] ~= is_word[byte + 1]
    if byte == #line or (is_other and not is_inside) then
      local back, group = is_word[byte] and WORD or ADDED, groups[byte]
      table.insert(found, { line:sub(first, byte), group and { back, group } or back })
      first = byte + 1
    end
  end
  return found
end

--- Return one new line as one row of chunks, or several where it is wider than the window.
---@param line string
---@param options lcursor.EditWindowOptions
---@param colors? lcursor.EditColor[]
---@param words? lcursor.EditBytes[]
---@return lcursor.EditChunk[][]
function M.rows(line, options, colors, words)
  local rows, row, column, cells = {}, {}, 0, 0
  if options.has_signs then
    row[1] = { "+ ", ADDED }
    column, cells = 2, 2
  end
  for _, each in ipairs(pieces_of(line, colors or {}, words or {})) do
    local piece = text.expand(each[1], column, options.tabstop, options.stops)
    local wide = api.nvim_strwidth(piece)
    column = column + wide
    while options.is_wrapped and cells + wide > options.width do
      local head, rest = text.fit(piece, options.width - cells)
      if api.nvim_strwidth(head) > options.width - cells and cells > 0 then
        head, rest = "", piece
      end
      table.insert(row, { head, each[2] })
      table.insert(rows, row)
      row, cells, piece = {}, 0, rest
      wide = api.nvim_strwidth(piece)
      if head ~= "" and wide == 0 then
        break
      end
    end
    if piece ~= "" then
      table.insert(row, { piece, each[2] })
      cells = cells + wide
    end
  end
  if #row > 0 or #rows == 0 then
    table.insert(row, { (" "):rep(options.width), ADDED }) -- the window cuts it off
    table.insert(rows, row)
  end
  return rows
end

return M
