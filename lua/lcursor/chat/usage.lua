-- The context of a question and its cost in tokens: what would be sent, where items can be dropped
-- before, and the sources of an answer.

local buffer = require("lcursor.chat.buffer")
local code_window = require("lcursor.editor.code_window")
local entries = require("lcursor.conversation.entries")
local format = require("lcursor.chat.format")
local keymaps = require("lcursor.editor.keymaps")
local list = require("lcursor.ui.list")
local load = require("lcursor.chat.load")
local notify = require("lcursor.ui.notify")
local numbers = require("lcursor.text.numbers")
local requests = require("lcursor.host.requests")
local send = require("lcursor.chat.send")
local tail = require("lcursor.text").tail
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
---@field counted? lcursor.ChatPreviewed
---@field id? integer of the request
---@field undo string[][] keys that were dropped together, the last ones at the end

--- Return a function that shows an item of a prompt in a line.
---@param session? lcursor.ChatSession whose next question leaves items out
---@return fun(item: lcursor.ChatItem): lcursor.Cells
local function cells_for(session)
  return function(item)
    local is_dropped = session ~= nil and vim.list_contains(session.dropped, item.key)
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
  end
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

---@param view lcursor.ContextView
---@return string
local function summary(view)
  local counted = view.counted
  if not counted then
    return "context"
  end
  local total, limit, is_exact = counted.total_tokens, counted.limit_tokens, true
  for _, item in ipairs(counted.items) do
    is_exact = is_exact and (item.is_exact or item.is_left_out)
    local is_dropped = vim.list_contains(view.session.dropped, item.key)
    if is_dropped and not item.is_left_out then
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

---@return integer number of the message before the question; 0 for none
local function number_before(view)
  local session = view.session
  local index = entries.index(session, view.entry) or #session.entries
  local before = session.messages[index - 1]
  return before and before.number or 0
end

--- Have the tokens of what would be sent counted.
---@param view lcursor.ContextView
---@param done fun(items: lcursor.ChatItem[])
---@param failed fun()
local function count(view, done, failed)
  local session = view.session
  local text = entries.text(session, view.entry)
  requests.forget(view.id)
  load.when_open(session, function()
    local params = send.params(session, text, number_before(view), {}, view.entry.message)
    view.id = requests.ask("chat.preview", params, function(counted)
      view.counted = counted
      done(counted.items)
    end, failed)
  end)
end

local function set_dropped(view, opened, keys)
  view.session.dropped = keys
  entries.decorate(view.session, entries.draft(view.session))
  list.draw(opened)
  list.load(opened)
end

---@param view lcursor.ContextView
---@return fun(items: lcursor.ChatItem[], opened: lcursor.List)
local function drop(view)
  return function(items, opened)
    local keys, fixed, dropped = {}, nil, view.session.dropped
    for _, item in ipairs(items) do
      if format.FIXED[item.kind] then
        fixed = item
      elseif not vim.list_contains(dropped, item.key) and not item.is_left_out then
        table.insert(keys, item.key)
      end
    end
    if #keys == 0 then
      return notify.info(fixed and NOT_DROPPED[fixed.kind] or "already left out")
    end
    table.insert(view.undo, keys)
    set_dropped(view, opened, vim.list_extend(vim.list_slice(dropped), keys))
  end
end

---@param view lcursor.ContextView
---@return fun(opened: lcursor.List)
local function restore(view)
  return function(opened)
    local keys = table.remove(view.undo)
    if not keys then
      return notify.info("nothing to restore")
    end
    local left = vim.tbl_filter(function(key)
      return not vim.list_contains(keys, key)
    end, view.session.dropped)
    set_dropped(view, opened, left)
  end
end

---@param item lcursor.ChatItem
local function jump(item)
  if item.path == "" then
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
  ---@type lcursor.ContextView
  local view = { session = session, entry = entry, undo = {} }
  local function send_question()
    local win = window.find(session)
    if win then
      api.nvim_set_current_win(win)
    end
    send.send(session, {}, entry)
  end
  local keys = {
    { "dd", "drop", drop(view), on = "chosen" },
    { "u", "restore", restore(view), on = "list" },
    { "<CR>", "send", send_question, on = "list", closes = true },
    { "gf", "jump", jump },
    { "R", "", list.load, on = "list" },
  }
  local send_key = keymaps.shown("chat", "send", session.buf)
  if send_key then
    table.insert(keys, { send_key, "", send_question, on = "list", closes = true })
  end
  list.open({
    name = "context",
    over = window.find(session),
    cells = cells_for(session),
    right = 4,
    head = function()
      return summary(view)
    end,
    loading = "counting …",
    load = function(done, opened)
      count(view, done, function()
        if not view.counted then
          list.close(opened)
        end
      end)
    end,
    keys = keys,
  })
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
  local head = ("%d sent, %s tokens"):format(#items - left_out, numbers.grouped(tokens))
  head = left_out > 0 and ("%s; %d left out"):format(head, left_out) or head
  local function show_quickfix()
    to_quickfix(items)
  end
  list.open({
    name = "sources",
    over = window.find(session),
    cells = cells_for(),
    right = 4,
    head = function()
      return head
    end,
    load = function(done)
      done(items)
    end,
    keys = {
      { "<CR>", "jump", jump },
      { "<C-q>", "quickfix", show_quickfix, on = "list", closes = true },
      { "gf", "", jump },
    },
  })
end

return M
