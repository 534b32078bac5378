-- What `:LCursor chat` does with the current chat. Each function gets the chat and the rest of the
-- command line.

local export = require("lcursor.chat.export")
local list = require("lcursor.chat.list")
local load = require("lcursor.chat.load")
local notify = require("lcursor.ui.notify")
local requests = require("lcursor.host.requests")
local sessions = require("lcursor.conversation.sessions")
local turn = require("lcursor.chat.turn")
local window = require("lcursor.ui.window")

local M = {}

local NO_CHAT = "no chat is open; :LCChat opens one"

--- Summarize the messages so far.
---@param session lcursor.ChatSession
function M.compact(session)
  if turn.is_busy(session) then
    return
  end
  notify.progress("summarizing the chat …")
  local request = { chat = session.key }
  session.compacting = requests.follow("chat.compact", request, function(method, params)
    if method == "chat.summed" then
      turn.report_summary(params)
    elseif method == "chat.done" or method == "error" then
      session.compacting = nil
      if params.reason == "stop" then
        load.reload(session)
      end
      notify.progress("")
    end
  end)
end

--- Undo a summary: its messages are in the prompt again.
---@param session lcursor.ChatSession
function M.expand(session)
  for i = #session.messages, 1, -1 do
    local message = session.messages[i]
    if message.role == "summary" then
      return load.change(session, "chat.expand", { number = message.number })
    end
  end
  notify.info("no summary in this chat")
end

local function use_model(session, model)
  if model == session.model then
    notify.info(("this chat already uses %s"):format(model))
  else
    load.change(session, "chat.use", { model = model })
  end
end

--- Return the models that a chat can use.
---@param session? lcursor.ChatSession
---@return lcursor.Item[] empty if there is no choice, which is reported
local function model_items(session)
  if not session or session.key == "" then
    notify.info(session and "the chat is not open yet" or NO_CHAT)
    return {}
  elseif #session.models < 2 then
    local only = session.models[1] or session.model
    notify.info(("%s is the only model; see :help lcursor-endpoint"):format(only))
    return {}
  end
  return vim.tbl_map(function(model)
    local note = model == session.model and " (current)" or ""
    ---@type lcursor.Item
    return {
      cells = { { model }, { note, "LCursorChatNote" } },
      confirm = function()
        use_model(session, model)
      end,
    }
  end, session.models)
end

--- Use another model from now on; asks if no name is given.
---@param session lcursor.ChatSession
---@param name? string
function M.choose_model(session, name)
  if session.key ~= "" and name and name ~= "" then
    return use_model(session, name)
  end
  local items = model_items(session)
  if #items > 0 then
    window.choose(items, "Model", "lcursor.models")
  end
end

--- Return the models of the current chat, for the picker of another plugin.
---@return lcursor.Source? nil if there is no choice, which is reported
function M.models()
  local items = model_items(sessions.current("chat"))
  return #items > 0
      and {
        title = "Models",
        find = function(_, done)
          done(items)
        end,
      }
    or nil
end

---@param session lcursor.ChatSession
---@param title string "" asks for it
function M.rename(session, title)
  list.rename(session.key, title, session.title)
end

---@param session lcursor.ChatSession
---@param path string "" asks for it
function M.export(session, path)
  export.save(session.title, session.messages, path)
end

--- Delete the chat, after a question.
---@param session lcursor.ChatSession
function M.delete(session)
  list.delete({ { chat = session.key, title = session.title } })
end

--- Stop the answer or the summary that is being written.
---@param session lcursor.ChatSession
function M.stop(session)
  if not turn.stop(session) then
    notify.info("no answer is being written")
  end
end

return M
