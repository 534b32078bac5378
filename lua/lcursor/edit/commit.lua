-- `:LCursor commit`: a message for what is staged, put into the commit's buffer where one is in
-- one, else into a buffer of its own. Overwrites nothing that was written there.

local free = require("lcursor.edit.free")
local notify = require("lcursor.notify")
local reader = require("lcursor.edit.reader")
local window = require("lcursor.ui.window")

local M = {}

local api = vim.api

---@param buf integer
---@return integer? rows above git's own comments; nil where something was written there
local function room(buf)
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

---@param text string
---@param note string
---@param buf integer that one was in
local function show(text, note, buf)
  local lines = vim.split(vim.trim(text), "\n", { plain = true })
  local is_commit = api.nvim_buf_is_loaded(buf) and vim.bo[buf].filetype == "gitcommit"
  local rows = is_commit and vim.bo[buf].modifiable and room(buf) or nil
  local more = note ~= "" and (". " .. note) or ""
  if rows then
    local below = api.nvim_buf_get_lines(buf, rows, rows + 1, false)[1]
    local wanted = below and vim.list_extend(vim.list_slice(lines), { "" }) or lines
    api.nvim_buf_set_lines(buf, 0, rows, false, wanted)
    return notify.info(("a message for the commit is written, u takes it back%s"):format(more))
  end
  local head = "commit message: :w !git commit -F - commits with it, q closes" .. more
  free.when("the commit message", function()
    return true
  end, function()
    local sheet = window.split("commit", lines, head)
    vim.bo[sheet].modifiable, vim.bo[sheet].filetype = true, "gitcommit"
  end)
end

--- Ask for a message.
---@param model? string
function M.ask(model)
  local buf = api.nvim_get_current_buf()
  local name = api.nvim_buf_get_name(buf)
  local path = reader.here()
  if vim.bo[buf].filetype == "gitcommit" and name ~= "" then
    path = assert(vim.uv.cwd()) -- the file itself is in .git
  end
  require("lcursor.edit").begin("edit.commit", { path = path, model = model or "" }, {
    what = "commit",
    model = model,
    answered = function(said)
      show(said.text, said.note, buf)
    end,
  })
end

return M
