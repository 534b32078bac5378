-- The context of a question and its cost in tokens: what would be sent, where items can be dropped
-- before, and the sources of an answer.

local buffer = require("lcursor.chat.buffer")
local code_window = require("lcursor.editor.code_window")
local entries = require("lcursor.conversation.entries")
local format = require("lcursor.chat.format")
local keymaps = require("lcursor.editor.keymaps")
local notify = require("lcursor.ui.notify")
local numbers = require("lcursor.text.numbers")
local requests = require("lcursor.host.requests")
local send = require("lcursor.chat.send")
local tail = require("lcursor.text").tail
local ui_list = require("lcursor.ui.list")
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api
local MAX_NAME = 60
local NOT_DROPPED = {
  history = "the chat so far cannot be dropped; :LCursor chat compact summarizes it",
  question = "the question cannot be dropped; edit it in the chat",
  system = "the instructions cannot be dropped",
}

---@class (exact) lcursor.ContextView
---@field session lcursor.ChatSession
---@field entry lcursor.ChatEntry that would be sent
---@field ui lcursor.List
---@field counted? lcursor.ChatPreviewed
---@field id? integer of the request
---@field undo string[][] keys that were dropped together, the last ones at the end

---@type lcursor.ContextView?
local current

--- Lay out the items of a prompt, one in each line.
---@param dropped table<string, boolean> by key
---@return lcursor.Cells[]
local function rows_of(items, dropped)
  local rows = vim.tbl_map(function(item)
    local is_dropped = dropped[item.key] == true
    local is_unreadable = item.is_left_out and not is_dropped
    local is_sent = not is_dropped and not is_unreadable
    local sign = is_dropped and "−" or is_unreadable and "✗" or " "
    local tokens = (item.is_exact and "" or "~") .. numbers.grouped(item.tokens)
    local note = is_dropped and "dropped" or item.note
    return {
      { sign .. " ", is_unreadable and "LCursorChatFailed" or "LCursorChatNote" },
      { format.FIXED[item.kind] or item.kind, "LCursorChatNote" },
      { "  " .. tail(item.name, MAX_NAME), is_sent and "Normal" or "LCursorChatNote" },
      { "  " .. (is_sent and tokens or "-"), is_sent and "LCursorChatTokens" or "LCursorChatNote" },
      { note ~= "" and ("  " .. note) or "", "LCursorChatNote" },
    }
  end, items)
  format.align(rows, 4)
  return rows
end

--- Name the largest items that can be dropped until the prompt fits.
---@param excess integer tokens
---@return string "" if nothing can be dropped
local function suggest_drops(items, excess)
  local free = vim.tbl_filter(function(item)
    return not item.is_left_out
  end, format.attached(items))
  table.sort(free, function(a, b)
    return a.tokens > b.tokens
  end)
  local names = {}
  for _, item in ipairs(free) do
    if excess > 0 then
      table.insert(names, item.name)
      excess = excess - item.tokens
    end
  end
  return #names > 0 and "; drop " .. table.concat(names, ", ") or ""
end

---@param dropped table<string, boolean>
---@return string
local function summary(counted, dropped)
  local total, limit, is_exact = counted.total_tokens, counted.limit_tokens, true
  for _, item in ipairs(counted.items) do
    is_exact = is_exact and (item.is_exact or item.is_left_out)
    if dropped[item.key] and not item.is_left_out then
      total = total - item.tokens -- until the host has counted again
    end
  end
  local sum = (is_exact and "" or "about ") .. numbers.grouped(total)
  if limit <= 0 then
    return sum .. " tokens; the limit is not known yet"
  end
  local percent = math.ceil(100 * total / limit)
  local text = ("%s of %s tokens, %d%%"):format(sum, numbers.grouped(limit), percent)
  if total > limit then
    return text .. ": too many" .. suggest_drops(counted.items, total - limit)
  end
  return text
end

---@return table<string, boolean> by key
local function dropped_of(view)
  local dropped = {}
  for _, key in ipairs(view.session.dropped) do
    dropped[key] = true
  end
  return dropped
end

local function draw(view)
  local counted = view.counted
  if not counted then
    ui_list.fill(view.ui, { { { "  counting …", "LCursorChatNote" } } }, {}, "context")
    return
  end
  local dropped = dropped_of(view)
  local rows, head = rows_of(counted.items, dropped), summary(counted, dropped)
  local keys = "dd drop, u restore, <CR> send, gf jump, q close"
  ui_list.fill(view.ui, rows, counted.items, head, keys)
end

---@return integer number of the message before the question; 0 for none
local function number_before(view)
  local session, message = view.session, view.entry.message
  local last = #session.messages
  if message then
    local at = buffer.find(session, message.number)
    last = (at or 1) - 1
  end
  local before = session.messages[last]
  return before and before.number or 0
