-- The code blocks of a chat: finds the one at the cursor; yanks, inserts, opens or applies it.

local code_window = require("lcursor.editor.code_window")
local entries = require("lcursor.conversation.entries")
local many = require("lcursor.text").many
local markdown = require("lcursor.text.markdown")
local notify = require("lcursor.ui.notify")

local M = {}

local api = vim.api

---@class (exact) lcursor.ChatBlock
---@field first integer row of the opening fence
---@field last integer row of the closing fence, or the last line so far
---@field language string after the fence; "" for none
---@field path string after the fence; "" for none
---@field lines string[]
---@field message integer number of its message; 0 if it has none yet

---@param info string what follows an opening fence
---@return string language
---@return string path
local function parse_info(info)
  local language = info:match("^[%w_+#%-]+") or ""
  local rest = vim.trim(info:sub(#language + 1))
  for _, key in ipairs({ "path=", "title=", "file=", "filename=" }) do
    local path = rest:match(key .. '"([^"]+)"')
      or rest:match(key .. "'([^']+)'")
      or rest:match(key .. "([^%s\"'}]+)")
    if path then
      return language, path
    end
  end
  return language, rest:match("^:([^%s:]+)") or rest:match("^([%w_%./%-]+%.%w+)") or ""
end

--- Return the code blocks in some lines, also an unfinished one.
---@param lines string[]
---@param offset integer row of the first line
---@return lcursor.ChatBlock[]
function M.parse(lines, offset)
  return vim.tbl_map(function(fence)
    local language, path = parse_info(fence.info)
    local last = fence.is_closed and fence.last - 1 or fence.last
    return {
      first = offset + fence.first - 1,
      last = offset + fence.last - 1,
      language = language,
      path = path,
      lines = vim.tbl_map(function(line)
        return line:sub(math.min(#line:match("^ *"), fence.indent) + 1)
      end, vim.list_slice(lines, fence.first + 1, last)),
      message = 0,
    }
  end, markdown.fences(lines))
end

--- Return the code blocks of a message, as they are in the buffer.
---@param session lcursor.ChatSession
---@param entry lcursor.ChatEntry
---@return lcursor.ChatBlock[]
function M.blocks_of(session, entry)
  local first, last = entries.content(session, entry)
  local blocks = M.parse(api.nvim_buf_get_lines(session.buf, first, last, false), first)
  for _, block in ipairs(blocks) do
    block.message = entry.message and entry.message.number or 0
  end
  return blocks
end

--- Return the block at the cursor; else the next or previous one in the same message, else the last
--- one of the chat.
---@return lcursor.ChatBlock?
local function block_at_cursor(session)
  if api.nvim_get_current_buf() == session.buf then
    local row = api.nvim_win_get_cursor(0)[1] - 1
    local blocks = M.blocks_of(session, (entries.at(session, row)))
    for _, block in ipairs(blocks) do
      if row <= block.last then
        return block
      end
    end
    if #blocks > 0 then
      return blocks[#blocks]
    end
  end
  for i = #session.entries, 1, -1 do
    local message = session.entries[i].message
    if message and message.role == "assistant" then
      local blocks = M.blocks_of(session, session.entries[i])
      if #blocks > 0 then
        return blocks[#blocks]
      end
    end
  end
end

--- Call a function with the block at the cursor.
---@param fn fun(session: lcursor.ChatSession, block: lcursor.ChatBlock)
---@return fun(session: lcursor.ChatSession)
local function with_block(fn)
  return function(session)
    local block = block_at_cursor(session)
    if not block or #block.lines == 0 then
      return notify.info("no code block here")
    end
    fn(session, block)
  end
end

---@return string
local function size(block)
  local lines = many(#block.lines, "line")
  return block.language ~= "" and ("%s of %s"):format(lines, block.language) or lines
end

---@param last integer row after the last
local function flash(buf, first, last)
  local namespace = api.nvim_create_namespace("lcursor.chat.flash")
  vim.hl.range(buf, namespace, "IncSearch", { first, 0 }, { last - 1, 0 }, {
    regtype = "V",
    timeout = 200,
  })
end

--- Yank the block, linewise, into the given register.
M.yank = with_block(function(session, block)
  local register = vim.v.register
  vim.fn.setreg(register, block.lines, "l")
  if register == '"' then
    vim.fn.setreg("0", block.lines, "l")
  end
  flash(session.buf, block.first + 1, block.first + 1 + #block.lines)
  notify.info(("%s yanked"):format(size(block)))
end)

--- Insert the block below the cursor of the code window; a blank line there is replaced.
M.insert = with_block(function(_, block)
  local win = code_window.window()
  if not win then
    return notify.info("no code window to insert into; open_block opens one")
  end
  local buf = api.nvim_win_get_buf(win)
  if not vim.bo[buf].modifiable then
    return notify.warn("the buffer is not modifiable")
  end
  api.nvim_set_current_win(win)
  local row = api.nvim_win_get_cursor(win)[1]
  local line = api.nvim_buf_get_lines(buf, row - 1, row, false)[1] or ""
  local first = line:find("%S") and row or row - 1
  api.nvim_buf_set_lines(buf, first, row, false, block.lines)
  api.nvim_win_set_cursor(win, { first + 1, 0 })
  vim.cmd("normal! ^zv")
  flash(buf, first, first + #block.lines)
  local path = api.nvim_buf_get_name(buf)
  local name = path ~= "" and code_window.name(path) or "[No Name]"
  notify.info(("%s inserted into %s; u undoes it"):format(size(block), name))
end)

--- Open the block in a buffer of its own.
M.open = with_block(function(session, block)
  local is_float = api.nvim_win_get_config(0).relative ~= ""
  local buf = api.nvim_create_buf(true, false)
  api.nvim_buf_set_lines(buf, 0, -1, false, block.lines)
  if block.path ~= "" and not block.path:find("..", 1, true) then -- only inside the project
    local path = vim.fs.joinpath(session.root ~= "" and session.root or ".", block.path)
    if not vim.uv.fs_stat(path) and vim.fn.bufexists(path) == 0 then
      api.nvim_buf_set_name(buf, path) -- :write creates the file
    end
  end
  local win = code_window.window()
  if win then
    api.nvim_open_win(buf, true, { split = "below", win = win })
  else
    api.nvim_open_win(buf, true, { split = "left", win = is_float and -1 or 0 })
  end
  local filetype = block.path ~= "" and vim.filetype.match({ filename = block.path })
  vim.bo[buf].filetype = filetype or markdown.filetype(block.language)
end)

--- Propose the block as an edit of its file.
M.apply = with_block(function(session, block)
  if require("lcursor.edit").is_on() then
    require("lcursor.edit.apply_code").block(session, block, code_window.buffer())
  end
end)

return M
