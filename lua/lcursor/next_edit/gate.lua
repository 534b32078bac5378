-- Whether next edits may be predicted in a buffer, and shown here and now.

local config = require("lcursor.config")
local keymaps = require("lcursor.editor.keymaps")
local menu = require("lcursor.ui.menu")
local privacy = require("lcursor.editor.privacy")

local M = {}

local api = vim.api
local MAX_LINES, MAX_BYTES = 10000, 1024 * 1024 -- parsing more takes too long

---@type table<string, string> code -> sentence
M.SENTENCES = {
  readonly = "This buffer cannot be modified.",
  mode = "Next edits come only in Normal and Insert mode.",
  macro = "A macro is recorded or run.",
  menu = "A completion menu is open.",
  snippet = "A snippet is active.",
  diff = "The window is in diff mode.",
  hunks = "There are open hunks.",
  cursors = "Another plugin has several cursors.",
  suggestion = "A suggestion is shown.",
}

--- Return why edits of a buffer are not even recorded.
---@param answered? fun() called later, when git has answered; nil: git is not asked
---@return string? code
function M.buffer_block_reason(buf, answered)
  local options = vim.bo[buf]
  if config.switched_off("next_edit", buf) then
    return "off"
  elseif options.buftype ~= "" or not options.buflisted or api.nvim_buf_get_name(buf) == "" then
    return "special"
  elseif options.readonly or not options.modifiable then
    return "readonly"
  end
  local count = api.nvim_buf_line_count(buf)
  if count > MAX_LINES or api.nvim_buf_get_offset(buf, count) > MAX_BYTES then
    return "big_file"
  end
  return privacy.block_reason(buf, config.for_buffer(buf).privacy.exclude, answered)
end

---@return boolean whether a plugin has several cursors
local function has_cursors(buf)
  local plugin = package.loaded["multicursor-nvim"]
  if vim.b[buf].visual_multi then
    return true
  end
  return type(plugin) == "table" and plugin.hasCursors ~= nil and plugin.hasCursors()
end

--- Return why nothing may be shown in the current window now.
---@param buf integer the current one
---@return string? code
function M.block_reason(buf)
  local mode = api.nvim_get_mode().mode
  if mode ~= "n" and mode ~= "i" then
    return "mode"
  elseif vim.fn.reg_recording() ~= "" or vim.fn.reg_executing() ~= "" then
    return "macro"
  elseif menu.is_visible() then
    return "menu"
  elseif menu.is_in_snippet() then
    return "snippet"
  elseif vim.wo.diff then
    return "diff"
  elseif keymaps.is_mapped("hunk", buf) then
    return "hunks"
  elseif keymaps.is_mapped("suggestion", buf) then
    return "suggestion"
  elseif has_cursors(buf) then
    return "cursors"
  elseif vim.bo[buf].readonly or not vim.bo[buf].modifiable then
    return "readonly"
  end
end

return M
