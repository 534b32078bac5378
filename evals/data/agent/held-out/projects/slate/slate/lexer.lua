-- Splits a template into parts: text, values in {{ }} and tags in {% %}.

local M = {}

local function trim(text)
  return (text:gsub("^%s+", ""):gsub("%s+$", ""))
end

-- Return a list of parts; each has a kind ("text", "value" or "tag"), a text and a line.
function M.split(template)
  local parts, position, line = {}, 1, 1
  local function add(kind, text)
    if kind ~= "text" or text ~= "" then
      parts[#parts + 1] = { kind = kind, text = text, line = line }
    end
  end
  local function pass(text)
    local _, count = text:gsub("\n", "")
    line = line + count
  end
  while true do
    local first, _, mark = template:find("{([{%%])", position)
    if not first then
      add("text", template:sub(position))
      return parts
    end
    local before = template:sub(position, first - 1)
    add("text", before)
    pass(before)
    local close = mark == "{" and "}}" or "%}"
    local last = template:find(close, first + 2, true)
    if not last then
      error("line " .. line .. ": " .. close .. " is missing", 0)
    end
    local inner = template:sub(first + 2, last - 1)
    add(mark == "{" and "value" or "tag", trim(inner))
    pass(inner)
    position = last + 2
  end
end

return M
