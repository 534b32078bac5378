-- The highlight groups: links that a colour scheme or the user may override.

local M = {}

local GROUPS = {
  {
    name = "LCursorGhost",
    link = "Comment",
    prefer = "ComplHint", -- Neovim 0.12's own name for the same thing
    text = "The suggestion at the cursor and below it.",
  },
  {
    name = "LCursorGhostCount",
    link = "NonText",
    text = "Which of several suggestions it is, as in (2/3), behind its first line.",
  },
  {
    name = "LCursorTokenMarker",
    link = "Special",
    text = "A marker of the model's family in :LCursor prompt.",
  },
  {
    name = "LCursorTokenRead",
    link = "DiffAdd",
    text = "What was read anew in :LCursor prompt; all else was kept in the cache.",
  },
  {
    name = "LCursorTokenBorder",
    link = "Visual",
    text = "Every other token in :LCursor prompt, when borders are shown.",
  },
  {
    name = "LCursorTokenId",
    link = "NonText",
    text = "The id of a token in :LCursor prompt.",
  },
  {
    name = "LCursorHit",
    link = "Visual",
    text = "What was found, in the preview of :LCursor search.",
  },
  {
    name = "LCursorHitFile",
    link = "Directory",
    text = "File and line of what was found.",
  },
  {
    name = "LCursorHitChosen",
    link = "CursorLine",
    text = "The line that the preview is of.",
  },
  {
    name = "LCursorChatUser",
    link = "Title",
    text = "The heading of what you say in a chat.",
  },
  {
    name = "LCursorChatModel",
    link = "Function",
    text = "The heading of what the model says.",
  },
  {
    name = "LCursorChatSummary",
    link = "Special",
    text = "The heading of a summary of earlier messages.",
  },
  {
    name = "LCursorChatNote",
    link = "Comment",
    text = "What is said beside the text of a chat: branches, what is attached, what to do.",
  },
  {
    name = "LCursorChatFailed",
    link = "DiagnosticError",
    text = "Why there is no answer.",
  },
  {
    name = "LCursorChatTitle",
    link = "Title",
    text = "The title of a chat, in its winbar.",
  },
  {
    name = "LCursorChatTokens",
    link = "Number",
    text = "What a line of the bill costs, in tokens.",
  },
  {
    name = "LCursorChatBusy",
    link = "DiagnosticInfo",
    text = "What a turn is doing, in its winbar.",
  },
  {
    name = "LCursorEditAdded",
    link = "DiffAdd",
    text = "A line that a proposed change adds.",
  },
  {
    name = "LCursorEditAddedWord",
    link = "DiffText",
    text = "Words of it that the old line has not.",
  },
  {
    name = "LCursorEditRemoved",
    link = "DiffDelete",
    text = "A line that a proposed change takes away.",
  },
  {
    name = "LCursorEditRemovedWord",
    link = "DiffText",
    text = "Words of it that the new line has not.",
  },
  {
    name = "LCursorEditDisputed",
    link = "DiffChange",
    text = "Lines that were changed since a change of them was proposed.",
  },
  {
    name = "LCursorEditConflict",
    link = "DiagnosticWarn",
    text = "What is said about such a change.",
  },
  {
    name = "LCursorEditBadge",
    link = "Comment",
    text = "What is said at the end of a change: checks, how many there are.",
  },
  {
    name = "LCursorEditFailed",
    link = "DiagnosticError",
    text = "A check that a proposed change did not pass.",
  },
  {
    name = "LCursorEditKey",
    link = "Special",
    text = "The keys that are named there.",
  },
  {
    name = "LCursorEditRegion",
    link = "CursorLine",
    text = "The lines that are written anew, while that goes on.",
  },
  {
    name = "LCursorEditTitle",
    link = "Title",
    text = "The title of the window that asks what shall be done; the kind of a step of a plan.",
  },
  {
    name = "LCursorEditDropped",
    link = "NonText",
    text = "A step of a plan that is struck out.",
  },
}

---@param group table
---@return string
local function target(group)
  return group.prefer and vim.fn.hlexists(group.prefer) == 1 and group.prefer or group.link
end

--- Without true colours Neovim's own scheme has none for these, and a ghost looked like text.
---@return table<string, vim.api.keyset.highlight> by the group that is linked to
local function plain()
  local is_rich = (tonumber(vim.fn.eval("&t_Co")) or 0) >= 256
  local dim = { ctermfg = is_rich and 244 or 8 }
  local band = is_rich and { ctermbg = vim.o.background == "light" and 252 or 238 }
    or { cterm = { underline = true } }
  return { Comment = dim, ComplHint = dim, NonText = dim, CursorLine = band, DiffChange = band }
end

---@return boolean whether what is drawn has the colours of a terminal's palette
local function has_palette()
  local uis = vim.api.nvim_list_uis()
  return #uis > 0
    and not vim.o.termguicolors
    and not vim.iter(uis):any(function(ui)
      return ui.rgb
    end)
end

---@type table<string, vim.api.keyset.get_hl_info> what was put instead of a link
local put = {}

---@param name string
---@return vim.api.keyset.get_hl_info
local function read(name)
  return vim.api.nvim_get_hl(0, { name = name, create = false })
end

--- Give a group the colours of what it would link to, and those of the palette that are missing.
---@param name string
---@param link string
---@param colours vim.api.keyset.highlight
local function fill(name, link, colours)
  local now = read(name)
  if not vim.tbl_isempty(now) and now.link ~= link and not vim.deep_equal(now, put[name]) then
    return -- the user's
  end
  local all = vim.api.nvim_get_hl(0, { name = link, link = false })
  if all.cterm or all.ctermfg or all.ctermbg then
    return vim.api.nvim_set_hl(0, name, { link = link })
  end
  all.default = nil
  vim.api.nvim_set_hl(0, name, vim.tbl_extend("force", all, colours))
  put[name] = read(name)
end

local is_listening = false

local function listen()
  if is_listening then
    return
  end
  is_listening = true
  local group = vim.api.nvim_create_augroup("lcursor.highlights", {})
  vim.api.nvim_create_autocmd({ "ColorScheme", "UIEnter" }, { group = group, callback = M.apply })
  vim.api.nvim_create_autocmd("OptionSet", {
    group = group,
    pattern = "termguicolors",
    callback = M.apply,
  })
end

--- Set them; again by itself after each ColorScheme, which clears them.
function M.apply()
  listen()
  local instead = has_palette() and plain() or {}
  for _, group in ipairs(GROUPS) do
    local name, link = group.name, target(group)
    if instead[link] then
      fill(name, link, instead[link])
    else
      local is_ours = put[name] ~= nil and vim.deep_equal(read(name), put[name])
      put[name] = nil
      vim.api.nvim_set_hl(0, name, { link = link, default = not is_ours })
    end
  end
end

--- The groups, for the help.
---@return { name: string, text: string, default: string }[]
function M.describe()
  return vim.tbl_map(function(group)
    local where = " Where Neovim has %s, it links to that."
    return {
      name = group.name,
      text = group.text .. (group.prefer and where:format(group.prefer) or ""),
      default = group.link,
    }
  end, GROUPS)
end

return M
