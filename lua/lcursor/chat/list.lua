-- The list of stored chats: open, rename, delete, export. The host stores them.

local ago = require("lcursor.text").ago
local buffers = require("lcursor.editor.buffers")
local export = require("lcursor.chat.export")
local list = require("lcursor.ui.list")
local many = require("lcursor.text").many
local ui = require("lcursor.ui.window")
local requests = require("lcursor.host.requests")
local sessions = require("lcursor.conversation.sessions")
local short = require("lcursor.text").short
local window = require("lcursor.conversation.window")

local M = {}

local api = vim.api
local MAX_TITLE, MAX_PREVIEW = 48, 80

---@return string "" if the title says the same
local function preview_of(title, preview)
  preview = short(preview, MAX_PREVIEW)
  local start, cuts = title:gsub("…$", "")
  local is_same = preview == title or (cuts > 0 and vim.startswith(preview, start))
  return is_same and "" or preview
end

---@param row lcursor.ChatRow
---@param is_all? boolean of all projects
---@return lcursor.Cells
local function cells_of(row, is_all)
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
end

---@param row lcursor.ChatRow
local function open_row(row)
  require("lcursor.chat").open({ chat = row.chat, path = row.root })
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
    buffers.when_normal("the file's name", function()
      export.save(opened.title, opened.messages, "")
    end)
  end)
end

--- Show the chats of the current project.
---@param is_all? boolean of all projects
function M.open(is_all)
  local project, note = buffers.here(), ""
  local function rename(row, opened)
    M.rename(row.chat, "", row.title, function(title)
      row.title = title
      list.draw(opened)
    end)
  end
  local function delete_chosen(rows, opened)
    M.delete(rows, function(key)
      opened.items = vim.tbl_filter(function(row)
        return row.chat ~= key
      end, opened.items)
      list.draw(opened)
    end)
  end
  local function change_projects(opened)
    is_all = not is_all
    list.load(opened)
  end
  list.open({
    name = "chats",
    cells = function(row)
      return cells_of(row, is_all)
    end,
    head = function(rows)
      local where = is_all and "all projects" or "this project"
      local more = note ~= "" and (" (%s)"):format(note) or ""
      return ("%s of %s%s"):format(many(#rows, "chat"), where, more)
    end,
    load = function(done)
      requests.ask("chat.list", { path = is_all and "" or project }, function(listed)
        note = listed.note
        done(listed.chats)
      end)
    end,
    empty = "no chats yet; :LCChat starts one",
    keys = {
      { "<CR>", "open", open_row, closes = true },
      { "r", "rename", rename },
      { "dd", "delete", delete_chosen, on = "chosen" },
      { "e", "export", export_row },
      { "a", "all projects", change_projects, on = "list" },
      { "R", "", list.load, on = "list" },
    },
  })
end

--- Return the chats of the current project, for the picker of another plugin.
---@return lcursor.Source
function M.source()
  local path = buffers.here()
  local function items_of(rows)
    local cells = vim.tbl_map(cells_of, rows)
    list.align(cells)
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
