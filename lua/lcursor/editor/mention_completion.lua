-- Completes mentions and commands (`@file:a.py`, `/explain`) in a chat and in the prompt of edits,
-- as a language server: native completion, blink.cmp and nvim-cmp all show what it answers. It asks
-- the host. Where no plugin does it, Neovim's own menu opens while the user types.

local menu = require("lcursor.ui.menu")
local mentions = require("lcursor.editor.mentions")
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local server = require("lcursor.ui.lsp_server")

local M = {}

local api = vim.api
local KIND = vim.lsp.protocol.CompletionItemKind
local KINDS = { file = KIND.File, buffer = KIND.File, dir = KIND.Folder, symbol = KIND.Reference }
local MAX_DESCRIPTION = 20
local CAPABILITIES = { completionProvider = { triggerCharacters = { "@", "/", ":" } } }

---@class (exact) lcursor.MentionBuffer a buffer in which mentions are completed
---@field find fun(): string?, integer? the mention at the cursor, and where it begins
---@field path fun(): string absolute
---@field word? string that was asked for last

---@type table<integer, lcursor.MentionBuffer> by buffer
local states = {}

---@return string? word
---@return integer? col from 0
local function find_in_prompt()
  local cursor = api.nvim_win_get_cursor(0)
  return mentions.word(api.nvim_get_current_line():sub(1, cursor[2]), cursor[1] == 1)
end

--- Find the mention at the cursor.
---@return lcursor.MentionBuffer? state nil where there is none
---@return string word
---@return integer col where it begins, from 0
local function find()
  local state = states[api.nvim_get_current_buf()]
  local word, col
  if state then
    word, col = state.find()
  end
  return word and state, word or "", col or 0
end

---@param words { word: string, kind: string, info: string }[] the best first
---@param range lsp.Range
---@return lsp.CompletionItem[]
local function items_of(words, range)
  local items = {}
  for i, each in ipairs(words) do
    items[i] = {
      label = each.word,
      labelDetails = { description = each.info },
      kind = KINDS[each.kind] or KIND.Keyword,
      -- Menus cut off long descriptions.
      documentation = #each.info > MAX_DESCRIPTION and each.info or nil,
      sortText = ("%04d"):format(i),
      textEdit = { range = range, newText = each.word },
    }
  end
  return items
end

---@type lcursor.LspHandlers
local handlers = {}

handlers["textDocument/completion"] = function(call)
  local state, word, col = find()
  local line, row = api.nvim_get_current_line(), api.nvim_win_get_cursor(0)[1] - 1
  local function position(column)
    return { line = row, character = vim.str_utfindex(line, call.encoding, column, false) }
  end
  local function reply(words)
    local range = { start = position(col), ["end"] = position(col + #word) }
    call.reply(nil, { isIncomplete = state ~= nil, items = items_of(words, range) })
  end
  if not state then
    return reply({})
  end
  state.word = word
  local params = { path = state.path(), word = word }
  local id = requests.ask("chat.complete", params, function(answer)
    local now, typed = find()
    local words = answer.words
    local is_complete = #words == 1 and words[1].word == word
    reply(now == state and typed == word and not is_complete and words or {})
  end, function()
    reply({})
  end, true)
  call.cancel = function()
    requests.forget(id)
  end
  if not id then
    reply({})
  end
end

--- Attach the server to a buffer.
---@return vim.lsp.Client?
local function start(buf)
  local client = server.client("lcursor-chat", CAPABILITIES, handlers)
  if client then
    server.attach(client, buf)
  end
  return client
end

--- Return what Neovim's menu shows of an item. By itself, it inserts no more than the first word of
--- a text edit, and compares the items with what is typed, which the host has done.
---@param item lsp.CompletionItem
---@return table
local function convert(item)
  return { word = item.textEdit.newText, menu = item.labelDetails.description, equal = 1 }
end

--- Open Neovim's own menu, unless a plugin has one. Its own trigger continues from there, but opens
--- nothing after a deletion or after an accepted word.
---@param state lcursor.MentionBuffer
local function on_text_changed(buf, state)
  local is_mention, word = find()
  if not is_mention then
    state.word = nil
  elseif word ~= state.word then
    local client, is_native = start(buf), not menu.is_plugin()
    if client then
      local opts = { autotrigger = true, convert = convert }
      vim.lsp.completion.enable(is_native, client.id, buf, opts)
    end
    if is_native then
      vim.lsp.completion.get()
    end
  end
end

--- Complete in a buffer.
---@param state lcursor.MentionBuffer
function M.attach(buf, state)
  states[buf] = state
  start(buf)
  vim.bo[buf].completeopt = "menuone,noinsert"
  local function on(event, callback)
    api.nvim_create_autocmd(event, { buffer = buf, callback = notify.guarded(callback) })
  end
  on("TextChangedI", function()
    on_text_changed(buf, state)
  end)
  on("BufWipeout", function()
    states[buf] = nil
  end)
end

--- Complete in a buffer that has nothing but a question.
---@param path string absolute: what it is about
function M.attach_prompt(buf, path)
  M.attach(buf, {
    find = find_in_prompt,
    path = function()
      return path
    end,
  })
end

return M
