-- A window in which the new lines of a hunk can be changed before they are taken: `:write` makes
-- them the proposal. Changes the hunk, never the file.

local diff = require("lcursor.edit.diff")
local draw = require("lcursor.edit.draw")
local notify = require("lcursor.notify")
local store = require("lcursor.edit.store")

local M = {}

local api = vim.api
local MOST_ROWS = 15

---@param buf integer of the window
---@param hunk lcursor.Hunk
local function save(buf, hunk)
  local target = hunk.part.buf
  if hunk.state ~= "open" or not target then
    return notify.warn("this change is no longer open: what is here was not taken over")
  end
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  if #lines == 1 and lines[1] == "" then
    lines = {}
  end
  vim.bo[buf].modified = false
  if diff.is_same(lines, hunk.old) then
    return notify.info("these are the old lines: refuse the change to keep them")
  end
  hunk.new, hunk.blocks, hunk.colours = lines, nil, nil
  draw.clear(target, { hunk })
  store.changed(target)
end

--- Open the new lines of a hunk below, to be changed.
---@param hunk lcursor.Hunk
---@return integer? win
function M.open(hunk)
  if hunk.state ~= "open" or not hunk.part.buf then
    notify.info("there is no open change here")
    return nil
  end
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buf, 0, -1, false, hunk.new)
  vim.bo[buf].buftype, vim.bo[buf].bufhidden = "acwrite", "wipe"
  api.nvim_buf_set_name(buf, ("lcursor://change/%d"):format(buf))
  vim.bo[buf].filetype = vim.bo[hunk.part.buf].filetype
  for _, option in ipairs({ "expandtab", "shiftwidth", "tabstop", "softtabstop" }) do
    vim.bo[buf][option] = vim.bo[hunk.part.buf][option]
  end
  vim.bo[buf].modified = false
  api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buf,
    callback = notify.guarded(function()
      save(buf, hunk)
    end),
  })
  local height = math.min(math.max(#hunk.new, 3), MOST_ROWS)
  local win = api.nvim_open_win(buf, true, { split = "below", height = height })
  vim.wo[win][0].foldenable = false -- that of the window before would close them
  return win
end

return M
