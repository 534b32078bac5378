-- Joins the independent features: an edit gets its mentions from the chat,
-- and the blocks of a chat and all next edits with one cause become edits.

local M = {}

--- Show known changes as the hunks of an edit.
---@param title string
---@param files lcursor.EditChanges[]
---@return boolean whether they will come
local function propose(title, files)
  local edit, buffers = require("lcursor.edit"), require("lcursor.editor.buffers")
  local buf = vim.api.nvim_get_current_buf()
  local paths = vim.tbl_map(function(file)
    return file.path
  end, files)
  local function go_to_first()
    local hunks = require("lcursor.edit.proposals").hunks(0)
    if #hunks == 0 and vim.api.nvim_get_current_buf() == buf then
      require("lcursor.edit.hunks").next(1) -- in another file
    end
  end
  local lhs = require("lcursor.editor.keymaps").shown("hunk", "accept_all", buf)
  return edit.is_on()
    and edit.begin("edit.propose", {
        path = buffers.path(buf),
        title = title,
        files = files,
        buffers = buffers.loaded(paths),
      }, { answered = go_to_first, hint = lhs and lhs .. " accepts all" or nil })
      ~= nil
end

--- Start what runs while the user types.
---@param is_insert boolean false: an edit in Normal mode
---@return boolean is_insert
function M.start(is_insert)
  local next_edit = require("lcursor.next_edit")
  next_edit.propose = propose
  next_edit.start()
  if is_insert then
    require("lcursor.complete.gate").is_taken = next_edit.is_at_cursor
    require("lcursor.complete").start()
    vim.schedule(
      require("lcursor.ui.notify").guarded(function() -- the first key does not wait for it
        require("lcursor.index").start()
      end)
    )
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
  return require("lcursor.edit.lcedit")
end

--- Request an edit; for the <Plug> map.
function M.press()
  M.edit().run({})
end

--- The agent, whose changes become an edit.
---@return table lcursor.agent
function M.agent()
  local agent, editor = require("lcursor.agent"), require("lcursor.agent").editor
  M.edit()
  local buffers = require("lcursor.editor.buffers")
  editor.here, editor.unsaved = buffers.here, buffers.unsaved
  editor.range = require("lcursor.chat.attachments").range
  editor.problems = require("lcursor.edit.ask").problems
  editor.prompt = require("lcursor.edit.prompt").open
  editor.jump = require("lcursor.chat.code_window").follow_name
  function editor.open_hunks(done, shown)
    local row = { turn = done.turn, paths = done.paths }
    require("lcursor.edit.edits").resume(row, done.root, shown)
  end
  return agent
end

--- The chat, whose code blocks become edits, and which starts agents.
---@return table lcursor.chat
function M.chat()
  require("lcursor.chat.send").commands.agent = function(task)
    require("lcursor").agent({ task = task })
  end
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
