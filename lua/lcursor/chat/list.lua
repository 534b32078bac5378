-- `:LCursor chats`: the stored chats in a window, to resume, rename, delete or export. What is
-- stored is Python's; this shows it and asks.

local window = require("lcursor.ui.window")
local requests = require("lcursor.requests")
local sheet = require("lcursor.ui.list")
local state = require("lcursor.chat.state")
local ago = require("lcursor.text").ago
local many = require("lcursor.text").many
local short = require("lcursor.text").short
local transcript = require("lcursor.chat.transcript")

local M = {}

local api = vim.api
local MOST_TITLE, MOST_PREVIEW = 48, 80

---@class (exact) lcursor.ChatShelf
---@field sheet lcursor.List
---@field path string absolute: of the project; "" for all
---@field home string absolute: of the project that one is in
---@field rows lcursor.ChatRow[]
---@field note string

---@type lcursor.ChatShelf?
local current

--- The lines of the list.
---@param rows lcursor.ChatRow[]
---@param now_s number
---@param is_all boolean whether they are of many projects
---@return lcursor.Cells[]
function M.cells(rows, now_s, is_all)
  local ages, titles, roots = 0, 0, 0
  for _, row in ipairs(rows) do
    ages = math.max(ages, #ago(now_s - row.updated_s))
    titles = math.max(titles, vim.fn.strdisplaywidth(short(row.title, MOST_TITLE)))
    roots = math.max(roots, vim.fn.strdisplaywidth(vim.fs.basename(row.root)))
  end
  local function fill(text, cells)
    return text .. (" "):rep(cells - vim.fn.strdisplaywidth(text))
  end
  return vim.tbl_map(function(row)
    local is_open = state.named(row.chat) ~= nil
    local title = short(row.title ~= "" and row.title or row.preview, MOST_TITLE)
    local preview = short(row.preview, MOST_PREVIEW)
    local start, cuts = title:gsub("…$", "")
    local is_same = preview == title or (cuts > 0 and vim.startswith(preview, start))
    local project = is_all and ("  " .. fill(vim.fs.basename(row.root), roots)) or ""
    return {
      { is_open and "* " or "  ", "LCursorChatTokens" },
      { fill(ago(now_s - row.updated_s), ages) .. "  ", "LCursorChatNote" },
      { fill(title, titles), "LCursorChatTitle" },
      { project, "LCursorHitFile" },
      { ("  %3d  "):format(row.messages), "LCursorChatNote" },
      { is_same and "" or preview, "LCursorChatNote" },
    }
  end, rows)
end

---@param shelf lcursor.ChatShelf
local function draw(shelf)
  local cells = M.cells(shelf.rows, os.time(), shelf.path == "")
  local where = shelf.path == "" and "all projects" or "this project"
  local head = ("%s of %s"):format(many(#shelf.rows, "chat"), where)
  head = shelf.note ~= "" and ("%s (%s)"):format(head, shelf.note) or head
  local help = "<CR> opens, r renames, dd deletes, e exports, a other projects too, q closes"
  if #cells == 0 then
    cells = { { { "  no chat yet; :LCChat begins one", "LCursorChatNote" } } }
  end
  sheet.fill(shelf.sheet, cells, shelf.rows, head, help)
end

---@param shelf lcursor.ChatShelf
local function ask(shelf)
  requests.ask("chat.list", { path = shelf.path }, function(listed)
    if current == shelf and sheet.is_open(shelf.sheet) then
      shelf.rows, shelf.note = listed.chats, listed.note
      draw(shelf)
    end
  end)
end

---@param row lcursor.ChatRow
local function open(row)
  local shelf = current
  if shelf then
    sheet.close(shelf.sheet)
  end
  require("lcursor.chat").open({ chat = row.chat, path = row.root })
end

---@param row lcursor.ChatRow
local function rename(row)
  vim.ui.input({ prompt = "Title: ", default = row.title }, function(title)
    if not title or not title:find("%S") or title == row.title then
      return
    end
    M.rename(row.chat, title, function()
      if current and sheet.is_open(current.sheet) then
        row.title = vim.trim(title)
        draw(current)
      end
    end)
  end)
end

--- Give a chat another title.
---@param chat string
---@param title string
---@param done? fun()
function M.rename(chat, title, done)
  local session = state.named(chat)
  requests.ask("chat.rename", { chat = chat, title = title }, function(opened)
    if session then
      session.title = opened.title
      require("lcursor.chat.winbar").draw(session)
    end
    if done then
      done()
    end
  end)
end

---@param rows lcursor.ChatRow[]
local function delete(rows)
  local shelf = current
  if not shelf or #rows == 0 then
    return
  end
  local what = #rows == 1 and ('the chat "%s"'):format(short(rows[1].title, MOST_TITLE))
    or ("%d chats"):format(#rows)
  window.confirm(("Delete %s for good?"):format(what), function()
    for _, row in ipairs(rows) do
      M.delete(row.chat, function()
        shelf.rows = vim.tbl_filter(function(other)
          return other.chat ~= row.chat
        end, shelf.rows)
        if current == shelf and sheet.is_open(shelf.sheet) then
          draw(shelf)
        end
      end)
    end
  end)
end

--- Delete a chat for good, and its buffer.
---@param chat string
---@param done? fun()
function M.delete(chat, done)
  requests.ask("chat.delete", { chat = chat }, function()
    local session = state.named(chat)
    if session and api.nvim_buf_is_valid(session.buf) then
      require("lcursor.chat.window").close(session)
      api.nvim_buf_delete(session.buf, { force = true })
    end
    if done then
      done()
    end
  end)
end

--- Write a stored chat as markdown.
---@param row lcursor.ChatRow
local function export(row)
  local session = state.named(row.chat)
  if session then
    return transcript.save(session.title, session.messages, "")
  end
  requests.ask("chat.open", { chat = row.chat, path = row.root }, function(opened)
    transcript.save(opened.title, opened.messages, "")
  end)
end

--- Show the chats of the project that one is in.
---@param is_all? boolean of all projects
function M.open(is_all)
  local home = state.here()
  local opened = sheet.open("chats")
  ---@type lcursor.ChatShelf
  local shelf =
    { sheet = opened, path = is_all and "" or home, home = home, rows = {}, note = "asking" }
  current = shelf
  local function here(fn)
    return function()
      local row = sheet.here(opened)
      if row then
        fn(row)
      end
    end
  end
  local function drop()
    delete(sheet.chosen(opened))
  end
  sheet.map(opened, {
    ["<CR>"] = here(open),
    r = here(rename),
    dd = drop,
    e = here(export),
    a = function()
      shelf.path = shelf.path == "" and shelf.home or ""
      ask(shelf)
    end,
    R = function()
      ask(shelf)
    end,
  }, { d = drop })
  draw(shelf)
  ask(shelf)
end

--- The newest chat of a project.
---@param path? string absolute; nil is where one is
---@param done fun(key: string) "" where there is none
function M.newest(path, done)
  requests.ask("chat.list", { path = path or state.here() }, function(listed)
    done(listed.chats[1] and listed.chats[1].chat or "")
  end)
end

return M
