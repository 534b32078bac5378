-- Notes beside hunks: once per file what its checks found, and at the hunk under the cursor its
-- number and the keys. Owns the marks of both.

local anchor = require("lcursor.edit.anchor")
local config = require("lcursor.config")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.at")
local file_namespace = api.nvim_create_namespace("lcursor.edit.file")
local FILE_PRIORITY = 150
local PRIORITY = 160 -- after the checks

local KEYS = {
  { "accept", "accept" },
  { "reject", "reject" },
  { "accept_file", "accept file" },
  { "next", "next" },
}

--- What the checks of a proposal found.
---@param checks lcursor.EditCheck[]
---@return lcursor.EditChunk[]
function M.checks(checks)
  local chunks, remarks = {}, {}
  for _, check in ipairs(checks) do
    local said = check.text:match("^[^\n]*")
    if check.is_ok and said ~= "" then
      table.insert(remarks, { " " .. said, "LCursorEditBadge" })
    elseif not check.is_ok then
      local words = said == "" and check.name or check.name .. ": " .. said
      table.insert(chunks, { " ✗ " .. words, "LCursorEditFailed" })
    end
  end
  if #checks > 0 and #chunks == 0 then
    table.insert(chunks, { " ✓", "LCursorEditBadge" })
  end
  return vim.list_extend(chunks, remarks)
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

--- Show what the checks of each file found, at the first of its open hunks.
---@param buf integer
---@param hunks lcursor.Hunk[] of the buffer, in the order of their rows
function M.files(buf, hunks)
  api.nvim_buf_clear_namespace(buf, file_namespace, 0, -1)
  local is_shown = {} ---@type table<lcursor.EditPart, boolean>
  for _, hunk in ipairs(hunks) do
    if hunk.state == "open" and not is_shown[hunk.part] then
      is_shown[hunk.part] = true
      local file = hunk.part.file
      local chunks = vim.list_extend(M.checks(file.checks), M.whole(file))
      if #chunks > 0 then
        api.nvim_buf_set_extmark(buf, file_namespace, M.row(buf, hunk), 0, {
          virt_text = chunks,
          priority = FILE_PRIORITY,
          undo_restore = false,
        })
      end
    end
  end
end

---@param chunks lcursor.EditChunk[]
---@return integer cells
local function width_of(chunks)
  local width = 0
  for _, chunk in ipairs(chunks) do
    width = width + api.nvim_strwidth(chunk[1])
  end
  return width
end

--- Whether a note fits between the end of a line and the edge of the current window.
---@param buf integer
---@param row integer
---@param chunks lcursor.EditChunk[]
---@return boolean
local function is_fitting(buf, row, chunks)
  local info = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  local width = info.width - info.textoff
  local used = vim.fn.virtcol({ row + 1, "$" }) - 1
  used = vim.wo.wrap and used % width or used - info.leftcol
  local at = { row, 0 }
  for _, mark in
    ipairs(api.nvim_buf_get_extmarks(buf, file_namespace, at, { row, -1 }, { details = true }))
  do
    used = used + width_of(mark[4].virt_text or {}) + 1
  end
  return used + 1 + width_of(chunks) <= width
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
---@field is_above boolean it is on a line of its own

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
  local chunks = { { text, "LCursorEditBadge" } }
  if hunk.state == "open" then
    vim.list_extend(chunks, keys(is_high))
  end
  -- Above the first line a virtual line would not be visible.
  local is_above = row > 0 and not is_fitting(buf, row, chunks)
  local before = pointed[buf]
  local is_same = before and before.hunk == hunk and before.state == hunk.state
  is_same = is_same and before.text == text and before.is_high == is_high
  if is_same and before.is_above == is_above and pointed_row(buf) == row then
    return
  end
  pointed[buf] =
    { hunk = hunk, state = hunk.state, text = text, is_high = is_high, is_above = is_above }
  api.nvim_buf_set_extmark(buf, namespace, row, 0, {
    id = 1,
    virt_text = not is_above and chunks or nil,
    virt_lines = is_above and { chunks } or nil,
    virt_lines_above = is_above,
    priority = PRIORITY,
    undo_restore = false,
  })
end

return M
