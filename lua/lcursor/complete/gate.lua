-- Whether a suggestion may be requested or shown here and now. Reasons are codes of why.lua.

local config = require("lcursor.config")
local menu = require("lcursor.ui.menu")
local privacy = require("lcursor.editor.privacy")
local text = require("lcursor.text")

local M = {}

local api = vim.api

-- Larger files and longer lines are too slow to read at every key.
M.max_file_bytes, M.max_line_bytes = 2 * 1024 * 1024, 4096

--- Return why nothing may be shown in the current mode.
---@param for_menu? boolean a menu asks, so one may be open
---@return string? code
function M.mode_block_reason(for_menu)
  local mode = api.nvim_get_mode().mode
  if mode:sub(1, 1) == "R" then
    return "replace"
  elseif mode:sub(1, 1) ~= "i" then
    return "mode"
  elseif vim.fn.reg_recording() ~= "" or vim.fn.reg_executing() ~= "" then
    return "macro"
  elseif not for_menu and menu.is_visible() then
    return "menu"
  elseif not for_menu and require("lcursor.next_edit").is_at_cursor() then
    return "next_edit"
  end
end

local function filetype_is_on(settings, filetype)
  local rules = settings.completion.filetypes
  local rule = rules[filetype]
  if rule == nil then
    rule = rules["*"]
  end
  return rule ~= false
end

--- Return why there are no suggestions in a buffer at all.
---@param answered? fun() called later, when "checking" has become another answer
---@return string? code
function M.buffer_block_reason(buf, answered)
  local options, off = vim.bo[buf], config.switched_off("completion", buf)
  local settings = config.for_buffer(buf)
  if off then
    return off
  elseif options.buftype ~= "" or not options.buflisted then
    return "special"
  elseif options.readonly or not options.modifiable then
    return "readonly"
  elseif not filetype_is_on(settings, options.filetype) then
    return "filetype"
  end
  local bytes = api.nvim_buf_get_offset(buf, api.nvim_buf_line_count(buf))
  if bytes > M.max_file_bytes then
    return "big_file"
  end
  return privacy.block_reason(buf, settings.privacy.exclude, answered or function() end)
end

local function in_comment(buf, row, col)
  local line = api.nvim_buf_get_text(buf, row, 0, row, col, {})[1]
  local leader = vim.trim(vim.bo[buf].commentstring:match("^(.-)%%s") or "")
  if leader ~= "" and vim.startswith(vim.trim(line), leader) then
    return true
  end
  local at = math.max(col - 1, 0)
  if vim.treesitter.highlighter.active[buf] then
    for _, capture in ipairs(vim.treesitter.get_captures_at_pos(buf, row, at)) do
      if vim.startswith(capture.capture, "comment") then
        return true
      end
    end
  elseif vim.bo[buf].syntax ~= "" then
    local group = vim.fn.synIDtrans(vim.fn.synID(row + 1, at + 1, true))
    return vim.fn.synIDattr(group, "name") == "Comment"
  end
  return false
end

--- Return why nothing is requested at a position, and whether only one line fits there.
---@param settings lcursor.Config
---@return string? code
---@return boolean single_line
function M.position_block_reason(buf, row, col, settings, is_manual)
  local offset = api.nvim_buf_get_offset
  if offset(buf, row + 1) - offset(buf, row) - 1 > M.max_line_bytes then
    return "long_line", false
  end
  local tail = api.nvim_buf_get_text(buf, row, col, row, -1, {})[1]
  local single_line = text.is_visible(tail)
  if is_manual then
    return nil, single_line
  elseif not text.is_inert(tail) then
    return "midline", true
  elseif not settings.completion.in_comments and in_comment(buf, row, col) then
    return "comment", false
  end
  return nil, single_line
end

return M
