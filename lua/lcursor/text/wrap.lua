-- Wraps highlighted text at blanks. Pure.

local fit = require("lcursor.text").fit

local M = {}

---@alias lcursor.Chunk { [1]: string, [2]: (string|string[])? } text and highlight groups

---@param chunks lcursor.Chunk[]
---@return integer cells
function M.width(chunks)
  return vim.iter(chunks):fold(0, function(width, chunk)
    return width + vim.api.nvim_strwidth(chunk[1])
  end)
end

--- Split chunks at blanks. Two or more blanks begin a part, which is kept in one row if it fits.
---@param chunks lcursor.Chunk[]
---@return lcursor.Chunk[][][] parts their words, each of one or more chunks
local function split(chunks)
  local parts, blanks = {}, 2
  for _, chunk in ipairs(chunks) do
    for blank, word in chunk[1]:gmatch("(%s*)(%S*)") do
      blanks = blanks + #blank
      if word ~= "" then
        if blanks > 1 then
          table.insert(parts, {})
        end
        local words = parts[#parts]
        if blanks > 0 then
          table.insert(words, {})
        end
        table.insert(words[#words], { word, chunk[2] })
        blanks = 0
      end
    end
  end
  return parts
end

--- Cut off the beginning of a word that fits.
---@param word lcursor.Chunk[]
---@return lcursor.Chunk[] head
---@return lcursor.Chunk[] rest
local function cut(word, cells)
  local head, rest = fit(word[1][1], cells)
  local others = vim.list_slice(word, 2)
  if rest ~= "" then
    table.insert(others, 1, { rest, word[1][2] })
  end
  return { { head, word[1][2] } }, others
end

--- Wrap text into rows.
---@param chunks lcursor.Chunk[]
---@param indent? integer of each row
---@return lcursor.Chunk[][] rows
function M.rows(chunks, width, indent)
  local margin = (" "):rep(math.min(indent or 0, width - 2))
  local rows, row, used = {}, { { margin } }, #margin
  local function break_row()
    table.insert(rows, row)
    row, used = { { margin } }, #margin
  end
  local function add(word, blanks)
    if used > #margin then
      table.insert(row, { (" "):rep(blanks), row[#row][2] })
      used = used + blanks
    end
    vim.list_extend(row, word)
    used = used + M.width(word)
  end
  local function room(blanks)
    return width - used - (used > #margin and blanks or 0)
  end
  for _, words in ipairs(split(chunks)) do
    local wide = #words - 1
    for _, word in ipairs(words) do
      wide = wide + M.width(word)
    end
    if wide > room(2) and used > #margin then
      break_row()
    end
    for i, word in ipairs(words) do
      local blanks = i == 1 and 2 or 1
      if M.width(word) > room(blanks) and used > #margin then
        break_row()
      end
      while M.width(word) > room(blanks) do
        local head
        head, word = cut(word, room(blanks))
        add(head, blanks)
        if #word > 0 then
          break_row()
        end
      end
      if #word > 0 then
        add(word, blanks)
      end
    end
  end
  table.insert(rows, row)
  return rows
end

return M
