-- Joins the independent features: an edit gets its mentions from the chat,
-- and the blocks of a chat become edits.

local M = {}

--- The edit commands, connected to the chat.
---@return table lcursor.edit.commands
function M.edit()
  local chat = require("lcursor.edit").chat
  function chat.collect(text)
    return require("lcursor.chat.attachments").collect({}, text)
  end
  function chat.complete(buf, path)
    require("lcursor.chat.completion").attach_prompt(buf, path)
  end
  return require("lcursor.edit.commands")
end

--- Request an edit; for the <Plug> map.
function M.press()
  M.edit().run({})
end

--- The chat, whose code blocks become edits.
---@return table lcursor.chat
function M.chat()
  require("lcursor.chat.code_blocks").on_apply(function(session, block)
    M.edit()
    if require("lcursor.edit").is_on() then
      local buf = require("lcursor.chat.code_window").buffer()
      require("lcursor.edit.apply_code").block(session, block, buf)
    end
  end)
  return require("lcursor.chat")
end

return M
