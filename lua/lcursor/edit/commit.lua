-- `:LCursor commit_message`: writes a message for what is staged into the commit's buffer, if that
-- is the current one and has no text yet, else into a buffer of its own.

local buffers = require("lcursor.edit.buffers")
local notify = require("lcursor.notify")
local window = require("lcursor.ui.window")

local M = {}

local api = vim.api

---@return integer? rows above git's comments; nil where there is text
local function room_above(buf)
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  for i, line in ipairs(lines) do
    if line:find("^#") then
      return i - 1
    elseif line:find("%S") then
      return nil
    end
  end
  return #lines
end

---@param note string
---@param buf integer the one that was current
local function show(text, note, buf)
  local lines = vim.split(vim.trim(text), "\n", { plain = true })
  local is_commit = api.nvim_buf_is_loaded(buf) and vim.bo[buf].filetype == "gitcommit"
  local rows = is_commit and vim.bo[buf].modifiable and room_above(buf) or nil
  local more = note ~= "" and (". " .. note) or ""
  if rows then
    if rows < api.nvim_buf_line_count(buf) then
      table.insert(lines, "")
    end
    api.nvim_buf_set_lines(buf, 0, rows, false, lines)
    return notify.info("the commit message is written, u undoes it" .. more)
  end
  local head = "commit message: :w !git commit -F - commits with it, q closes" .. more
  buffers.when_normal("the commit message", function()
    return true
  end, function()
    local opened = window.split("commit", lines, head)
    vim.bo[opened].modifiable, vim.bo[opened].filetype = true, "gitcommit"
  end)
end

--- Ask for a message.
function M.ask()
  local buf = api.nvim_get_current_buf()
  local path = buffers.here()
  if vim.bo[buf].filetype == "gitcommit" and api.nvim_buf_get_name(buf) ~= "" then
    path = assert(vim.uv.cwd()) -- the file itself is in .git
  end
  require("lcursor.edit").begin("edit.commit", { path = path, model = "" }, {
    answered = function(answer)
      show(answer.text, answer.note, buf)
    end,
  })
end

return M
