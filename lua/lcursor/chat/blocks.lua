-- The code blocks of a chat: finds the one at the cursor; yanks it, puts it where the code is,
-- opens it in a buffer of its own. Writes only into the user's own buffer, and only when told to.

local buffer = require("lcursor.chat.buffer")
local many = require("lcursor.text").many
local notify = require("lcursor.notify")
local place = require("lcursor.chat.place")

local M = {}

local api = vim.api

---@class (exact) lcursor.ChatBlock
---@field first integer row of the opening fence
---@field last integer row of the closing one, or of the last line so far
---@field language string as it is named behind the fence; "" for none
---@field path string named behind the fence; "" for none
---@field lines string[]
---@field message integer number of the message that it is in; 0 where there is none yet

---@type fun(session: lcursor.ChatSession, block: lcursor.ChatBlock)?
local applier

---@param info string
---@return string language
---@return string path
local function told(info)
  info = vim.trim(info)
  local language = info:match("^[%w_+#%-]+") or ""
  local rest = vim.trim(info:sub(#language + 1))
  local path
  for _, key in ipairs({ "path=", "title=", "file=", "filename=" }) do
    path = path
      or rest:match(key .. '"([^"]+)"')
      or rest:match(key .. "'([^']+)'")
      or rest:match(key .. "([^%s\"'}]+)")
  end
  path = path or rest:match("^:([^%s:]+)") or rest:match("^([%w_%./%-]+%.%w+)")
  return language, path or ""
end

--- The code blocks in some lines; one that is not closed yet counts.
---@param lines string[]
---@param offset integer row of the first line
---@return lcursor.ChatBlock[]
function M.parse(lines, offset)
  local blocks, open = {}, nil
  for i, line in ipairs(lines) do
    local indent, mark, rest = line:match("^( ? ? ?)(```+)([^`]*)$")
    if not mark then
      indent, mark, rest = line:match("^( ? ? ?)(~~~+)(.*)$")
    end
    if open then
      local is_end = mark and vim.startswith(mark, open.mark) and not rest:find("%S")
      if is_end then
        open.block.last = offset + i - 1
        open = nil
      else
        local blanks = #(line:match("^ *"))
        local text = line:sub(math.min(blanks, open.indent) + 1)
        table.insert(open.block.lines, text)
        open.block.last = offset + i - 1
      end
    elseif mark then
      local language, path = told(rest)
      local row = offset + i - 1
      local block =
        { first = row, last = row, language = language, path = path, lines = {}, message = 0 }
      open = { block = block, mark = mark, indent = #indent }
      table.insert(blocks, block)
    end
  end
  return blocks
end

--- The block at the cursor; else the next in the same message, then the one before, then the last
--- of the last answer that has one.
---@param session lcursor.ChatSession
---@return lcursor.ChatBlock?
function M.here(session)
  local function of(span)
    local first, last = buffer.rows(session, span)
    local blocks = M.parse(api.nvim_buf_get_lines(session.buf, first, last, false), first)
    for _, block in ipairs(blocks) do
      block.message = span.message and span.message.number or 0
    end
    return blocks
  end
  if api.nvim_get_current_buf() == session.buf then
    local row = api.nvim_win_get_cursor(0)[1] - 1
    local before
    for _, block in ipairs(of((buffer.at(session, row)))) do
      if row <= block.last then
        return block
      end
      before = block
    end
    if before then
      return before
    end
  end
  for i = #session.spans, 1, -1 do
    local span = session.spans[i]
    if span.message and span.message.role == "assistant" then
      local blocks = of(span)
      if #blocks > 0 then
        return blocks[#blocks]
      end
    end
  end
end

---@param session lcursor.ChatSession
---@param fn fun(block: lcursor.ChatBlock)
local function with(session, fn)
  local block = M.here(session)
  if not block or #block.lines == 0 then
    return notify.info("there is no code block here")
  end
  fn(block)
end

---@param block lcursor.ChatBlock
---@return string
local function size(block)
  local lines = many(#block.lines, "line")
  return block.language ~= "" and ("%s of %s"):format(lines, block.language) or lines
end

---@param buf integer
---@param first integer
---@param last integer row behind the last
local function flash(buf, first, last)
  local space = api.nvim_create_namespace("lcursor.chat.flash")
  api.nvim_buf_clear_namespace(buf, space, 0, -1)
  local group = vim.fn.hlexists("IncSearch") == 1 and "IncSearch" or "Visual"
  for row = first, last - 1 do
    api.nvim_buf_set_extmark(buf, space, row, 0, { line_hl_group = group, strict = false })
  end
  vim.defer_fn(function()
    if api.nvim_buf_is_valid(buf) then
      api.nvim_buf_clear_namespace(buf, space, 0, -1)
    end
  end, 200)
end

--- Yank the block into the register that was named, linewise.
---@param session lcursor.ChatSession
function M.yank(session)
  local register = vim.v.register
  with(session, function(block)
    vim.fn.setreg(register, block.lines, "l")
    if register == '"' then
      vim.fn.setreg("0", block.lines, "l")
    end
    flash(session.buf, block.first + 1, math.max(block.last, block.first + 1))
    notify.info(("%s yanked"):format(size(block)))
  end)
end

--- Put the block below the cursor of the window that one was in before the chat, in place of the
--- line where that is blank. One undo step.
---@param session lcursor.ChatSession
function M.insert(session)
  with(session, function(block)
    local win = place.window()
    if not win then
      return notify.info("there is no window with code to put it into; see the key open_block")
    end
    local buf = api.nvim_win_get_buf(win)
    if not vim.bo[buf].modifiable then
      return notify.warn("the buffer cannot be changed")
    end
    api.nvim_set_current_win(win)
    local row = api.nvim_win_get_cursor(win)[1]
    local line = api.nvim_buf_get_lines(buf, row - 1, row, false)[1] or ""
    local first = line:find("%S") and row or row - 1
    api.nvim_buf_set_lines(buf, first, row, false, block.lines)
    api.nvim_win_set_cursor(win, { first + 1, 0 })
    vim.cmd("normal! ^zv")
    flash(buf, first, first + #block.lines)
    notify.info(("%s put into %s; u takes it back"):format(size(block), M.shown(buf)))
  end)
end

---@param buf integer
---@return string
function M.shown(buf)
  local path = api.nvim_buf_get_name(buf)
  return path ~= "" and place.name(path) or "[No Name]"
end

---@param language string
---@return string filetype
local function filetype_of(language)
  local name = language:lower()
  local known = { ["c++"] = "cpp", ["c#"] = "cs", shell = "sh", console = "sh", golang = "go" }
  if known[name] then
    return known[name]
  end
  if vim.list_contains(vim.fn.getcompletion(name, "filetype"), name) then
    return name
  end
  return vim.filetype.match({ filename = "a." .. name }) or ""
end

--- Open the block in a buffer of its own, to be read, tried or saved.
---@param session lcursor.ChatSession
function M.open(session)
  with(session, function(block)
    local is_float = api.nvim_win_get_config(0).relative ~= ""
    local buf = api.nvim_create_buf(true, false)
    api.nvim_buf_set_lines(buf, 0, -1, false, block.lines)
    if block.path ~= "" and not block.path:find("..", 1, true) then -- only in the project
      local path = vim.fs.joinpath(session.root ~= "" and session.root or ".", block.path)
      if not vim.uv.fs_stat(path) and vim.fn.bufexists(path) == 0 then
        api.nvim_buf_set_name(buf, path) -- :write makes the file
      end
    end
    local code = place.window()
    if code then
      api.nvim_open_win(buf, true, { split = "below", win = code })
    else
      api.nvim_open_win(buf, true, { split = "left", win = is_float and -1 or 0 })
    end
    local name = block.path ~= "" and vim.filetype.match({ filename = block.path })
    vim.bo[buf].filetype = name or filetype_of(block.language)
  end)
end

--- Say what applies a block to the code.
---@param fn fun(session: lcursor.ChatSession, block: lcursor.ChatBlock)
function M.on_apply(fn)
  applier = fn
end

--- Make of the block a change of the file that it is about.
---@param session lcursor.ChatSession
function M.apply(session)
  with(session, function(block)
    if applier then -- joined.lua has said who, unless somebody came around it
      applier(session, block)
    end
  end)
end

return M