end

local function ask(view)
  local session = view.session
  local text = entries.text(session, view.entry)
  local params = send.params(session, text, number_before(view), {}, view.entry.message)
  requests.forget(view.id)
  view.id = requests.ask("chat.preview", params, function(counted)
    if current == view and ui_list.is_open(view.ui) then
      view.counted = counted
      draw(view)
    end
  end, function()
    if current == view and not view.counted then
      ui_list.close(view.ui)
    end
  end)
end

local function set_dropped(view, keys)
  view.session.dropped = keys
  entries.decorate(view.session, entries.draft(view.session))
  draw(view)
  ask(view)
end

local function drop(view)
  local keys, fixed, dropped = {}, nil, dropped_of(view)
  for _, item in ipairs(ui_list.chosen(view.ui)) do
    if format.FIXED[item.kind] then
      fixed = item
    elseif not dropped[item.key] and not item.is_left_out then
      table.insert(keys, item.key)
    end
  end
  if #keys == 0 then
    return notify.info(fixed and NOT_DROPPED[fixed.kind] or "already left out")
  end
  table.insert(view.undo, keys)
  set_dropped(view, vim.list_extend(vim.list_slice(view.session.dropped), keys))
end

local function restore(view)
  local keys = table.remove(view.undo)
  if not keys then
    return notify.info("nothing to restore")
  end
  set_dropped(
    view,
    vim.tbl_filter(function(key)
      return not vim.list_contains(keys, key)
    end, view.session.dropped)
  )
end

local function send_question(view)
  local win = window.find(view.session)
  ui_list.close(view.ui)
  if win then
    api.nvim_set_current_win(win)
  end
  send.send(view.session, {}, view.entry)
end

local function jump(opened)
  local item = ui_list.here(opened)
  if not item or item.path == "" then
    return notify.info("not a file")
  end
  code_window.jump(item.path, item.first_row)
end

---@return lcursor.ChatEntry the edited question at the cursor, else the draft
local function entry_to_send(session)
  local entry = entries.at_cursor(session)
  local is_question = entry.message and entry.message.role == "user"
  local is_edited = is_question and (buffer.edited(session, entry) or "") ~= ""
  return is_edited and entry or entries.draft(session)
end

--- Show what would be sent, and let items be dropped.
---@param session lcursor.ChatSession
function M.preview(session)
  if session.key == "" then
    return notify.info("the chat is not open yet")
  end
  local entry = entry_to_send(session)
  local opened, is_new = ui_list.open("context", window.find(session))
  ---@type lcursor.ContextView
  local view = { session = session, entry = entry, ui = opened, undo = {} }
  if not is_new and current and current.session == session then
    view.undo, view.counted = current.undo, current.counted
  end
  current = view
  local function with(fn)
    return function()
      fn(view)
    end
  end
  local keys = {
    dd = with(drop),
    u = with(restore),
    ["<CR>"] = with(send_question),
    gf = function()
      jump(opened)
    end,
    R = with(ask),
  }
  local send_key = keymaps.shown("chat", "send", session.buf)
  if send_key then
    keys[send_key] = with(send_question)
  end
  ui_list.map(opened, keys, { d = with(drop) })
  draw(view)
  ask(view)
end

local function to_quickfix(items)
  local locations = {}
  for _, item in ipairs(items) do
    if item.path ~= "" then
      local text = item.note ~= "" and ("%s: %s"):format(item.kind, item.note) or item.kind
      table.insert(locations, { filename = item.path, lnum = item.first_row + 1, text = text })
    end
  end
  if #locations == 0 then
    return notify.info("no file locations")
  end
  vim.fn.setqflist({}, " ", { title = "sources of the chat", items = locations })
  vim.cmd("botright copen")
end

--- Show what was sent with the question at the cursor, and why.
---@param session lcursor.ChatSession
function M.sources(session)
  local entry = buffer.question_at_cursor(session)
  if not entry then
    return notify.info("no question yet")
  end
  local items = format.attached(entry.message.items)
  if #items == 0 then
    return notify.info("nothing was attached to that question")
  end
  local tokens, left_out = format.sum(items)
  local opened = ui_list.open("sources", window.find(session))
  local head = ("%d sent, %s tokens"):format(#items - left_out, numbers.grouped(tokens))
  head = left_out > 0 and ("%s; %d left out"):format(head, left_out) or head
  ui_list.fill(opened, rows_of(items, {}), items, head, "<CR> jump, <C-q> quickfix, q close")
  local function jump_here()
    jump(opened)
  end
  ui_list.map(opened, {
    ["<CR>"] = jump_here,
    gf = jump_here,
    ["<C-q>"] = function()
      ui_list.close(opened)
      to_quickfix(items)
    end,
  })
end

return M
