-- The list of stored chats: open, rename, delete, export. The host stores them.

local ago = require("lcursor.text").ago
local buffers = require("lcursor.editor.buffers")
local export = require("lcursor.chat.export")
local format = require("lcursor.chat.format")
local many = require("lcursor.text").many
local ui = require("lcursor.ui.window")
local requests = require("lcursor.host.requests")
local sessions = require("lcursor.conversation.sessions")
local ui_list = require("lcursor.ui.list")
local short = require("lcursor.text").short
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api
local MAX_TITLE, MAX_PREVIEW = 48, 80

---@class (exact) lcursor.ChatList
---@field ui lcursor.List
---@field path string absolute; "" for all projects
---@field rows lcursor.ChatRow[]
---@field note string

---@type lcursor.ChatList?
local current

---@return string "" if the title says the same
local function preview_of(title, preview)
  preview = short(preview, MAX_PREVIEW)
  local start, cuts = title:gsub("…$", "")
  local is_same = preview == title or (cuts > 0 and vim.startswith(preview, start))
  return is_same and "" or preview
end

---@param rows lcursor.ChatRow[]
---@param is_all? boolean of all projects
---@return lcursor.Cells[]
local function cells_of(rows, is_all)
  local cells = vim.tbl_map(function(row)
    local title = short(row.title ~= "" and row.title or row.preview, MAX_TITLE)
    local root = is_all and "  " .. vim.fs.basename(row.root) or ""
    return {
      { sessions.of_key("chat", row.chat) and "* " or "  ", "LCursorChatTokens" },
      { ago(os.time() - row.updated_s), "LCursorChatNote" },
      { "  " .. title, "LCursorChatTitle" },
      { root, "LCursorHitFile" },
      { ("  %3d  "):format(row.messages), "LCursorChatNote" },
      { preview_of(title, row.preview), "LCursorChatNote" },
    }
  end, rows)
  format.align(cells)
  return cells
end

---@param row lcursor.ChatRow
local function open_row(row)
  require("lcursor.chat").open({ chat = row.chat, path = row.root })
end

local function draw(list)
  if current ~= list or not ui_list.is_open(list.ui) then
    return
  end
  local rows = cells_of(list.rows, list.path == "")
  local where = list.path == "" and "all projects" or "this project"
  local head = ("%s of %s"):format(many(#list.rows, "chat"), where)
  head = list.note ~= "" and ("%s (%s)"):format(head, list.note) or head
  if #rows == 0 then
    rows = { { { "  no chats yet; :LCChat starts one", "LCursorChatNote" } } }
  end
  local keys = "<CR> open, r rename, dd delete, e export, a all projects, q close"
  ui_list.fill(list.ui, rows, list.rows, head, keys)
end

local function load(list)
  requests.ask("chat.list", { path = list.path }, function(listed)
    list.rows, list.note = listed.chats, listed.note
    draw(list)
  end)
end

--- Rename a chat; asks for the title if there is none.
---@param key string
---@param title string "" asks for it
---@param old string
---@param done? fun(title: string)
function M.rename(key, title, old, done)
  if title == "" then
    vim.ui.input({ prompt = "Title: ", default = old }, function(new)
      if new and new:find("%S") and new ~= old then
        M.rename(key, vim.trim(new), old, done)
      end
    end)
    return
  end
  requests.ask("chat.rename", { chat = key, title = title }, function(opened)
    local session = sessions.of_key("chat", key)
    if session then
      session.title = opened.title
      window.draw(session)
    end
    if done then
      done(opened.title)
    end
  end)
end

local function delete(key, done)
  requests.ask("chat.delete", { chat = key }, function()
    local session = sessions.of_key("chat", key)
    if session and api.nvim_buf_is_valid(session.buf) then
      window.close(session)
      api.nvim_buf_delete(session.buf, { force = true })
    end
    if done then
      done()
    end
  end)
end

--- Delete chats and their buffers, after a question.
---@param rows { chat: string, title: string }[]
---@param done? fun(key: string) called for each
function M.delete(rows, done)
  if #rows == 0 then
    return
  end
  local title = rows[1].title ~= "" and short(rows[1].title, MAX_TITLE) or "new chat"
  local what = #rows == 1 and ('the chat "%s"'):format(title) or ("%d chats"):format(#rows)
  ui.confirm(("Delete %s permanently?"):format(what), function()
    for _, row in ipairs(rows) do
      delete(row.chat, function()
        if done then
          done(row.chat)
        end
      end)
    end
  end)
end

local function export_row(row)
  local session = sessions.of_key("chat", row.chat)
  if session then
    return export.save(session.title, session.messages, "")
  end
  requests.ask("chat.open", { chat = row.chat, path = row.root }, function(opened)
    export.save(opened.title, opened.messages, "")
  end)
end

--- Show the chats of the current project.
---@param is_all? boolean of all projects
function M.open(is_all)
  local project = buffers.here()
  local opened = ui_list.open("chats")
  ---@type lcursor.ChatList
  local list = { ui = opened, path = is_all and "" or project, rows = {}, note = "loading" }
  current = list
  local function with_row(fn)
    return function()
      local row = ui_list.here(opened)
      if row then
        fn(row)
      end
    end
  end
  local function delete_chosen()
    M.delete(ui_list.chosen(opened), function(key)
      list.rows = vim.tbl_filter(function(row)
        return row.chat ~= key
      end, list.rows)
      draw(list)
    end)
  end
  ui_list.map(opened, {
    ["<CR>"] = with_row(function(row)
      ui_list.close(opened)
      open_row(row)
    end),
    r = with_row(function(row)
      M.rename(row.chat, "", row.title, function(title)
        row.title = title
        draw(list)
      end)
    end),
    dd = delete_chosen,
    e = with_row(export_row),
    a = function()
      list.path = list.path == "" and project or ""
      load(list)
    end,
    R = function()
      load(list)
    end,
  }, { d = delete_chosen })
  draw(list)
  load(list)
end

--- Return the chats of the current project, for the picker of another plugin.
---@return lcursor.Source
function M.source()
  local path = buffers.here()
  local function items_of(rows)
    local cells = cells_of(rows)
    local items = {}
    for i, row in ipairs(rows) do
      local facts = many(row.messages, "message") .. (row.model ~= "" and ", " .. row.model or "")
      ---@type lcursor.Item
      local mark, age, title, _, _, preview = unpack(cells[i])
      title[1] = title[1]:gsub("%s*$", "  ")
      items[i] = {
        cells = { mark, age, title, preview },
        preview = vim.split(("# %s\n\n%s\n\n%s"):format(row.title, facts, row.preview), "\n"),
        filetype = "markdown",
        confirm = function()
          open_row(row)
        end,
      }
    end
    return items
  end
  return {
    title = "Chats",
    preview = "text",
    find = function(_, done)
      requests.ask("chat.list", { path = path }, function(listed)
        done(items_of(listed.chats))
      end, function()
        done({})
      end)
    end,
  }
end

--- Find the newest chat of a project.
---@param path? string absolute; the current one
---@param done fun(key: string) "" if there is none
function M.newest(path, done)
  requests.ask("chat.list", { path = path or buffers.here() }, function(listed)
    done(listed.chats[1] and listed.chats[1].chat or "")
  end)
end

return M
