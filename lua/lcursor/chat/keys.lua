-- The keys of a chat's buffer, as the settings name them, and the list of them.

local buffer = require("lcursor.chat.buffer")
local config = require("lcursor.config")
local notify = require("lcursor.notify")
local turns = require("lcursor.chat.turns")
local undo = require("lcursor.chat.undo")
local window = require("lcursor.chat.window")

local M = {}

local api = vim.api

---@class (exact) lcursor.ChatKey
---@field name string of chat.mappings
---@field modes string[]
---@field text string for the list
---@field run fun(session: lcursor.ChatSession)

---@param session lcursor.ChatSession
---@param by integer
local function jump(session, by)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local _, index = buffer.at(session, row)
  local _, _, heading = buffer.rows(session, session.spans[index])
  local is_inside = by < 0 and row > heading
  local span = session.spans[is_inside and index or index + by]
  if span then
    vim.cmd("normal! m'")
    local _, _, target = buffer.rows(session, span)
    api.nvim_win_set_cursor(0, { target + 1, 0 })
    vim.cmd("normal! zt")
  end
end

--- Put the cursor into the question that the message at the cursor belongs to.
---@param session lcursor.ChatSession
local function edit(session)
  local _, index = buffer.at(session, api.nvim_win_get_cursor(0)[1] - 1)
  for i = index, 1, -1 do
    local span = session.spans[i]
    if span.message and span.message.role == "user" then
      local first, last = buffer.rows(session, span)
      vim.cmd("normal! m'")
      api.nvim_win_set_cursor(0, { math.min(first + 2, last), 0 })
      return
    end
  end
end

---@type lcursor.ChatKey[]
local KEYS = {
  {
    name = "send",
    modes = { "n" },
    text = "Send the draft; in a changed earlier question: ask it so, as a branch.",
    run = function(session)
      turns.send(session, {})
    end,
  },
  {
    name = "send_insert",
    modes = { "i" },
    text = "The same, in Insert mode.",
    run = function(session)
      turns.send(session, {})
    end,
  },
  {
    name = "stop",
    modes = { "n", "i" },
    text = "Stop the answer; what is there stays.",
    run = function(session)
      if not turns.stop(session) and api.nvim_get_mode().mode:find("^i") then
        vim.cmd.stopinsert()
      end
    end,
  },
  {
    name = "regenerate",
    modes = { "n" },
    text = "Have the question answered again; the old answer is kept.",
    run = function(session)
      turns.regenerate(session, {})
    end,
  },
  {
    name = "edit",
    modes = { "n" },
    text = "Go to the question that this answers.",
    run = edit,
  },
  {
    name = "next_branch",
    modes = { "n" },
    text = "Show what else was said here.",
    run = function(session)
      turns.step(session, vim.v.count1)
    end,
  },
  {
    name = "previous_branch",
    modes = { "n" },
    text = "The same, backwards.",
    run = function(session)
      turns.step(session, -vim.v.count1)
    end,
  },
  {
    name = "next",
    modes = { "n" },
    text = "Go to the next message.",
    run = function(session)
      jump(session, 1)
    end,
  },
  {
    name = "previous",
    modes = { "n" },
    text = "Go to the message before.",
    run = function(session)
      jump(session, -1)
    end,
  },
  { name = "close", modes = { "n" }, text = "Close the window.", run = window.close },
  {
    name = "help",
    modes = { "n" },
    text = "List these keys.",
    run = function()
      require("lcursor.ui.window").float(M.lines(), "chat")
    end,
  },
}

--- The keys that are mapped, for people.
---@return string[]
function M.lines()
  local mappings = config.get().chat.mappings
  local cells, width = {}, 0
  for _, key in ipairs(KEYS) do
    local lhs = mappings[key.name] or ""
    if lhs ~= "" then
      width = math.max(width, #lhs)
      table.insert(cells, { lhs, key.text })
    end
  end
  return vim.tbl_map(function(cell)
    return cell[1] .. (" "):rep(width - #cell[1] + 2) .. cell[2]
  end, cells)
end

--- Add a key; for the other files here.
---@param key lcursor.ChatKey
function M.add(key)
  table.insert(KEYS, #KEYS, key)
end

--- Map them in a chat's buffer.
---@param session lcursor.ChatSession
function M.map(session)
  local mappings = config.get().chat.mappings
  for _, key in ipairs(KEYS) do
    local lhs = mappings[key.name] or ""
    if lhs ~= "" then
      vim.keymap.set(
        key.modes,
        lhs,
        notify.guarded(function()
          key.run(session)
        end),
        { buffer = session.buf, nowait = true, desc = "lcursor chat: " .. key.text }
      )
    end
  end
  for lhs, run in pairs({ u = undo.undo, ["<C-r>"] = undo.redo }) do
    vim.keymap.set(
      "n",
      lhs,
      notify.guarded(function()
        run(session)
      end),
      { buffer = session.buf, desc = "lcursor chat: your own text" }
    )
  end
end

return M
