-- Draws a proposal in its lines, with the old words struck out before the new ones; or as a
-- hint at the end of the cursor's line, with a mark at the number of the target's line.

local diff = require("lcursor.text.diff")
local text = require("lcursor.text")
local virt_lines = require("lcursor.ui.virt_lines")

local M = {}

local api = vim.api
local namespace = api.nvim_create_namespace("lcursor.next_edit")
local OLD, NEW, HINT = "LCursorNextEditOld", "LCursorNextEditNew", "LCursorNextEditHint"
local PRIORITY = 150 -- above treesitter's
local MAX_WORD = 24

---@class (exact) lcursor.WordChange bytes of a line, and what replaces them
---@field first integer
---@field last integer
---@field new string

---@type { buf: integer, key: string, is_hint: boolean }?
local drawn

--- Return the words in which a line changes; nil if it changes as a whole.
---@param proposal lcursor.NextProposal
---@return lcursor.WordChange[]?
function M.words(proposal)
  if #proposal.old ~= 1 or #proposal.new ~= 1 then
    return nil
  end
  local old, new = proposal.old[1], proposal.new[1]
  local old_spans, new_spans = diff.words(old, new)
  if #old_spans + #new_spans == 0 then
    return nil
  end
  -- Walk through both lines: what is between two spans is the same in both.
  local found, at, new_at, i, j = {}, 0, 0, 1, 1
  while old_spans[i] or new_spans[j] do
    local to_old = old_spans[i] and old_spans[i][1] - at or math.huge
    local to_new = new_spans[j] and new_spans[j][1] - new_at or math.huge
    local same = math.min(to_old, to_new)
    at, new_at = at + same, new_at + same
    local change = { first = at, last = at, new = "" }
    if to_old == same then
      at = old_spans[i][2]
      change.last, i = at, i + 1
    end
    if to_new == same then
      change.new = new:sub(new_at + 1, new_spans[j][2])
      new_at, j = new_spans[j][2], j + 1
    end
    table.insert(found, change)
  end
  return found
end

---@param opts vim.api.keyset.set_extmark
local function mark(buf, row, col, opts)
  opts.strict, opts.undo_restore, opts.priority = false, false, PRIORITY
  api.nvim_buf_set_extmark(buf, namespace, row, col, opts)
end

--- Remove what is drawn.
function M.hide()
  if drawn then
    if api.nvim_buf_is_valid(drawn.buf) then
      api.nvim_buf_clear_namespace(drawn.buf, namespace, 0, -1)
    end
    drawn = nil
  end
end

---@return boolean whether it is drawn already
local function is_drawn(buf, key, is_hint)
  if drawn and drawn.buf == buf and drawn.key == key then
    return true
  end
  M.hide()
  drawn = { buf = buf, key = key, is_hint = is_hint }
  return false
end

---@return boolean whether a proposal is drawn in its lines
function M.is_inline()
  return drawn ~= nil and not drawn.is_hint
end

--- Return whether all that a proposal changes is visible, be it in a hint for the cursor's line.
---@param proposal lcursor.NextProposal
function M.is_complete(proposal, row)
  if not drawn or not drawn.is_hint then
    return drawn ~= nil
  end
  local words = M.words(proposal) or {}
  return row == api.nvim_win_get_cursor(0)[1] - 1
    and #words == 1
    and words[1].last - words[1].first <= MAX_WORD
    and #words[1].new <= MAX_WORD
end

--- Return how many cells are free behind a line of the current window.
local function room_behind(row)
  local info = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  local used = vim.fn.virtcol({ row + 1, "$" }) - 1
  local width = math.max(info.width - info.textoff, 1)
  return width - (vim.wo.wrap and used % width or used) - 1
end

---@param key? string that goes to a proposal or applies it; nil if there is none
---@param ... string what follows it
local function note(key, ...)
  key = key and key:lower() == "<tab>" and "⇥" or key or ""
  local words = vim.tbl_filter(function(word)
    return word ~= ""
  end, { key, ... })
  return table.concat(words, " ")
end

