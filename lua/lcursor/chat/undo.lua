-- `u` and `<C-r>` in a chat: they take back and bring back what the user wrote, and nothing of an
-- answer, even while it is streamed between two keys. Works on top of Neovim's own undo, which
-- knows both.

local buffer = require("lcursor.chat.buffer")
local stream = require("lcursor.chat.stream")

local M = {}

local api = vim.api
local MOST_STEPS = 500

---@param session lcursor.ChatSession
---@return table<integer, string> text of each question and of the draft, by the mark
local function questions(session)
  local texts = {}
  for _, span in ipairs(session.spans) do
    if not span.message or span.message.role == "user" then
      local first, last = buffer.rows(session, span)
      local lines = api.nvim_buf_get_lines(session.buf, first, last, false)
      texts[span.mark] = table.concat(lines, "\n")
    end
  end
  return texts
end

---@param before table<integer, string>
---@param after table<integer, string>
---@return integer? mark of a question that is another
local function changed(before, after)
  for mark, text in pairs(before) do
    if after[mark] ~= text then
      return mark
    end
  end
end

--- The lines of the answer that is streamed, or was the last to be.
---@param session lcursor.ChatSession
---@return string[]? there they are
---@return integer row of the first
---@return string[] wanted as they were written
local function answer(session)
  local writer = session.stream
  if not writer then
    return nil, 0, {}
  end
  local first, last = buffer.rows(session, writer.span)
  local row = first + 1 -- a blank line is below the heading
  local wanted = vim.split(stream.text(writer), "\n", { plain = true })
  local there = api.nvim_buf_get_lines(session.buf, row, math.max(last - 1, row), false)
  return there, row, wanted
end

---@param session lcursor.ChatSession
---@return boolean whether the streamed answer stands as it was written
local function is_intact(session)
  local there, _, wanted = answer(session)
  return there == nil or table.concat(there, "\n") == table.concat(wanted, "\n")
end

--- Write again what an undo took of the answer: from the first line that differs.
---@param session lcursor.ChatSession
local function mend(session)
  local there, row, wanted = answer(session)
  if not there then
    return
  end
  local same = 0
  while same < #there and there[same + 1] == wanted[same + 1] do
    same = same + 1
  end
  local rest = vim.list_slice(wanted, same + 1)
  api.nvim_buf_set_lines(session.buf, row + same, row + #there, false, rest)
  stream.move(session.stream, row + #wanted - 1, #wanted[#wanted])
end

---@param command "undo"|"redo"
---@return boolean whether there was something
local function native(command)
  local before = vim.fn.changenr()
  local ok = pcall(vim.cmd[command], { mods = { silent = true, emsg_silent = true } })
  return ok and vim.fn.changenr() ~= before
end

---@param session lcursor.ChatSession
---@param command "undo"|"redo"
local function step(session, command)
  local before, was_intact = questions(session), is_intact(session)
  local steps, found = 0, nil
  while steps < MOST_STEPS and native(command) do
    steps = steps + 1
    found = changed(before, questions(session))
    if found or not was_intact or is_intact(session) then
      break -- the user's own change; else it was ours, and the next may be theirs
    end
  end
  if was_intact and not is_intact(session) then
    mend(session)
  end
  if found and command == "undo" then
    local now = questions(session)[found]
    table.insert(session.undone, { mark = found, was = before[found], now = now })
  end
end

--- `u`.
---@param session lcursor.ChatSession
function M.undo(session)
  for _ = 1, vim.v.count1 do
    step(session, "undo")
  end
  buffer.placeholder(session)
end

---@param session lcursor.ChatSession
---@return boolean whether the last undo could be taken back
local function again(session)
  local last = table.remove(session.undone)
  if not last or questions(session)[last.mark] ~= last.now then
    session.undone = {}
    return false
  end
  for _, span in ipairs(session.spans) do
    if span.mark == last.mark then
      local first, behind = buffer.rows(session, span)
      local lines = vim.split(last.was, "\n", { plain = true })
      api.nvim_buf_set_lines(session.buf, first, behind, false, lines)
    end
  end
  return true
end

--- `<C-r>`. A stream that went on since the undo has cut off Neovim's own redo: what was undone is
--- kept here as well.
---@param session lcursor.ChatSession
function M.redo(session)
  for _ = 1, vim.v.count1 do
    if not again(session) then
      step(session, "redo")
    end
  end
  buffer.placeholder(session)
end

return M
