-- The receipts: what went into the prompt of a question and why, and the way to each place. Also
-- follows places that are named in a chat's text.

local buffer = require("lcursor.chat.buffer")
local notify = require("lcursor.notify")
local place = require("lcursor.chat.place")
local sheet = require("lcursor.ui.list")
local tables = require("lcursor.chat.table")
local window = require("lcursor.chat.window")

local M = {}

local api = vim.api

---@param session lcursor.ChatSession
---@return lcursor.ChatMessage? question that the cursor belongs to, else the last one
local function question_at(session)
  local index = buffer.question_at(session)
  return index and session.spans[index].message
end

--- What is sent only sometimes, and so is worth a line.
---@param items lcursor.ChatItem[]
---@return lcursor.ChatItem[]
local function attached(items)
  return vim.tbl_filter(tables.is_free, items)
end

--- Show what went in with a question.
---@param session lcursor.ChatSession
function M.open(session)
  local message = question_at(session)
  local items = message and attached(message.items) or {}
  if #items == 0 then
    return notify.info(
      message and "nothing was attached to that question" or "nothing is asked yet"
    )
  end
  local tokens, out = 0, 0
  for _, item in ipairs(items) do
    tokens = tokens + (item.is_left_out and 0 or item.tokens)
    out = out + (item.is_left_out and 1 or 0)
  end
  local opened = sheet.open("receipts", window.find(session))
  local head = ("%d in, %s tokens"):format(#items - out, tables.count(tokens))
  head = out > 0 and ("%s; %d left out"):format(head, out) or head
  local help = "<CR> jumps, <C-q> puts them into the quickfix list, q closes"
  sheet.fill(opened, tables.rows(items, {}), items, head, help)
  local function jump()
    local item = sheet.here(opened)
    if not item or item.path == "" then
      return notify.info("it stands in no file")
    end
    place.jump(item.path, item.first_row)
  end
  sheet.map(opened, {
    ["<CR>"] = jump,
    gf = jump,
    ["<C-q>"] = function()
      sheet.close(opened)
      M.quickfix(items)
    end,
  })
end

--- Put the places of items into the quickfix list.
---@param items lcursor.ChatItem[]
function M.quickfix(items)
  local entries = {}
  for _, item in ipairs(items) do
    if item.path ~= "" then
      local text = item.note ~= "" and ("%s: %s"):format(item.kind, item.note) or item.kind
      table.insert(entries, { filename = item.path, lnum = item.first_row + 1, text = text })
    end
  end
  if #entries == 0 then
    return notify.info("they stand in no files")
  end
  vim.fn.setqflist({}, " ", { title = "what went into the chat", items = entries })
  vim.cmd("botright copen")
end

--- The item that a line of the folded list is about.
---@param session lcursor.ChatSession
---@param line string
---@return lcursor.ChatItem?
local function item_of(session, line)
  local message = question_at(session)
  local text = line:match("^> %- (.*)$")
  for _, item in ipairs(message and text and message.items or {}) do
    if vim.startswith(text, item.kind .. " " .. item.name) then
      return item
    end
  end
end

---@param session lcursor.ChatSession
---@param name string
---@return string? absolute
local function find(session, name)
  local bases = { session.root, vim.fs.dirname(session.path), vim.uv.cwd() }
  for _, base in ipairs(bases) do
    local path = vim.startswith(name, "/") and name or vim.fs.joinpath(base, name)
    if base ~= "" and (vim.fn.filereadable(path) == 1 or place.buffer(path)) then
      return vim.fs.normalize(path)
    end
  end
end

--- The place that is named at a column of a line: `src/a.py:12`, `src/a.py`, `src/a.py#L12`.
---@param line string
---@param col integer 1-based
---@return string? name
---@return integer row 0-based
function M.named(line, col)
  local at = 1
  while true do
    local first, last, word = line:find("([%w_%.%-/~+@\128-\255]+[%w_#:%-]*)", at)
    if not first then
      return nil, 0
    elseif col >= first and col <= last then
      local name, row = word:match("^(.-):L?(%d+)")
      if not name then
        name, row = word:match("^(.-)#L(%d+)")
      end
      name = (name or word):gsub("[:%.%-]+$", "")
      return name:gsub("^@%l+:", ""), math.max((tonumber(row) or 1) - 1, 0)
    end
    at = last + 1
  end
end

--- Go to what the line of the cursor is about: an item of the list, or a file that is named there.
---@param session lcursor.ChatSession
function M.follow(session)
  local line, col = api.nvim_get_current_line(), api.nvim_win_get_cursor(0)[2] + 1
  local item = item_of(session, line)
  if item and item.path ~= "" then
    return place.jump(item.path, item.first_row)
  end
  for first, argument, behind in line:gmatch("()@%l+:(%S+)()") do
    if col >= first and col < behind then
      line, col = argument:gsub('"', ""), 1
      break
    end
  end
  local name, row = M.named(line, col)
  local path = name and name ~= "" and find(session, name)
  if not path then
    return notify.info("no file of the project is named here")
  end
  place.jump(path, row)
end

return M
