-- Markdown structure: fenced code blocks, and blocks that can be highlighted one at a time. Pure.

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

---@class (exact) lcursor.MarkdownBlock
---@field first integer row, from 0
---@field last integer row after the last
---@field fence? lcursor.Fence set if the block is fenced code

--- Split lines into fenced code and prose. Prose is split further at blank lines.
---@param lines string[]
---@param min_rows integer of a block of prose that is split off
---@return lcursor.MarkdownBlock[]
function M.blocks(lines, min_rows)
  local blocks, first = {}, 1
  local function add(next_first, fence)
    if next_first > first then
      table.insert(blocks, { first = first - 1, last = next_first - 1, fence = fence })
      first = next_first
    end
  end
  local function add_prose(next_first)
    for i = first, next_first - 2 do
      local is_blank = not lines[i]:find("%S")
      -- An indented line after a blank one may continue the list item above it.
      if is_blank and i - first + 1 >= min_rows and lines[i + 1]:find("^%S") then
        add(i + 1)
      end
    end
    add(next_first)
  end
  for _, fence in ipairs(M.fences(lines)) do
    add_prose(fence.first)
    add(fence.last + 1, fence)
  end
  add_prose(#lines + 1)
  return blocks
end

---@type table<string, string> by lower-case name
local FILETYPES = { ["c++"] = "cpp", ["c#"] = "cs", shell = "sh", console = "sh", golang = "go" }

--- Return the filetype for a language name after a fence; "" if there is none.
---@param language string
---@return string
function M.filetype(language)
  local name = language:lower()
  if not FILETYPES[name] then
    local is_known = vim.list_contains(vim.fn.getcompletion(name, "filetype"), name)
    FILETYPES[name] = is_known and name or vim.filetype.match({ filename = "a." .. name }) or ""
  end
  return FILETYPES[name]
end

return M
