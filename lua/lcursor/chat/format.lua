-- Formats what a chat shows: headings, folded parts, counts. Pure.

local many = require("lcursor.text").many
local numbers = require("lcursor.text.numbers")

local M = {}

M.HEADINGS = {
  user = "## You",
  draft = "## You",
  assistant = "## Model",
  summary = "## Summary",
  result = "## Result",
}

local CONTEXT, REASONING = "> context: ", "> thinking\n"

--- Kinds of items that are in every prompt and cannot be dropped, and their names.
M.FIXED = { system = "instructions", history = "history", question = "question" }

--- Split a streamed text into what can be written now and the line ends to hold back: "\r\n" may
--- come in two parts, and an answer does not end with blank lines.
---@param text string
---@return string ready
---@return string held
function M.hold(text)
  local held = text:match("[\r\n]*$")
  return (text:sub(1, #text - #held):gsub("\r\n", "\n")), held
end

--- Continue a quotation on each further line.
---@param text string
---@return string
function M.quote(text)
  return (text:gsub("\n", "\n> "))
end

--- Return the items that are not in every prompt.
---@param items lcursor.ChatItem[]
---@return lcursor.ChatItem[]
function M.attached(items)
  return vim.tbl_filter(function(item)
    return not M.FIXED[item.kind]
  end, items)
end

---@param items lcursor.ChatItem[]
---@return integer tokens
---@return integer left_out
function M.sum(items)
  local tokens, left_out = 0, 0
  for _, item in ipairs(items) do
    tokens = tokens + (item.is_left_out and 0 or item.tokens)
    left_out = left_out + (item.is_left_out and 1 or 0)
  end
  return tokens, left_out
end

---@return string
local function item_line(item)
  local name = item.name
  if item.path ~= "" and item.first_row > 0 and not name:find(":%d") then
    name = ("%s:%d"):format(name, item.first_row + 1)
  end
  local tokens = item.tokens == 1 and "1 token" or numbers.short(item.tokens) .. " tokens"
  local cost = item.is_left_out and "left out" or (item.is_exact and "" or "about ") .. tokens
  local note = item.note ~= "" and ("; " .. item.note) or ""
  return ("> - %s %s: %s%s"):format(item.kind, name, cost, note)
end

--- Format the context of a question as a quotation whose first line is a summary.
---@param items lcursor.ChatItem[]
---@return string[] lines none if there is nothing to show
function M.context(items)
  items = M.attached(items)
  if #items == 0 then
    return {}
  end
  local tokens, left_out = M.sum(items)
  local more = left_out > 0 and (", %d left out"):format(left_out) or ""
  local head = ("%s%s, %s tokens%s"):format(
    CONTEXT,
    many(#items, "item"),
    numbers.short(tokens),
    more
  )
  return vim.list_extend({ head }, vim.tbl_map(item_line, items))
end

--- Format the body of a message.
---@param message lcursor.ChatMessage
---@param items lcursor.ChatItem[] context of its question
---@return string[] lines
---@return integer[][] folds first and last row, from 0
function M.body(message, items)
  local lines, folds = {}, {}
  local function add_fold(block)
    if #block > 0 then
      table.insert(folds, { #lines, #lines + #block - 1 })
      vim.list_extend(lines, block)
      table.insert(lines, "")
    end
  end
  add_fold(M.context(items))
  if message.reasoning ~= "" then
    local text = REASONING .. "> " .. M.quote(vim.trim(message.reasoning))
    add_fold(vim.split(text, "\n", { plain = true }))
  end
  local text = message.text:gsub("\r\n", "\n"):gsub("%s+$", "")
  if message.role == "summary" then
    text = "> earlier messages, summarized\n" .. text
    add_fold(vim.split(text, "\n", { plain = true }))
  elseif message.role == "result" and text:find("\n") then
    add_fold(vim.split(text, "\n", { plain = true }))
  else
    vim.list_extend(lines, vim.split(text, "\n", { plain = true }))
    table.insert(lines, "")
  end
  return lines, folds
end

--- Begin the quotation of what a model thinks.
M.REASONING = REASONING .. "> "

--- Return the text of an answer without the context and the reasoning above it.
---@param text string
---@return string
function M.answer(text)
  for _, head in ipairs({ CONTEXT, REASONING }) do
    if vim.startswith(text, head) then
      while vim.startswith(text, ">") do
        text = text:gsub("^[^\n]*\n?", "", 1)
      end
      text = text:gsub("^%s*\n", "")
    end
  end
  return text
end

--- Format a closed fold. Where it is too narrow, what comes last is left out.
---@param line string the first of its lines
---@param count integer of lines
---@param width integer cells
---@return string
function M.fold(line, count, width)
  local text = "▸ " .. line:gsub("^> ?", "")
  local shorter = { ("%s (%s)"):format(text, many(count - 1, "line")), text }
  for first in text:gmatch("(),") do
    table.insert(shorter, 3, text:sub(1, first - 1) .. "…")
  end
  return vim.iter(shorter):find(function(each)
    return vim.fn.strdisplaywidth(each) <= width
  end) or shorter[#shorter]
end

--- Format the note after a heading.
---@param message lcursor.ChatMessage
---@return string
function M.heading_note(message)
  local parts = {}
  if message.branches > 1 then
    table.insert(parts, ("%d of %d"):format(message.branch, message.branches))
  end
  if message.is_partial then
    table.insert(parts, "incomplete")
  end
  return table.concat(parts, ", ")
end

return M
