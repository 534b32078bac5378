-- Finds mentions (`@file:a.py`) and commands (`/explain`) in a text. Pure. The host parses the same
-- (context/mentions.py) and decides; this says what the editor has to send along.

local markdown = require("lcursor.text.markdown")

local M = {}

--- Mentions that need something from the editor.
local KINDS = {
  buffer = true,
  selection = true,
  screen = true,
  diagnostics = true,
  quickfix = true,
  terminal = true,
  file = true,
  dir = true,
  symbol = true,
  diff = true,
}

--- What is always known, for the command line.
local WORDS = vim.split(
  "/commit /doc /explain /fix /review /tests /trace @buffer @codebase @commit @diagnostics @diff"
    .. " @dir: @file: @mcp: @quickfix @rules: @selection @screen @symbol: @terminal",
  " "
)

local MAX_ARGUMENT_BYTES = 1000
local NOT_BEFORE = "[%w_%.@\\/+%-=&$#%%]"

---@class (exact) lcursor.ChatMention
---@field kind string
---@field argument string "" for none

--- Return a text with its code left out.
function M.without_code(text)
  local lines = vim.split(text, "\n", { plain = true })
  for _, fence in ipairs(markdown.fences(lines)) do
    for i = fence.first, fence.last do
      lines[i] = ""
    end
  end
  local paragraphs = vim.split(table.concat(lines, "\n"), "\n%s*\n")
  for i, paragraph in ipairs(paragraphs) do
    paragraphs[i] = paragraph:gsub("(`+)(.-)%1", " ") -- inline code ends with its paragraph
  end
  return table.concat(paragraphs, "\n\n")
end

--- Return the mentions that need something from the editor.
---@return lcursor.ChatMention[]
function M.parse(text)
  local found = {}
  local prose = " " .. M.without_code(text)
  for before, kind, last in prose:gmatch("([^\n]?)@(%l+)()") do
    local rest = prose:sub(last, last + MAX_ARGUMENT_BYTES)
    local is_mention = KINDS[kind]
      and not before:find(NOT_BEFORE)
      and not rest:find("^[%w_%-%(/@=+]")
    if is_mention then
      local quoted = rest:match('^:"([^"\n]+)"') or rest:match("^:'([^'\n]+)'")
      local bare = (rest:match("^:([^%s`]+)") or ""):gsub("[%.,;:!%?%)%]}>'\"]+$", "")
      table.insert(found, { kind = kind, argument = quoted or bare })
    end
  end
  return found
end

--- Return the name of the command at the start of a question.
---@return string?
function M.command(text)
  return text:match("^%s*/(%a[%w_:.%-]*)%f[%s%z]")
end

--- Return the path of `@file:path:10-20` without its rows.
function M.path(argument)
  local path = argument:gsub("#L%d.*$", ""):gsub(":L?%d+[%-,:]?L?[%d$]*$", "")
  return path
end

--- Complete the command line of `:LCChat` without asking the host.
---@param lead string the word so far
---@return string[]
function M.complete(lead, line)
  local kind, typed = lead:match("^@(%l+):(.*)$")
  if kind == "file" or kind == "dir" then
    return vim.tbl_map(function(path)
      return ("@%s:%s"):format(kind, path)
    end, vim.fn.getcompletion(typed, kind))
  end
  local is_first = line:find("^%S+%s+%S*$") ~= nil
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead) and (word:sub(1, 1) == "@" or is_first)
  end, WORDS)
end

--- Return the mention or command that is typed before the cursor.
---@param before string the line up to the cursor
---@param is_first boolean whether the question has no text above the line
---@return string? word
---@return integer? col where it begins, from 0
function M.word(before, is_first)
  local col, word = before:match('()(@%l*:"[^"]*)$')
  if not col then
    col, word = before:match("()(@%S*)$")
  end
  if col then
    local sign = before:sub(1, col - 1):sub(-1)
    if not sign:find(NOT_BEFORE) and sign ~= "`" then
      return word, col - 1
    end
    return nil
  end
  local blanks, command = before:match("^(%s*)(/[%w_:.%-]*)$")
  if is_first and command then
    return command, #blanks
  end
end

return M