--- Draw a proposal in its lines.
---@param proposal lcursor.NextProposal
---@param row integer where it is
---@param count string for example "2 of 5"; "" for a single one
---@param key? string that applies it
function M.draw(buf, proposal, row, count, key)
  local tick = api.nvim_buf_get_changedtick(buf)
  local state = ("%d %s %d\n%s"):format(tick, count, row, table.concat(proposal.new, "\n"))
  if is_drawn(buf, state, false) then
    return
  end
  local options = virt_lines.options(buf)
  local words, added = M.words(proposal), 0
  for _, word in ipairs(words or {}) do
    added = added + api.nvim_strwidth(word.new)
    if word.last > word.first then
      mark(buf, row, word.first, { end_col = word.last, hl_group = OLD })
    end
    if word.new ~= "" then
      local column = word.last > 0 and vim.fn.virtcol({ row + 1, word.last }) or 0
      local new = text.expand(word.new, column, options.tabstop, options.stops)
      mark(buf, row, word.last, { virt_text = { { new, NEW } }, virt_text_pos = "inline" })
    end
  end
  local own = note(key, count)
  if room_behind(row) - added > api.nvim_strwidth(own) then
    mark(buf, row, 0, { virt_text = { { own, HINT } }, virt_text_pos = "eol" })
  end
  if words then
    return
  end
  local lines, below = #proposal.old, {}
  if lines > 0 then
    mark(buf, row, 0, { end_row = row + lines, hl_group = "LCursorEditRemoved", hl_eol = true })
  end
  for removed = row, options.has_signs and row + lines - 1 or -1 do
    local sign = { "- ", "LCursorEditRemoved" }
    mark(buf, removed, 0, { virt_text = { sign }, virt_text_pos = "inline" })
  end
  for _, line in ipairs(proposal.new) do
    vim.list_extend(below, virt_lines.rows(line, options))
  end
  local is_above = lines == 0 and row == 0
  local at = is_above and 0 or row + lines - 1
  mark(buf, at, 0, { virt_lines = below, virt_lines_above = is_above })
end

---@return string the first word that changes, for a hint
local function summary(proposal)
  local function short(str)
    str = vim.trim(str)
    return vim.fn.strchars(str) > MAX_WORD and vim.fn.strcharpart(str, 0, MAX_WORD - 1) .. "…"
      or str
  end
  local word = (M.words(proposal) or {})[1]
  local old = word and proposal.old[1]:sub(word.first + 1, word.last) or proposal.old[1]
  local new = word and word.new or proposal.new[1]
  if not old or not old:find("%S") then
    return "+" .. short(new or "")
  elseif not new or not new:find("%S") then
    return "-" .. short(old)
  end
  return short(old) .. "→" .. short(new)
end

--- Draw a hint at the end of a line of the current window, or of the one below or above it if there
--- is no room.
---@param row integer of the cursor
---@param target integer row of the proposal
---@param name string of its file, if it is another one
---@param proposal lcursor.NextProposal
---@param count string for example "2 of 5"; "" for a single one
---@param key? string that goes there
---@return boolean drawn
function M.hint(buf, row, target, name, proposal, count, key)
  local is_here, what = name == "", summary(proposal)
  ---@param at integer row
  ---@return string? words that fit there
  local function words_at(at)
    local is_visible = at >= vim.fn.line("w0") - 1 and at < vim.fn.line("w$")
    if not is_visible or vim.fn.foldclosed(at + 1) ~= -1 then
      return nil
    end
    local line = (target ~= at or not is_here) and ("line %d"):format(target + 1) or ""
    line = vim.trim(name .. " " .. line)
    local forms = {
      note(key, line, what, count ~= "" and ("(%s)"):format(count) or ""),
      note(key, line, what),
      note(key, line ~= "" and line or what),
    }
    local room = room_behind(at)
    return vim.iter(forms):find(function(words)
      return api.nvim_strwidth(words) < room
    end)
  end
  local words, at
  for _, other in ipairs({ row, row + 1, row - 1 }) do
    at, words = other, words_at(other)
    if words then
      break
    end
  end
  if not words then
    M.hide()
    return false
  end
  local tick = api.nvim_buf_get_changedtick(buf)
  if not is_drawn(buf, ("%d %d %d %s"):format(tick, at, target, words), true) then
    local hint = { virt_text = { { words, HINT } }, virt_text_pos = "eol", hl_mode = "combine" }
    mark(buf, at, 0, hint)
    if is_here and target ~= row then
      mark(buf, target, 0, { number_hl_group = "LCursorNextEditNumber" })
    end
  end
  return true
end

return M
