-- What is said at the end of a line about a hunk: what was found out about it, and at the one that
-- the cursor is at, which of how many it is and the keys. Owns the mark of the latter.

local anchor = require("lcursor.edit.anchor")
local config = require("lcursor.config")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.at")
local PRIORITY = 160 -- behind what was found out

local KEYS = {
  { "accept", "take" },
  { "reject", "refuse" },
  { "accept_file", "take all" },
  { "next", "next" },
}

--- What the checks of a proposal found.
---@param checks lcursor.EditCheck[]
---@return lcursor.EditChunk[]
function M.checks(checks)
  local chunks = {}
  for _, check in ipairs(checks) do
    if not check.is_ok then
      local said = check.text:match("^[^\n]*")
      local words = said == "" and check.name or check.name .. ": " .. said
      table.insert(chunks, { " ✗ " .. words, "LCursorEditFailed" })
    end
  end
  if #checks > 0 and #chunks == 0 then
    table.insert(chunks, { " ✓", "LCursorEditBadge" })
  end
  return chunks
end

--- What is to be done to a file besides its lines, which no key for hunks does.
---@param file lcursor.EditFile
---@return lcursor.EditChunk[]
function M.whole(file)
  local verb = file.kind == "delete" and "deleted" or file.kind == "rename" and "renamed"
  if not verb then
    return {}
  end
  return {
    { (" the file is %s by "):format(verb), "LCursorEditBadge" },
    { ":LCursor accept all", "LCursorEditKey" },
  }
end

--- The row at whose end something is said about a hunk.
---@param buf integer
---@param hunk lcursor.Hunk
---@return integer
function M.row(buf, hunk)
  local row = hunk.last == hunk.first and hunk.first - 1 or hunk.first
  return math.min(math.max(row, 0), api.nvim_buf_line_count(buf) - 1)
end

---@param is_high boolean whether Neovim cannot show all of its new lines at once
---@return lcursor.EditChunk[]
local function keys(is_high)
  local mappings = (config.get().edit or {}).mappings or {}
  local chunks = {}
  for _, key in ipairs(is_high and vim.list_extend({ { "edit", "read all" } }, KEYS) or KEYS) do
    local lhs = mappings[key[1]] or ""
    if lhs ~= "" then
      table.insert(chunks, { (#chunks > 0 and "  " or " ") .. lhs, "LCursorEditKey" })
      table.insert(chunks, { " " .. key[2], "LCursorEditBadge" })
    end
  end
  return chunks
end

---@class (exact) lcursor.EditPointed what is said at the cursor
---@field hunk lcursor.Hunk
---@field state lcursor.HunkState
---@field text string
---@field is_high boolean

---@type table<integer, lcursor.EditPointed>
local pointed = {}

---@param buf integer
---@return integer? row at which it stands now: what is typed moves it
local function pointed_row(buf)
  return api.nvim_buf_get_extmark_by_id(buf, namespace, 1, {})[1]
end

--- Nothing is to be said in a buffer any more.
---@param buf integer
function M.leave(buf)
  if pointed[buf] then
    pointed[buf] = nil
    if api.nvim_buf_is_loaded(buf) then
      api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    end
  end
end

--- Say what there is to say at the cursor.
---@param buf integer of the current window
---@param hunks lcursor.Hunk[] in the order of their rows
function M.point(buf, hunks)
  local hunk, index = anchor.at(hunks, api.nvim_win_get_cursor(0)[1] - 1)
  if not hunk then
    return M.leave(buf)
  end
  local row = M.row(buf, hunk)
  local text = ("  %d/%d +%d -%d"):format(index, #hunks, #hunk.new, #hunk.old)
  local is_high = #hunk.new > api.nvim_win_get_height(0) - 2
  local before = pointed[buf]
  local is_same = before and before.hunk == hunk and before.text == text
  if is_same and before.is_high == is_high and before.state == hunk.state then
    if pointed_row(buf) == row then
      return
    end
  end
  pointed[buf] = { hunk = hunk, state = hunk.state, text = text, is_high = is_high }
  local chunks = { { text, "LCursorEditBadge" } }
  if hunk.state == "open" then
    vim.list_extend(chunks, keys(is_high))
  end
  api.nvim_buf_set_extmark(buf, namespace, row, 0, {
    id = 1,
    virt_text = chunks,
    priority = PRIORITY,
    undo_restore = false,
  })
end

return M
