-- What the host says of a chat as a whole: it is opened, its branches and its model change, and all
-- of it is shown.

local buffer = require("lcursor.chat.buffer")
local notify = require("lcursor.notify")
local requests = require("lcursor.requests")
local running = require("lcursor.chat.running")
local winbar = require("lcursor.chat.winbar")
local window = require("lcursor.chat.window")

local M = {}

local api = vim.api

---@param session lcursor.ChatSession
---@return boolean
local function is_alive(session)
  return api.nvim_buf_is_loaded(session.buf)
end

--- Show what the host says of a chat: all of its messages, and the draft that is there.
---@param session lcursor.ChatSession
---@param opened lcursor.ChatOpened
function M.show(session, opened)
  session.chat, session.title, session.root = opened.chat, opened.title, opened.root
  session.model, session.models = opened.model, opened.models
  session.context_tokens = opened.context_tokens
  session.used_tokens = opened.used_tokens
  session.failure = nil
  if not is_alive(session) then
    return
  end
  local is_same = vim.deep_equal(session.messages, opened.messages)
  session.messages = opened.messages
  if not is_same then
    local views = {}
    for _, win in ipairs(vim.fn.win_findbuf(session.buf)) do
      local row = api.nvim_win_get_cursor(win)[1] - 1
      local _, index = buffer.at(session, row)
      views[win] = index < #session.spans and index or nil
    end
    buffer.render(session, buffer.text(session, buffer.draft(session)))
    for _, win in ipairs(vim.fn.win_findbuf(session.buf)) do
      local span = views[win] and session.spans[views[win]]
      if span and span.message then
        local _, _, row = buffer.rows(session, span)
        api.nvim_win_set_cursor(win, { row + 1, 0 })
      else
        window.to_end(session, win)
      end
    end
  end
  buffer.placeholder(session)
  winbar.draw(session)
end

--- Ask for something whose answer is what to show.
---@param session lcursor.ChatSession
---@param method string
---@param params table
function M.change(session, method, params)
  if session.chat == "" or running.is_told(session) then
    return
  end
  params.chat = session.chat
  requests.ask(method, params, function(opened)
    M.show(session, opened)
  end)
end

--- Show the branch before or after the one that is shown where the cursor is.
---@param session lcursor.ChatSession
---@param step integer
function M.step(session, step)
  local _, index = buffer.at(session, api.nvim_win_get_cursor(0)[1] - 1)
  for _, i in ipairs({ index, index - 1, index + 1 }) do
    local here = session.spans[i] and session.spans[i].message
    if here and here.branches > 1 then
      return M.change(session, "chat.branch", { number = here.number, step = step })
    end
  end
  notify.info("there is no other branch here: nothing else was said in its place")
end

--- Open a chat on the host, or begin one there.
---@param session lcursor.ChatSession
---@param key string of the archive; "" a new one
---@param done? fun()
function M.greet(session, key)
  session.failure = nil
  local function failed(err)
    session.failure, session.waiting = err, {}
    if is_alive(session) then
      buffer.placeholder(session)
      winbar.draw(session)
    end
  end
  local asked = { chat = key, path = session.path }
  local id = requests.ask("chat.open", asked, function(opened)
    M.show(session, opened)
    local waiting = session.waiting
    session.waiting = {}
    for _, fn in ipairs(waiting) do
      fn()
    end
  end, failed)
  if not id then
    failed({
      code = "host_failed",
      message = "the Python host cannot be asked",
      hint = "See :LCursor status",
      level = "silent",
    })
  end
end

return M
