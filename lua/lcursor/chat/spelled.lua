-- Pure functions of mentions in a text: which there are, and what of the text is code and holds
-- none. The Python half (context/mentions.py) has the last word; this says what to send along.

local M = {}

--- What only the editor can read. All else Python finds by itself.
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

local WORDS = {
  "/commit",
  "/doc",
  "/explain",
  "/fix",
  "/review",
  "/tests",
  "/trace",
  "@buffer",
  "@codebase",
  "@commit",
  "@diagnostics",
  "@diff",
  "@dir:",
  "@file:",
  "@quickfix",
  "@rules:",
  "@selection",
  "@screen",
  "@symbol:",
  "@terminal",
}

local LONGEST = 1000 -- argument, in bytes

---@class (exact) lcursor.ChatMention
---@field kind string
---@field argument string "" for none

--- A text without what stands in it as code.
---@param text string
---@return string
function M.prose(text)
  local lines, fence = {}, nil
  for line in vim.gsplit(text, "\n", { plain = true }) do
    local mark, rest = line:match("^ ? ? ?([`~]+)(.*)$")
    local is_mark = mark and #mark >= 3 and (mark:find("^`+$") or mark:find("^~+$"))
    if fence then
      local is_end = is_mark and vim.startswith(mark, fence) and not rest:find("%S")
      fence = not is_end and fence or nil
      line = ""
    elseif is_mark and not (mark:sub(1, 1) == "`" and rest:find("`", 1, true)) then
      fence, line = mark, ""
    end
    table.insert(lines, line)
  end
  local paragraphs = vim.split(table.concat(lines, "\n"), "\n%s*\n")
  for i, paragraph in ipairs(paragraphs) do
    paragraphs[i] = paragraph:gsub("(`+)(.-)%1", " ") -- it ends with its paragraph
  end
  return table.concat(paragraphs, "\n\n")
end

---@param word string
---@return string without the punctuation of the sentence it stands in
local function trimmed(word)
  return (word:gsub("[%.,;:!%?%)%]}>'\"]+$", ""))
end

--- The mentions of what the editor knows, in the order of the text.
---@param text string
---@return lcursor.ChatMention[]
function M.mentions(text)
  local found = {}
  local prose = " " .. M.prose(text)
  local at = 1
  while true do
    local first, last, before, kind = prose:find("([^\n]?)@(%l+)", at)
    if not first then
      return found
    end
    at = last + 1
    local is_free = not before:find("[%w_%.@\\/+%-=&$#%%]")
    local rest = prose:sub(at, at + LONGEST)
    local quoted = rest:match('^:"([^"\n]+)"') or rest:match("^:'([^'\n]+)'")
    local bare = rest:match("^:([^%s`]+)")
    local is_other = rest:find("^[%w_%-%(/@=+]") ~= nil
    if is_free and KINDS[kind] and not is_other then
      table.insert(found, { kind = kind, argument = quoted or (bare and trimmed(bare)) or "" })
    end
  end
end

--- The name of the command that a question begins with.
---@param text string
---@return string?
function M.command(text)
  return text:match("^%s*/(%a[%w_:.%-]*)%f[%s%z]")
end

--- A path without the rows that were named with it.
---@param argument string of `@file`
---@return string
function M.path(argument)
  local path = argument:gsub("#L%d.*$", ""):gsub(":L?%d+[%-,:]?L?[%d$]*$", "")
  return path
end

--- Complete the command line of `:LCChat`: without asking Python, so only what is always there.
---@param lead string the word as far as it is typed
---@param line string
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

--- The word of a mention or a command that stands before a cursor, and the byte it begins at.
---@param before string the line up to the cursor
---@param is_first boolean whether nothing of the question stands above
---@return string? word
---@return integer? col 0-based
function M.word(before, is_first)
  local col, word = before:match('()(@%l*:"[^"]*)$')
  if not col then
    col, word = before:match("()(@%S*)$")
    -- The first sign of several counts: `@file:a@b`.
  end
  if col then
    local sign = before:sub(1, col - 1):sub(-1)
    if sign == "" or not sign:find("[%w_%.@\\/+%-=&$#%%`]") then
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
