-- `:LCursor commit_message`: writes a message for what is staged. It goes into the current buffer
-- if that is a commit's, without a message or with that of the commit that is amended; else into a
-- buffer of its own.

local buffers = require("lcursor.editor.buffers")
local notify = require("lcursor.ui.notify")
local window = require("lcursor.ui.window")

local M = {}

local api = vim.api

--- Return the number of rows above git's comments, which are at the end of the buffer. They begin
--- with `core.commentChar` or `core.commentString`, which git itself chooses if it is `auto`.
---@param lines string[]
---@return integer
local function rows_above(lines)
  local last, mark = #lines, nil
  for i, line in ipairs(lines) do
    mark = line:match("^(%S+) %-+ >8 %-+$") -- below is the diff of `git commit -v`
    if mark then
      last = i
      break
    end
  end
  mark = mark or (lines[last] or ""):match("^%S+")
  local first = last + 1
  while mark and first > 1 and vim.startswith(lines[first - 1], mark) do
    first = first - 1
  end
  return (mark == "#" or first < last) and first - 1 or #lines
end

--- Return the message that a commit's buffer has already, and the number of its rows.
---@param buf integer
---@return string, integer
local function written(buf)
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  local rows = rows_above(lines)
  return vim.trim(table.concat(lines, "\n", 1, rows)), rows
end

---@param answer table
---@param buf integer the one that was current
---@param before string? the message that a commit's buffer had
local function show(answer, buf, before)
  local lines = vim.split(vim.trim(answer.text), "\n", { plain = true })
  local more = answer.note ~= "" and (". " .. answer.note) or ""
  local is_commit = before and api.nvim_buf_is_loaded(buf) and vim.bo[buf].modifiable
  if is_commit then
    local now, rows = written(buf)
    if now == "" or (answer.is_amend and now == before) then
      if rows < api.nvim_buf_line_count(buf) then
        table.insert(lines, "")
      end
      api.nvim_buf_set_lines(buf, 0, rows, false, lines)
      local of = answer.is_amend and "message of the amended commit" or "commit message"
      return notify.info(("the %s is written, u undoes it%s"):format(of, more))
    end
  end
  local how = before and "copy it into the commit's buffer, q closes"
    or ":w !git commit -F - commits with it, q closes"
  buffers.when_normal("the commit message", function()
    local opened = window.split("commit", lines, ("commit message: %s%s"):format(how, more))
    vim.bo[opened].modifiable, vim.bo[opened].filetype = true, "gitcommit"
  end)
end

--- Ask for a message.
function M.ask()
  local buf = api.nvim_get_current_buf()
  local path, file, index, before = buffers.here(), "", "", nil
  if vim.bo[buf].filetype == "gitcommit" then
    before = written(buf)
  end
  if before and vim.bo[buf].buftype == "" and api.nvim_buf_get_name(buf) ~= "" then
    file = buffers.path(buf)
    -- The file is in the git directory. That of a linked work tree is in another one.
    path = file:match("^(.+)/%.git/[^/]+$") or assert(vim.uv.cwd())
    local first = vim.fn.argv(0) -- git starts an editor with this file
    if first ~= "" and vim.uv.fs_realpath(first) == vim.uv.fs_realpath(file) then
      index = vim.env.GIT_INDEX_FILE or ""
    end
  end
  local asked = { path = path, model = "", file = file, index = index, written = before or "" }
  require("lcursor.edit").begin("edit.commit", asked, {
    answered = function(answer)
      show(answer, buf, before)
    end,
  })
end

return M
