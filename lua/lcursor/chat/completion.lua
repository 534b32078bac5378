-- Completes `@` and `/` in a chat and in the prompt of edits while the user types: the host
-- answers, and Neovim's own menu shows it. Also 'omnifunc', to ask by hand.

local buffer = require("lcursor.chat.buffer")
local mentions = require("lcursor.chat.mentions")
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")
local sessions = require("lcursor.chat.sessions")

local M = {}

local api = vim.api
local DELAY_MS = 25
local KINDS = { dir = "folder", symbol = "symbol" }
local TAB = "lcursor chat: accept"

---@class (exact) lcursor.ChatCompletion
---@field buf integer
---@field find fun(): string?, integer? the mention at the cursor, and where it begins
---@field path fun(): string absolute
---@field id? integer of the request
---@field word string that was asked for last
---@field offered table<string, boolean>
---@field is_blink_off boolean

---@type table<integer, lcursor.ChatCompletion> by buffer
local states = {}

---@param session lcursor.ChatSession
---@return string? word
---@return integer? col from 0
local function find_in_chat(session)
  local buf = session.buf
  if api.nvim_get_current_buf() ~= buf then
    return nil
  end
  local cursor = api.nvim_win_get_cursor(0)
  local row = cursor[1] - 1
  local span = buffer.span_at(session, row)
  if not span or (span.message and span.message.role ~= "user") then
    return nil
  end
  local first = buffer.rows(session, span)
  local above = api.nvim_buf_get_lines(buf, first, math.max(row, first), false)
  local text = table.concat(above, "\n")
  local before = api.nvim_get_current_line():sub(1, cursor[2])
  local word, col = mentions.word(before, not text:find("%S"))
  -- A marker in place of the word shows whether it is in code.
  local marked = text .. "\n" .. before:sub(1, col or 0) .. "\1"
  if word and mentions.without_code(marked):find("\1", 1, true) then
    return word, col
  end
end

---@return string? word
---@return integer? col from 0
local function find_in_prompt(buf)
  if api.nvim_get_current_buf() == buf then
    local cursor = api.nvim_win_get_cursor(0)
    return mentions.word(api.nvim_get_current_line():sub(1, cursor[2]), cursor[1] == 1)
  end
end

--- Map <Tab> while the menu is open, unless the user has mapped it in this buffer.
---@param buf integer
local function map_tab(buf)
  if vim.fn.maparg("<Tab>", "i", false, true).buffer ~= 1 then
    vim.keymap.set("i", "<Tab>", "<C-y>", { buffer = buf, desc = TAB })
  end
end

---@param buf integer
local function unmap_tab(buf)
  if vim.fn.maparg("<Tab>", "i", false, true).desc == TAB then
    vim.keymap.del("i", "<Tab>", { buffer = buf })
  end
end

---@param state lcursor.ChatCompletion
---@param words { word: string, kind: string, info: string }[]
local function show(state, words)
  local word, col = state.find()
  if word ~= state.word or not api.nvim_get_mode().mode:find("^i") then
    return
  end
  state.offered = {}
  local is_complete = #words == 1 and words[1].word == word
  local items = vim.tbl_map(function(each)
    state.offered[each.word] = true
    return {
      word = each.word,
      kind = KINDS[each.kind] or "",
      menu = each.info,
      icase = 1,
      equal = 1, -- the host has filtered; each key asks again
    }
  end, is_complete and {} or words)
  if #items > 0 or vim.fn.pumvisible() == 1 then
    vim.fn.complete(col + 1, items)
  end
  if #items > 0 then
    map_tab(state.buf) -- after complete(), which ends the menu before
  end
end

---@param state lcursor.ChatCompletion
local function ask(state)
  requests.forget(state.id)
  local word = state.find()
  state.id, state.word = nil, word or ""
  if word then
    state.id = requests.ask("chat.complete", { path = state.path(), word = word }, function(answer)
      show(state, answer.words)
    end)
  end
end

--- Keep blink.cmp from showing its menu over ours.
---@param state lcursor.ChatCompletion
---@param is_ours boolean
local function set_blink(state, is_ours)
  local buf = state.buf
  if is_ours and vim.b[buf].completion == nil then
    vim.b[buf].completion, state.is_blink_off = false, true
  elseif not is_ours and state.is_blink_off then
    vim.b[buf].completion, state.is_blink_off = nil, false
  end
end

--- Keep nvim-cmp from showing its menu over ours.
---@param state lcursor.ChatCompletion
local function set_cmp(state)
  local cmp = package.loaded["cmp"]
  if type(cmp) == "table" and type(cmp.setup) == "table" then
    pcall(cmp.setup.buffer, {
      enabled = function()
        return state.find() == nil
      end,
    })
  end
end

---@param state lcursor.ChatCompletion
---@param is_menu boolean
local function on_text_changed(state, is_menu)
  local word = state.find()
  set_blink(state, word ~= nil)
  if not word then
    state.word = ""
  elseif word ~= state.word and not (is_menu and state.offered[word]) then -- typed, not selected
    notify.later(DELAY_MS, function()
      if state.find() == word then
        ask(state)
      end
    end)
  end
end

---@param buf integer
---@param find fun(): string?, integer?
---@param path fun(): string
local function attach(buf, find, path)
  ---@type lcursor.ChatCompletion
  local state =
    { buf = buf, find = find, path = path, word = "", offered = {}, is_blink_off = false }
  states[buf] = state
  vim.bo[buf].omnifunc = "v:lua.require'lcursor.chat.completion'.omnifunc"
  vim.bo[buf].completeopt = "menuone,noinsert"
  local function on(events, callback)
    api.nvim_create_autocmd(events, { buffer = buf, callback = notify.guarded(callback) })
  end
  on({ "TextChangedI", "TextChangedP" }, function(event)
    on_text_changed(state, event.event == "TextChangedP")
  end)
  on("CompleteDone", function()
    unmap_tab(buf)
    local word = state.find()
    if vim.v.event.reason == "accept" and word and word:find("[:/]$") then
      vim.schedule(notify.guarded(function()
        ask(state)
      end))
    end
  end)
  on("InsertEnter", function()
    set_cmp(state) -- it is loaded by then
  end)
  on("InsertLeave", function()
    state.word = ""
    set_blink(state, false)
  end)
  on("BufWipeout", function()
    requests.forget(state.id)
    states[buf] = nil
  end)
end

--- Complete in the buffer of a chat.
---@param session lcursor.ChatSession
function M.attach(session)
  attach(session.buf, function()
    return find_in_chat(session)
  end, sessions.current_path)
end

--- Complete in a buffer that has nothing but a question.
---@param buf integer
---@param path string absolute: what it is about
function M.attach_prompt(buf, path)
  attach(buf, function()
    return find_in_prompt(buf)
  end, function()
    return path
  end)
end

--- 'omnifunc': asks; the menu opens when the answer comes.
---@param findstart integer
---@return integer|table
function M.omnifunc(findstart)
  if findstart ~= 1 then
    return {}
  end
  local state = states[api.nvim_get_current_buf()]
  if state then
    vim.schedule(notify.guarded(function()
      ask(state)
    end))
  end
  return -3
end

return M
