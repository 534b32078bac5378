-- Functions that change values: {{ name | trim | upper }}.

local M = {}

function M.upper(text)
  return text:upper()
end

-- Remove white space at both ends.
function M.trim(text)
  return text:match("^%s*(.-)%s*$")
end

-- Make one space of each sequence of white space.
function M.squeeze(text)
  return (text:gsub("%s+", " "))
end

-- Replace the characters that have a meaning in HTML.
function M.escape(text)
  return (text:gsub("[&<>]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }))
end

-- Return how many items a list or characters a text has.
function M.count(value)
  return #value
end

return M
