-- Completes `@` and `/` in a chat while one types: asks Python with each key, and shows the answer
-- in Neovim's own menu if the word is still the same. Also 'omnifunc', for those who ask by hand.

local config = require("lcursor.config")
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")
local spelled = require("lcursor.chat.spelled")
local state = require("lcursor.chat.state")

local M = {}

local api = vim.api
local WAIT_MS = 25
local KINDS = { dir = "folder", symbol = "symbol" } -- of the others the sign says enough

---@class (exact) lcursor.ChatWords
---@field asked? integer
---@field word string that was asked for last
---@field offered table<string, boolean> words that the menu has
---@field timer uv.uv_timer_t
---@field is_hushed boolean other menus are kept away

---@type table<integer, lcursor.ChatWords> by buffer
local known = {}

---@param session lcursor.ChatSession
---@return string? word
---@return integer? col 0-based
local function at_cursor(session)
  local buf = session.buf
  if api.nvim_get_current_buf() ~= buf then
    return nil
  end
  local cursor = api.nvim_win_get_cursor(0)
  local row = cursor[1] - 1
  local buffer = require("lcursor.chat.buffer")
  local span = buffer.at(session, row)
  if not span or (span.message and span.message.role ~= "user") then
    return nil
  end
  local first = buffer.rows(session, span)
  local above = api.nvim_buf_get_lines(buf, first, math.max(row, first), false)
  local text = table.concat(above, "\n")
  local before = api.nvim_get_current_line():sub(1, cursor[2])
  local word, col = spelled.word(before, not text:find("%S"))
  if not word then
    return nil
  end
  -- Where a mention would be code it is none: what stands before the sign has to survive.
  local marked = text .. "\n" .. before:sub(1, col) .. "\1"
  if not spelled.prose(marked):find("\1", 1, true) then
    return nil
  end
  return word, col
end

---@param buf integer
local function unmap(buf)
  local map = vim.fn.maparg("<Tab>", "i", false, true)
  if map.buffer == 1 and map.desc == "lcursor chat: take it" then
    vim.keymap.del("i", "<Tab>", { buffer = buf })
  end
end

---@param buf integer
local function map(buf)
  if vim.fn.maparg("<Tab>", "i", false, true).buffer == 1 then
    return -- it is somebody's
  end
  vim.keymap.set("i", "<Tab>", "<C-y>", { buffer = buf, desc = "lcursor chat: take it" })
end

---@param session lcursor.ChatSession
---@param words { word: string, kind: string, info: string }[]
local function show(session, words)
  local mine = known[session.buf]
  local word, col = at_cursor(session)
  if not mine or word ~= mine.word or not api.nvim_get_mode().mode:find("^i") then
    return
  end
  mine.offered = {}
  local items = {}
  for _, each in ipairs(words) do
    mine.offered[each.word] = true
    table.insert(items, {
      word = each.word,
      kind = KINDS[each.kind] or "",
      menu = each.info,
      icase = 1,
      equal = 1, -- Python has sorted out what fits; each key asks anew
    })
  end
  local is_done = #items == 1 and items[1].word == word
  if is_done then
    items = {}
  end
  if #items == 0 and vim.fn.pumvisible() == 0 then
    return
  end
  vim.fn.complete(col + 1, items)
  if #items > 0 then
    map(session.buf) -- not before: the menu that was there says that it is done
  end
end

---@param session lcursor.ChatSession
local function ask(session)
  local mine, word = known[session.buf], at_cursor(session)
  if not mine then
    return
  end
  requests.forget(mine.asked)
  mine.asked, mine.word = nil, word or ""
  if not word then
    return
  end
  local path = state.here()
  mine.asked = requests.ask("chat.complete", { path = path, word = word }, function(answer)
    show(session, answer.words)
  end)
end

--- Keep blink.cmp and nvim-cmp from showing a menu of theirs over ours.
---@param buf integer
---@param is_ours boolean whether a mention is being typed
local function hush(buf, is_ours)
  if is_ours and vim.b[buf].completion == nil then
    vim.b[buf].completion = false -- blink.cmp looks at it with each key
    known[buf].is_hushed = true
  elseif not is_ours and known[buf].is_hushed then
    vim.b[buf].completion = nil
    known[buf].is_hushed = false
  end
end

---@param session lcursor.ChatSession
local function hush_cmp(session)
  local cmp = package.loaded["cmp"]
  if type(cmp) == "table" and type(cmp.setup) == "table" then
    api.nvim_buf_call(session.buf, function()
      pcall(cmp.setup.buffer, {
        enabled = function()
          return at_cursor(session) == nil
        end,
      })
    end)
  end
end

---@param session lcursor.ChatSession
---@param is_menu boolean
local function typed(session, is_menu)
  local mine = known[session.buf]
  local word = at_cursor(session)
  hush(session.buf, word ~= nil)
  if not word then
    mine.word = ""
    mine.timer:stop()
    return
  end
  if word == mine.word or (is_menu and mine.offered[word]) then
    return -- it was chosen, not typed
  end
  mine.timer:start(
    WAIT_MS,
    0,
    vim.schedule_wrap(notify.guarded(function()
      if known[session.buf] == mine then
        ask(session)
      end
    end))
  )
end

--- Begin to complete in a chat's buffer.
---@param session lcursor.ChatSession
function M.start(session)
  local buf = session.buf
  if known[buf] then
    return
  end
  known[buf] = { word = "", offered = {}, timer = assert(vim.uv.new_timer()), is_hushed = false }
  vim.bo[buf].omnifunc = "v:lua.require'lcursor.chat.mentions'.omnifunc"
  -- The first is chosen and not inserted: <CR>, <C-y> and <Tab> take it, typing goes on.
  vim.bo[buf].completeopt = "menuone,noinsert"
  local function on(events, callback)
    api.nvim_create_autocmd(events, { buffer = buf, callback = notify.guarded(callback) })
  end
  on("TextChangedI", function()
    typed(session, false)
  end)
  on("TextChangedP", function()
    typed(session, true)
  end)
  on("CompleteDone", function()
    unmap(buf)
    local word = at_cursor(session)
    if vim.v.event.reason == "accept" and word and word:find("[:/]$") then
      vim.schedule(notify.guarded(function()
        ask(session)
      end))
    end
  end)
  on("InsertEnter", function()
    hush_cmp(session) -- by then it is loaded, if it is used
  end)
  on("InsertLeave", function()
    known[buf].timer:stop()
    known[buf].word = ""
    hush(buf, false)
  end)
  on({ "BufWipeout", "BufDelete" }, function()
    if known[buf] then
      known[buf].timer:close()
      requests.forget(known[buf].asked)
      known[buf] = nil
    end
  end)
end

--- 'omnifunc': asks, and shows what comes when it comes.
---@param findstart integer
---@return integer|table
function M.omnifunc(findstart)
  if findstart ~= 1 then
    return {}
  end
  local session = state.of(api.nvim_get_current_buf())
  if session and config.get().chat.enabled then
    vim.schedule(notify.guarded(function()
      ask(session)
    end))
  end
  return -3
end

return M
