-- The highlight groups: links that a colour scheme or the user may override.

local notify = require("lcursor.ui.notify")

local M = {}

---@type { [1]: string, [2]: string, [3]: string }[] name, what it links to, what it is for
local GROUPS = {
  { "LCursorGhost", "Comment", "Suggestion" },
  { "LCursorGhostCount", "NonText", "Which alternative is shown: (2/3)" },
  { "LCursorNextEditOld", "@markup.strikethrough", "Next edit: old words" },
  { "LCursorNextEditNew", "DiffAdd", "Next edit: new words" },
  { "LCursorNextEditHint", "DiagnosticInfo", "Next edit: hint where it is" },
  { "LCursorNextEditNumber", "DiagnosticInfo", "Next edit: number of its line" },
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
  { "LCursorAgentKind", "Function", "Agent: kind of a step" },
  { "LCursorAgentBusy", "DiagnosticInfo", "Agent: a step that runs" },
  { "LCursorAgentDone", "DiagnosticOk", "Agent: a step that succeeded" },
  { "LCursorAgentFailed", "DiagnosticError", "Agent: one that failed" },
  { "LCursorAgentAsks", "DiagnosticWarn", "Agent: it waits for you" },
  { "LCursorAgentUnsafe", "DiagnosticWarn", "Agent: no sandbox, in the winbar" },
  { "LCursorAgentFull", "ErrorMsg", "Agent: policy full, in the winbar" },
  { "LCursorStartReady", "DiagnosticOk", "Start page: set up; tutor: done" },
  { "LCursorStartMissing", "DiagnosticWarn", "Start page: missing" },
  { "LCursorStartBusy", "DiagnosticInfo", "Start page: in progress" },
  { "LCursorStartKey", "Special", "Start page: a key" },
  { "LCursorStartTitle", "Title", "Start page: a heading" },
}

-- Neovim 0.12 has its own group for ghost text.
local NEWER = { LCursorGhost = "ComplHint" }

--- Return how many colours the terminal has.
---@return integer? nil: no terminal, or one that shows RGB
local function terminal_colours()
  local uis = vim.api.nvim_list_uis()
  local has_rgb = vim.o.termguicolors or vim.iter(uis):any(function(ui)
    return ui.rgb
  end)
  if #uis > 0 and not has_rgb then
    return tonumber(vim.fn.eval("&t_Co")) or 0
  end
end

--- Whether colours alone can mark lines. Those of Neovim's default scheme are bright, which
--- terminals with fewer than 16 colours do not show.
---@return boolean
function M.has_colours()
  return (terminal_colours() or 16) >= 16
end

--- What groups look like where the colour scheme has no terminal colours for them: without these
--- a ghost looks like text.
---@param colours integer of the terminal
---@return table<string, vim.api.keyset.highlight> by group, or by the group that it links to
local function fallbacks(colours)
  local underlined, reversed = { cterm = { underline = true } }, { cterm = { reverse = true } }
  if colours < 16 then
    -- stylua: ignore
    return {
      Comment = underlined, ComplHint = underlined, NonText = underlined,
      CursorLine = underlined, DiffChange = underlined,
      DiffAdd = {}, DiffText = reversed, Visual = reversed,
      LCursorNextEditNew = underlined, LCursorNextEditOld = reversed, -- they have no signs
    }
  end
  local dim = { ctermfg = colours >= 256 and 244 or 8 }
  local band = underlined
  if colours >= 256 then
    band = { ctermbg = vim.o.background == "light" and 252 or 238 }
  end
  return { Comment = dim, ComplHint = dim, NonText = dim, CursorLine = band, DiffChange = band }
end

--- Whether a terminal shows what a group has.
---@param group vim.api.keyset.get_hl_info
---@param colours integer of the terminal
---@return boolean
local function is_visible(group, colours)
  local fg, bg = group.ctermfg, group.ctermbg
  local has_color = fg ~= nil or bg ~= nil
  return group.cterm ~= nil or (has_color and math.max(fg or 0, bg or 0) < colours)
end

local is_listening = false

--- Define the groups, now and after each ColorScheme, which clears them. The user's own stay.
function M.apply()
  if not is_listening then
    is_listening = true
    notify.autocmds("highlights")({ "ColorScheme", "UIEnter" }, M.apply)
  end
  local colours = terminal_colours()
  local styles = colours and fallbacks(colours) or {}
  for _, group in ipairs(GROUPS) do
    local name, link = group[1], group[2]
    local newer = NEWER[name]
    link = newer and vim.fn.hlexists(newer) == 1 and newer or link
    local linked = vim.api.nvim_get_hl(0, { name = link, link = false })
    local attributes = { link = link }
    local style = styles[name]
    if not style and styles[link] and not is_visible(linked, assert(colours)) then
      style = styles[link]
    end
    if style then
      linked.ctermfg, linked.ctermbg = nil, nil
      attributes = vim.tbl_extend("force", linked, style)
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
