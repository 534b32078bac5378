-- Talk to another model: by its name, or chosen from those that the settings name.

local notify = require("lcursor.notify")
local shown = require("lcursor.chat.shown")

local M = {}

---@param session lcursor.ChatSession
---@param name string
local function use(session, name)
  if name == session.model then
    return notify.info(("this chat talks to %s already"):format(name))
  end
  shown.change(session, "chat.use", { model = name })
end

--- Talk to another model from now on; what was said stays.
---@param session lcursor.ChatSession
---@param name? string nil to choose
function M.choose(session, name)
  if session.chat == "" then
    return notify.info("the chat is not open yet")
  end
  if name and name ~= "" then
    return use(session, name)
  elseif #session.models < 2 then
    local one = session.models[1] or session.model
    return notify.info(("there is no model but %s; see :help lcursor-chat-models"):format(one))
  end
  local opts = {
    prompt = "Talk to",
    kind = "lcursor.models",
    format_item = function(item)
      return item == session.model and item .. " (now)" or item
    end,
  }
  vim.ui.select(session.models, opts, function(item)
    if item then
      use(session, item)
    end
  end)
end

return M
