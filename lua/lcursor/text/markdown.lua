-- Fenced code blocks of Markdown, and the filetypes of their languages. Pure.

local M = {}

---@class (exact) lcursor.Fence
---@field first integer line of the opening fence, from 1
---@field last integer line of the closing fence, or the last line while it is open
---@field info string what follows the opening fence
---@field indent integer
---@field is_closed boolean

--- Return the fenced code blocks in some lines.
---@param lines string[]
---@return lcursor.Fence[]
function M.fences(lines)
  local found = {}
  local open, open_marker ---@type lcursor.Fence?, string
  for i, line in ipairs(lines) do
    local indent, marker, info = line:match("^( ? ? ?)(```+)([^`]*)$")
    if not marker then
      indent, marker, info = line:match("^( ? ? ?)(~~~+)(.*)$")
    end
    if open then
      open.last = i
      if marker and vim.startswith(marker, open_marker) and not info:find("%S") then
        open.is_closed, open = true, nil
      end
    elseif marker then
      open_marker = marker
      open = { first = i, last = i, info = vim.trim(info), indent = #indent, is_closed = false }
      table.insert(found, open)
    end
  end
  return found
end

---@type table<string, string> by lower-case name
local FILETYPES = { ["c++"] = "cpp", ["c#"] = "cs", shell = "sh", console = "sh", golang = "go" }

--- Return the filetype for a language name after a fence; "" if there is none.
function M.filetype(language)
  local name = language:lower()
  if not FILETYPES[name] then
    local is_known = vim.list_contains(vim.fn.getcompletion(name, "filetype"), name)
    FILETYPES[name] = is_known and name or vim.filetype.match({ filename = "a." .. name }) or ""
  end
  return FILETYPES[name]
end

return M
