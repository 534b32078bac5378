-- Pure functions of what a search found: where in a hit to point, and what to say of it in a line.
-- Must not read a buffer or an option.

local M = {}

--- The words of a query that may stand in a text, in lower case.
---@param query string
---@return string[]
function M.words(query)
  local words, seen = {}, {}
  local plain = query
  for _, filter in ipairs({ "path", "file", "lang", "language", "kind" }) do
    local start = "%f[%w]" .. filter .. ":"
    plain = plain:gsub(start .. '"[^"]*"', " "):gsub(start .. "%S+", " ")
  end
  for word in plain:lower():gmatch("[%w_\128-\255]+") do
    if #word > 1 and not seen[word] then
      seen[word] = true
      table.insert(words, word)
    end
  end
  return words
end

---@param line string
---@param words string[]
---@return integer how many of them stand in it
local function count(line, words)
  local lower, found = line:lower(), 0
  for _, word in ipairs(words) do
    if lower:find(word, 1, true) then
      found = found + 1
    end
  end
  return found
end

--- The line of a hit that says most of the query, and its row.
---@param hit lcursor.IndexHit
---@param words string[]
---@return integer row 0-based, in the file
---@return string line without its indentation
function M.best_line(hit, words)
  local lines = vim.split((hit.text:gsub("\n$", "")), "\n", { plain = true })
  local best, most = nil, -1
  for i, line in ipairs(lines) do
    local found = line:find("%S") and count(line, words) or -1
    if found > most then
      best, most = i, found
    end
  end
  if not best then
    return hit.first_row, ""
  end
  -- A class whose bodies are left out has fewer lines than rows: its line cannot be told.
  local is_whole = #lines == hit.end_row - hit.first_row
  return hit.first_row + (is_whole and best - 1 or 0), vim.trim(lines[best])
end

--- What a hit is, before the line that was found.
---@param hit lcursor.IndexHit
---@return string
function M.label(hit)
  local label = hit.kind ~= "" and hit.kind or ""
  if hit.scope ~= "" then
    label = label ~= "" and (label .. " in " .. hit.scope) or hit.scope
  end
  return hit.is_stale and vim.trim(label .. " (changed since)") or label
end

--- A hit in one line, for lists that know no more.
---@param hit lcursor.IndexHit
---@param words string[]
---@return string
function M.line(hit, words)
  local row, line = M.best_line(hit, words)
  local label = M.label(hit)
  label = label ~= "" and (label .. ": ") or ""
  return ("%s:%d: %s%s"):format(hit.name, row + 1, label, line)
end

--- The entries of a quickfix list.
---@param found lcursor.IndexFound
---@return table[]
function M.quickfix(found)
  local words = M.words(found.query)
  return vim.tbl_map(function(hit)
    local row, line = M.best_line(hit, words)
    local label = M.label(hit)
    return {
      filename = hit.path,
      lnum = row + 1,
      end_lnum = math.max(hit.end_row, row + 1),
      col = 1,
      text = label ~= "" and (label .. ": " .. line) or line,
    }
  end, found.hits)
end

--- What made the score of a hit, the largest part first.
---@param hit lcursor.IndexHit
---@return string
function M.reasons(hit)
  local parts = {}
  for name, value in pairs(hit.parts) do
    table.insert(parts, { name = name, value = value })
  end
  table.sort(parts, function(one, other)
    local a, b = math.abs(one.value), math.abs(other.value)
    return a == b and one.name < other.name or a > b
  end)
  local words = vim.tbl_map(function(part)
    return ("%s %.3g"):format(part.name, part.value)
  end, parts)
  return table.concat(words, ", ")
end

return M
