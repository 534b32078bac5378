-- Completes `@` and `/` in a chat while the user types: the host answers, and Neovim's own menu
-- shows it. Also 'omnifunc', to ask by hand.

local buffer = require("lcursor.chat.buffer")
local config = require("lcursor.config")
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
---@field id? integer of the request
---@field word string that was asked for last
---@field offered table<string, boolean>
---@field is_blink_off boolean

---@type table<integer, lcursor.ChatCompletion> by buffer
local states = {}

---@param session lcursor.ChatSession
---@return string? word
---@return integer? col from 0
local function word_at_cursor(session)
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

---@param session lcursor.ChatSession
---@param words { word: string, kind: string, info: string }[]
local function show(session, words)
  local state = states[session.buf]
  local word, col = word_at_cursor(session)
  if not state or word ~= state.word or not api.nvim_get_mode().mode:find("^i") then
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
    map_tab(session.buf) -- after complete(), which ends the menu before
  end
end

---@param session lcursor.ChatSession
local function ask(session)
  local state = states[session.buf]
  if not state then
    return
  end
  requests.forget(state.id)
  local word = word_at_cursor(session)
  state.id, state.word = nil, word or ""
  if word then
    local params = { path = sessions.current_path(), word = word }
    state.id = requests.ask("chat.complete", params, function(answer)
      show(session, answer.words)
    end)
  end
end

--- Keep blink.cmp from showing its menu over ours.
---@param buf integer
---@param is_ours boolean
local function set_blink(buf, is_ours)
  local state = states[buf]
  if is_ours and vim.b[buf].completion == nil then
    vim.b[buf].completion, state.is_blink_off = false, true
  elseif not is_ours and state.is_blink_off then
    vim.b[buf].completion, state.is_blink_off = nil, false
  end
end

--- Keep nvim-cmp from showing its menu over ours.
---@param session lcursor.ChatSession
local function set_cmp(session)
  local cmp = package.loaded["cmp"]
  if type(cmp) == "table" and type(cmp.setup) == "table" then
    pcall(cmp.setup.buffer, {
      enabled = function()
        return word_at_cursor(session) == nil
      end,
    })
  end
end

---@param session lcursor.ChatSession
---@param is_menu boolean
local function on_text_changed(session, is_menu)
  local state = states[session.buf]
  local word = word_at_cursor(session)
  set_blink(session.buf, word ~= nil)
  if not word then
    state.word = ""
  elseif word ~= state.word and not (is_menu and state.offered[word]) then -- typed, not selected
    vim.defer_fn(
      notify.guarded(function()
        if word_at_cursor(session) == word then
          ask(session)
        end
      end),
      DELAY_MS
    )
  end
end

--- Complete in the buffer of a chat.
---@param session lcursor.ChatSession
function M.attach(session)
  local buf = session.buf
  states[buf] = { word = "", offered = {}, is_blink_off = false }
  vim.bo[buf].omnifunc = "v:lua.require'lcursor.chat.completion'.omnifunc"
  vim.bo[buf].completeopt = "menuone,noinsert"
  local function on(events, callback)
    api.nvim_create_autocmd(events, { buffer = buf, callback = notify.guarded(callback) })
  end
  on("TextChangedI", function()
    on_text_changed(session, false)
  end)
  on("TextChangedP", function()
    on_text_changed(session, true)
  end)
  on("CompleteDone", function()
    unmap_tab(buf)
    local word = word_at_cursor(session)
    if vim.v.event.reason == "accept" and word and word:find("[:/]$") then
      vim.schedule(notify.guarded(function()
        ask(session)
      end))
    end
  end)
  on("InsertEnter", function()
    set_cmp(session) -- it is loaded by then
  end)
  on("InsertLeave", function()
    states[buf].word = ""
    set_blink(buf, false)
  end)
  on("BufWipeout", function()
    requests.forget(states[buf].id)
    states[buf] = nil
  end)
end

--- 'omnifunc': asks; the menu opens when the answer comes.
---@param findstart integer
---@return integer|table
function M.omnifunc(findstart)
  if findstart ~= 1 then
    return {}
  end
  local session = sessions.of_buffer(api.nvim_get_current_buf())
  if session and config.get().chat.enabled then
    vim.schedule(notify.guarded(function()
      ask(session)
    end))
  end
  return -3
end

return M
