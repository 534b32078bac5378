-- Notes next to hunks: once per file the results of its checks, and at the hunk under the cursor
-- its number and the keys.

local keymaps = require("lcursor.editor.keymaps")
local notes = require("lcursor.ui.notes")
local track = require("lcursor.edit.track")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.edit.at")
local file_namespace = api.nvim_create_namespace("lcursor.edit.file")
local FILE_PRIORITY = 150
local PRIORITY = 160 -- after the checks
local ID = 1

local KEYS = {
  { "accept", "accept", ":LCursor hunk accept" }, -- where it has no key
  { "reject", "reject" },
  { "next", "next" },
  { "diff", "compare" },
}
-- What the tick names of the checks that passed.
local PASSED = {
  { "parses", "parses" },
  { "lint", "lint" },
  { "test", "tests" },
}
local HIGH_KEYS = { { "diff", "read all" }, unpack(KEYS, 1, 3) }

--- Return what the checks of a proposal found in a file, and what else happens to it.
---@return lcursor.EditChunk[]
local function checks_of(file)
  local chunks, remarks, passed = {}, {}, {}
  if file.is_guarded then
    table.insert(chunks, { " ! runs code by itself", "LCursorEditFailed" })
  end
  for _, check in ipairs(file.checks) do
    local text = check.text:match("^[^\n]*")
    if not check.is_ok then
      local name = text == "" and check.name or ("%s: %s"):format(check.name, text)
      table.insert(chunks, { " ✗ " .. name, "LCursorEditFailed" })
    elseif text ~= "" then
      table.insert(remarks, { " " .. text, "LCursorEditBadge" })
    end
    passed[check.name] = check.is_ok
  end
  if #file.checks > 0 and #chunks == (file.is_guarded and 1 or 0) then
    local names = {}
    for _, each in ipairs(PASSED) do
      table.insert(names, passed[each[1]] and each[2] or nil)
    end
    local text = #names > 0 and table.concat(names, ", ") or "indentation"
    table.insert(chunks, { " ✓ " .. text, "LCursorEditBadge" })
    for _, remark in ipairs(remarks) do
      remark[1] = "," .. remark[1]
    end
  end
  vim.list_extend(chunks, remarks)
  local verb = file.kind == "delete" and "deleted" or file.kind == "rename" and "renamed"
  if verb then
    table.insert(chunks, { ("  the file is %s by "):format(verb), "LCursorEditBadge" })
    table.insert(chunks, { ":LCursor hunk accept all", "LCursorEditKey" })
  end
  return chunks
end

--- Return the key that compares a hunk with its old lines.
---@param buf integer
---@return string?
function M.diff_key(buf)
  return keymaps.shown("hunk", "diff", buf)
end

--- Return the row of a hunk's notes: for an insertion the one above it.
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
function M.show_checks(buf, hunks)
  api.nvim_buf_clear_namespace(buf, file_namespace, 0, -1)
  local is_shown = {} ---@type table<lcursor.EditPart, boolean>
  for _, hunk in ipairs(hunks) do
    if hunk.state == "open" and not is_shown[hunk.part] then
      is_shown[hunk.part] = true
      local chunks = checks_of(hunk.part.file)
      if #chunks > 0 then
        local opts = { priority = FILE_PRIORITY }
        notes.set(buf, file_namespace, M.row(buf, hunk), chunks, opts)
      end
    end
  end
end

---@param is_high boolean whether Neovim cannot show all new lines at once
---@return lcursor.EditChunk[]
local function keys(buf, is_high)
  local chunks = {}
  for _, key in ipairs(is_high and HIGH_KEYS or KEYS) do
    local lhs = keymaps.shown("hunk", key[1], buf)
    local name = lhs or key[3]
    if name then
      table.insert(chunks, { (#chunks > 0 and "  " or " ") .. name, "LCursorEditKey" })
    end
    if lhs then
      table.insert(chunks, { " " .. key[2], "LCursorEditBadge" })
    end
  end
  return chunks
end

---@type table<integer, { hunk: lcursor.Hunk, text: string }> by buffer
local shown = {}

--- Remove the note at the cursor.
---@param buf integer
function M.clear(buf)
  if shown[buf] then
    shown[buf] = nil
    if api.nvim_buf_is_loaded(buf) then
      api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
    end
  end
end

--- Show the number of the hunk at the cursor and the keys.
---@param buf integer of the current window
---@param hunks lcursor.Hunk[] in the order of their rows
function M.show(buf, hunks)
  local hunk, index = track.at(hunks, api.nvim_win_get_cursor(0)[1] - 1)
  if not hunk then
    return M.clear(buf)
  end
  local row = M.row(buf, hunk)
  local count = ("  %d/%d +%d -%d"):format(index, #hunks, #hunk.new, #hunk.old)
  local chunks = { { count, "LCursorEditBadge" } }
  if hunk.state == "open" then
    vim.list_extend(chunks, keys(buf, #hunk.new > api.nvim_win_get_height(0) - 2))
  end
  local fits = notes.fits(buf, row, chunks, namespace)
  local text = ("%s %d"):format(fits, notes.width(buf))
  for _, chunk in ipairs(chunks) do
    text = text .. chunk[1]
  end
  local now = shown[buf]
  if now and now.hunk == hunk and now.text == text then
    -- What is typed moves the mark.
    if api.nvim_buf_get_extmark_by_id(buf, namespace, ID, {})[1] == row then
      return
    end
  end
  shown[buf] = { hunk = hunk, text = text }
  notes.set(buf, namespace, row, chunks, { id = ID, priority = PRIORITY })
end

return M
