-- Joins the independent features: an edit gets its mentions from the chat,
-- and the blocks of a chat become edits.

local M = {}

--- Start what runs while the user types.
---@param is_insert boolean false: an edit in Normal mode
---@return boolean is_insert
function M.start(is_insert)
  local next_edit = require("lcursor.next_edit")
  next_edit.start()
  if is_insert then
    require("lcursor.complete.gate").is_taken = next_edit.is_at_cursor
    require("lcursor.complete").start()
    require("lcursor.index").start()
  end
  return is_insert
end

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
