-- A suggestion as items of a completion menu. Pure: reads no buffer.

local text = require("lcursor.text")

local M = {}

local KIND_TEXT = vim.lsp.protocol.CompletionItemKind.Text
local AS_IS = 1 -- lsp.InsertTextMode, which Neovim 0.11 has no table of
local PLAIN = vim.lsp.protocol.InsertTextFormat.PlainText
local BELOW, MORE = "⏎ ", " …"

--- After these characters a closed menu requests items too.
M.TRIGGERS = { ".", ":", ",", "(", "[", "{", "=", " " }

---@return string its menu label, in one line
local function label_of(whole)
  local seen = vim.trim(whole)
  local line = text.first_line(seen)
  local is_below = not text.is_visible(text.first_line(whole))
  return (is_below and BELOW or "") .. line .. (#line < #seen and MORE or "")
end

---@return lsp.CompletionItem
local function item(word, suggested, filetype)
  local whole = word .. suggested
  local line = text.first_line(whole)
  return {
    label = label_of(whole),
    filterText = line ~= "" and line or whole,
    insertText = whole,
    insertTextMode = AS_IS, -- its indentation is already right
    insertTextFormat = PLAIN,
    kind = KIND_TEXT,
    detail = "lcursor",
    documentation = { kind = "markdown", value = ("```%s\n%s\n```"):format(filetype, whole) },
  }
end

--- Return the items of a suggestion: all of it, and its first line where there are more.
---@param word string typed part of the word at the cursor: menus compare it with their items
---@param suggested string text at the cursor; "" gives no items
---@return lsp.CompletionItem[]
function M.make(word, suggested, filetype)
  if suggested == "" then
    return {}
  end
  local items, line = { item(word, suggested, filetype) }, text.first_line(suggested)
  if #line < #suggested and text.is_visible(line) then
    table.insert(items, item(word, line, filetype))
  end
  return items
end

--- Set the range that items replace: the word, with columns in bytes.
---@param items lsp.CompletionItem[]
---@param first integer
---@param col integer where it ends: the cursor, or the end of the text that is replaced
---@return lsp.CompletionItem[] items
function M.set_range(items, row, first, col)
  for _, it in ipairs(items) do
    it.textEdit = {
      range = {
        start = { line = row, character = first },
        ["end"] = { line = row, character = col },
      },
      newText = it.insertText,
    }
  end
  return items
end

return M
