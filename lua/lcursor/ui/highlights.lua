-- The highlight groups: links that a colour scheme or the user may override.

local notify = require("lcursor.notify")

local M = {}

---@type { [1]: string, [2]: string, [3]: string }[] name, what it links to, what it is for
local GROUPS = {
  { "LCursorGhost", "Comment", "Suggestion" },
  { "LCursorGhostCount", "NonText", "Which alternative is shown: (2/3)" },
  { "LCursorTokenMarker", "Special", "Prompt: special token" },
  { "LCursorTokenRead", "DiffAdd", "Prompt: was not cached" },
  { "LCursorTokenBorder", "Visual", "Prompt: token border, after `t`" },
  { "LCursorTokenId", "NonText", "Prompt: token id, after `i`" },
  { "LCursorHit", "Visual", "Search: result in the preview" },
  { "LCursorHitFile", "Directory", "Search: file and line" },
  { "LCursorHitChosen", "CursorLine", "Search: selected result" },
  { "LCursorChatUser", "Title", "Chat: heading of your messages" },
  { "LCursorChatModel", "Function", "Chat: heading of the model's" },
  { "LCursorChatSummary", "Special", "Chat: heading of a summary" },
  { "LCursorChatNote", "Comment", "Chat: notes and key hints" },
  { "LCursorChatFailed", "DiagnosticError", "Chat: an error" },
  { "LCursorChatTitle", "Title", "Chat: title in the winbar" },
  { "LCursorChatTokens", "Number", "Chat: a number of tokens" },
  { "LCursorChatBusy", "DiagnosticInfo", "Chat: progress in the winbar" },
  { "LCursorEditAdded", "DiffAdd", "Hunk: added line" },
  { "LCursorEditAddedWord", "DiffText", "Hunk: added words" },
  { "LCursorEditRemoved", "DiffDelete", "Hunk: removed line" },
  { "LCursorEditRemovedWord", "DiffText", "Hunk: removed words" },
  { "LCursorEditDisputed", "DiffChange", "Hunk: lines of a conflict" },
  { "LCursorEditConflict", "DiagnosticWarn", "Hunk: message about it" },
  { "LCursorEditBadge", "Comment", "Hunk: number and other notes" },
  { "LCursorEditFailed", "DiagnosticError", "Hunk: a failed check" },
  { "LCursorEditKey", "Special", "Hunk: key hints" },
  { "LCursorEditRegion", "CursorLine", "Lines that are being rewritten" },
  { "LCursorEditTitle", "Title", "Title of the edit prompt" },
  { "LCursorEditDropped", "NonText", "Plan: dropped step" },
  { "LCursorStartReady", "DiagnosticOk", "Start page: set up; tutor: done" },
  { "LCursorStartMissing", "DiagnosticWarn", "Start page: missing" },
  { "LCursorStartBusy", "DiagnosticInfo", "Start page: in progress" },
  { "LCursorStartKey", "Special", "Start page: a key" },
  { "LCursorStartTitle", "Title", "Start page: a heading" },
}

-- Neovim 0.12 has its own group for ghost text.
local NEWER = { LCursorGhost = "ComplHint" }

--- What groups look like where Neovim's default scheme gives them no terminal colours: without
--- these a ghost looks like text.
---@return table<string, vim.api.keyset.highlight> by the group that is linked to
local function terminal_colours()
  local has_256 = (tonumber(vim.fn.eval("&t_Co")) or 0) >= 256
  local dim = { ctermfg = has_256 and 244 or 8 }
  local band = has_256 and { ctermbg = vim.o.background == "light" and 252 or 238 }
    or { cterm = { underline = true } }
  return { Comment = dim, ComplHint = dim, NonText = dim, CursorLine = band, DiffChange = band }
end

---@return boolean whether a user interface shows terminal colours, not RGB
local function is_terminal()
  local uis = vim.api.nvim_list_uis()
  return #uis > 0
    and not vim.o.termguicolors
    and not vim.iter(uis):any(function(ui)
      return ui.rgb
    end)
end

local is_listening = false

--- Define the groups, now and after each ColorScheme, which clears them. The user's own stay.
function M.apply()
  if not is_listening then
    is_listening = true
    notify.autocmds("highlights")({ "ColorScheme", "UIEnter" }, M.apply)
  end
  local colours = is_terminal() and terminal_colours() or {}
  for _, group in ipairs(GROUPS) do
    local name, link = group[1], group[2]
    local newer = NEWER[name]
    link = newer and vim.fn.hlexists(newer) == 1 and newer or link
    local linked = vim.api.nvim_get_hl(0, { name = link, link = false })
    local attributes = { link = link }
    if colours[link] and not (linked.cterm or linked.ctermfg or linked.ctermbg) then
      attributes = vim.tbl_extend("force", linked, colours[link])
    end
    attributes.default = true
    vim.api.nvim_set_hl(0, name, attributes)
  end
end

--- Return the groups, for the help.
---@return { name: string, text: string, default: string }[]
function M.describe()
  return vim.tbl_map(function(group)
    local newer = NEWER[group[1]]
    local more = newer and (" (%s if it exists)"):format(newer) or ""
    return { name = group[1], text = group[3] .. more, default = group[2] }
  end, GROUPS)
end

return M
