-- The bill: what would be sent and what it costs, line by line, before it is sent. A line can be
-- dropped and brought back; each time Python counts anew. One bill at a time.

local buffer = require("lcursor.chat.buffer")
local config = require("lcursor.config")
local notify = require("lcursor.notify")
local place = require("lcursor.chat.place")
local requests = require("lcursor.requests")
local sheet = require("lcursor.ui.list")
local state = require("lcursor.chat.state")
local tables = require("lcursor.chat.table")
local turns = require("lcursor.chat.turns")
local window = require("lcursor.chat.window")

local M = {}

local api = vim.api

---@class (exact) lcursor.ChatBill
---@field session lcursor.ChatSession
---@field span lcursor.ChatSpan that would be sent
---@field sheet lcursor.List
---@field billed? lcursor.ChatBilled
---@field asked? integer
---@field undone string[][] keys that were dropped together, the last at the end

---@type lcursor.ChatBill?
local current

--- What would be sent: the changed question that the cursor is in, else the draft.
---@param session lcursor.ChatSession
---@return lcursor.ChatSpan
local function span_of(session)
  if api.nvim_get_current_buf() == session.buf then
    local span = buffer.at(session, api.nvim_win_get_cursor(0)[1] - 1)
    local asked = span and span.message
    local text = asked and asked.role == "user" and buffer.changed(session, span) or ""
    if text ~= "" then
      return span
    end
  end
  return buffer.draft(session)
end

--- The message that it follows.
---@param session lcursor.ChatSession
---@param span lcursor.ChatSpan
---@return integer number
local function after(session, span)
  local last = #session.messages
  if span.message then
    local _, at = state.message(session, span.message.number)
    last = (at or 1) - 1
  end
  local before = session.messages[last]
  return before and before.number or 0
end

---@param bill lcursor.ChatBill
---@return table<string, boolean>
local function dropped(bill)
  local keys = {}
  for _, key in ipairs(bill.session.dropped) do
    keys[key] = true
  end
  return keys
end

---@param bill lcursor.ChatBill
local function draw(bill)
  local billed = bill.billed
  if not billed then
    sheet.fill(bill.sheet, { { { "  counting …", "LCursorChatNote" } } }, {}, "bill")
    return
  end
  local keys, is_exact, total = dropped(bill), true, billed.total_tokens
  for _, item in ipairs(billed.items) do
    is_exact = is_exact and (item.is_exact or item.is_left_out)
    if keys[item.key] and not item.is_left_out then
      total = total - item.tokens -- until it is counted anew
    end
  end
  local head = tables.total(total, billed.limit_tokens, is_exact)
  local over = billed.limit_tokens > 0 and total - billed.limit_tokens or 0
  if over > 0 then
    local names = vim.tbl_map(function(item)
      return item.name
    end, tables.largest(billed.items, over))
    if #names > 0 then
      head = ("%s; drop %s"):format(head, table.concat(names, ", "))
    end
  end
  local help = "dd drops, u brings back, <CR> sends, gf jumps, q closes"
  sheet.fill(bill.sheet, tables.rows(billed.items, keys), billed.items, head, help)
end

---@param bill lcursor.ChatBill
local function ask(bill)
  local session, text = bill.session, buffer.text(bill.session, bill.span)
  local params = turns.params(session, text, after(session, bill.span), {}, bill.span.message)
  requests.forget(bill.asked)
  bill.asked = requests.ask("chat.bill", params, function(billed)
    if current == bill and sheet.is_open(bill.sheet) then
      bill.billed = billed
      draw(bill)
    end
  end, function()
    if current == bill and not bill.billed then
      sheet.close(bill.sheet)
    end
  end)
end

---@param bill lcursor.ChatBill
local function drop(bill)
  local keys, fixed = {}, nil
  local there = dropped(bill)
  for _, item in ipairs(sheet.chosen(bill.sheet)) do
    if not tables.is_free(item) then
      fixed = item
    elseif not there[item.key] and not item.is_left_out then
      table.insert(keys, item.key)
    end
  end
  if #keys == 0 then
    local hints = {
      history = "the chat so far cannot be dropped; :LCursor chats compact summarizes it",
      question = "the question cannot be dropped: change it in the chat",
      system = "the instructions cannot be dropped",
    }
    return notify.info(fixed and hints[fixed.kind] or "it is not in anyway")
  end
  table.insert(bill.undone, keys)
  vim.list_extend(bill.session.dropped, keys)
  buffer.placeholder(bill.session)
  draw(bill)
  ask(bill)
end

--- Bring back what was dropped last, or what is in the line.
---@param bill lcursor.ChatBill
---@param keys? string[]
local function bring_back(bill, keys)
  keys = keys or table.remove(bill.undone)
  if not keys or #keys == 0 then
    return notify.info("there is nothing to bring back")
  end
  bill.session.dropped = vim.tbl_filter(function(key)
    return not vim.list_contains(keys, key)
  end, bill.session.dropped)
  buffer.placeholder(bill.session)
  draw(bill)
  ask(bill)
end

---@param bill lcursor.ChatBill
local function send(bill)
  local session, span = bill.session, bill.span
  local win = window.find(session)
  sheet.close(bill.sheet)
  if win then
    api.nvim_set_current_win(win)
  end
  turns.send(session, {}, span)
end

---@param bill lcursor.ChatBill
local function jump(bill)
  local item = sheet.here(bill.sheet)
  if not item or item.path == "" then
    return notify.info("it stands in no file")
  end
  place.jump(item.path, item.first_row)
end

--- Show what the draft would send, or the changed question that the cursor is in.
---@param session lcursor.ChatSession
function M.open(session)
  if session.chat == "" then
    return notify.info("the chat is not open yet")
  end
  local span = span_of(session)
  local opened, is_new = sheet.open("bill", window.find(session))
  ---@type lcursor.ChatBill
  local bill = { session = session, span = span, sheet = opened, undone = {} }
  if not is_new and current and current.session == session then
    bill.undone, bill.billed = current.undone, current.billed
  end
  current = bill
  local function with(fn)
    return function()
      fn(bill)
    end
  end
  local function toggle()
    local item = sheet.here(bill.sheet)
    if item and dropped(bill)[item.key] then
      return bring_back(bill, { item.key })
    end
    drop(bill)
  end
  local keys = {
    dd = with(drop),
    x = toggle,
    u = with(bring_back),
    ["<CR>"] = with(send),
    gf = with(jump),
    R = with(ask),
  }
  local own = config.get().chat.mappings.send
  if own ~= "" then
    keys[own] = with(send)
  end
  sheet.map(opened, keys, { d = with(drop), x = with(drop) })
  draw(bill)
  ask(bill)
end

return M
