-- Pure functions of text. They read no buffer and no option.

local M = {}

--- Diff two strings. Neovim 0.12 renamed `vim.diff` to `vim.text.diff`.
M.diff = vim.text and vim.text.diff or vim.diff

---@alias lcursor.Kind "all"|"line"|"word"

--- Return the piece of a suggestion that is accepted.
---@param rest string what is still to come
---@param kind lcursor.Kind
---@return string piece a prefix of `rest`, never empty unless `rest` is
function M.piece(rest, kind)
  if kind == "line" then
    return rest:match("^\n*[^\n]*")
  elseif kind == "word" then
    -- Bytes from 128 on are word characters, so that no UTF-8 sequence is ever cut.
    return rest:match("^[ \t]*\n+[ \t]*")
      or rest:match("^[ \t]*[%w_\128-\255]+")
      or rest:match("^[ \t]*[^%s%w_\128-\255]+")
      or rest
  end
  return rest
end

--- Return whether text right of the cursor allows a suggestion: only closing brackets and
--- punctuation, as editors insert them. The rule of Copilot's client, arXiv 2405.14753.
function M.is_inert(tail)
  return tail:find("^%s*[%)>}%]\"'`]*%s*[:{;,]?%s*$") ~= nil
end

---@return boolean whether any of it is visible
function M.is_visible(text)
  return text:find("%S") ~= nil
end

function M.first_line(text)
  return text:match("^[^\n]*")
end

--- Return the part of a suggestion before the text right of the cursor, which it repeats.
function M.before(str, tail)
  local at = tail ~= "" and str:find(tail, 1, true)
  return at and str:sub(1, at - 1) or str
end

--- Return the width of a tab.
---@param column integer 0-based display column where it is
---@param stops integer[] 'vartabstop', empty if unset
function M.tab_width(column, tabstop, stops)
  if #stops == 0 then
    return tabstop - column % tabstop
  end
  local edge = 0
  for _, width in ipairs(stops) do
    edge = edge + width
    if column < edge then
      return edge - column
    end
  end
  local last = stops[#stops]
  return last - (column - edge) % last
end

--- Return a text on one line, with control characters as Neovim shows them in a buffer.
function M.printable(text)
  text = text:gsub("%c", function(char)
    local byte = char:byte()
    return "^" .. string.char(byte == 127 and 63 or byte + 64)
  end)
  return text:find("[\128-\255]") and vim.fn.strtrans(text) or text
end

--- Return a line as it would look in the buffer, with tabs and control characters expanded.
---@param column integer 0-based display column where it begins
---@param stops integer[] 'vartabstop'
function M.expand(line, column, tabstop, stops)
  if not line:find("[%c\128-\255]") then
    return line
  end
  local out = {}
  for text, tab in line:gmatch("([^\t]*)(\t?)") do
    text = M.printable(text)
    table.insert(out, text)
    column = column + vim.api.nvim_strwidth(text)
    if tab ~= "" then
      local width = M.tab_width(column, tabstop, stops)
      table.insert(out, (" "):rep(width))
      column = column + width
    end
  end
  return table.concat(out)
end

--- Cut off the beginning of a text that fits into a width.
---@param str string without tabs
---@return string head at least one character
---@return string rest
function M.fit(str, cells)
  local count = math.max(cells, 1)
  local head = vim.fn.strcharpart(str, 0, count)
  while count > 1 and vim.api.nvim_strwidth(head) > cells do
    count = count - 1
    head = vim.fn.strcharpart(str, 0, count)
  end
  return head, str:sub(#head + 1)
end

--- Join lines from `nvim_buf_get_text`, in which a newline stands for NUL.
---@param lines string[]
function M.join(lines)
  for i, line in ipairs(lines) do
    if line:find("\n", 1, true) then
      lines[i] = line:gsub("\n", "\0")
    end
  end
  return table.concat(lines, "\n")
end

--- Format a count with its noun.
---@param more? string the plural, if it is not `one` with an s
function M.many(count, one, more)
  return count == 1 and ("1 " .. one) or ("%d %s"):format(count, more or (one .. "s"))
end

--- Break a text into lines at blanks; a word that is too long is broken itself.
---@param width integer cells
---@return string[] at least one
function M.wrap(str, width)
  local lines, line = {}, ""
  for word in str:gmatch("%S+") do
    local joined = line == "" and word or (line .. " " .. word)
    if vim.api.nvim_strwidth(joined) <= width then
      line = joined
    else
      if line ~= "" then
        table.insert(lines, line)
      end
      while vim.api.nvim_strwidth(word) > width do
        local part = vim.fn.strcharpart(word, 0, width)
        while vim.api.nvim_strwidth(part) > width do
          part = vim.fn.strcharpart(part, 0, vim.fn.strchars(part) - 1)
        end
        table.insert(lines, part)
        word = word:sub(#part + 1)
      end
      line = word
    end
  end
  table.insert(lines, line)
  return lines
end

--- Align the columns of a table: the first one to the left, the others to the right.
---@param rows string[][] of equally many cells
---@return string[] lines
function M.columns(rows)
  local widths = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      widths[i] = math.max(widths[i] or 0, vim.api.nvim_strwidth(cell))
    end
  end
  return vim.tbl_map(function(row)
    local line = {}
    for i, cell in ipairs(row) do
      local blanks = (" "):rep(widths[i] - vim.api.nvim_strwidth(cell))
      table.insert(line, i == 1 and cell .. blanks or blanks .. cell)
    end
    return table.concat(line, "  ")
  end, rows)
end

--- Join the parts of a line.
---@param cells lcursor.Cells
---@return string without control characters and blanks at its end
function M.of_cells(cells)
  local parts = {}
  for _, cell in ipairs(cells) do
    table.insert(parts, cell[1])
  end
  return (table.concat(parts):gsub("%c", " "):gsub("%s+$", ""))
end

--- Format how long ago something was.
function M.ago(seconds)
  if seconds < 60 then
    return "now"
  elseif seconds < 3600 then
    return ("%d min"):format(seconds / 60)
  elseif seconds < 86400 then
    return ("%d h"):format(seconds / 3600)
  elseif seconds < 86400 * 14 then
    local days = math.floor(seconds / 86400)
    return days == 1 and "1 day" or ("%d days"):format(days)
  end
  return os.date("%Y-%m-%d", os.time() - math.floor(seconds)) --[[@as string]]
end

--- Shorten a text to its end.
---@param max integer characters
function M.tail(str, max)
  local length = vim.fn.strchars(str)
  return length <= max and str or "…" .. vim.fn.strcharpart(str, length - max + 1)
end

--- Format a text in one line, shortened if it is long.
---@param max integer characters
function M.short(str, max)
  str = vim.trim((str:gsub("%s+", " ")))
  return vim.fn.strchars(str) > max and vim.fn.strcharpart(str, 0, max - 1) .. "…" or str
end

return M
