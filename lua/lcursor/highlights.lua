-- The highlight groups: links that a colour scheme or the user may override.

local M = {}

local GROUPS = {
  {
    name = "LCursorGhost",
    link = "Comment",
    prefer = "ComplHint", -- Neovim 0.12's own name for the same thing
    text = "The suggestion at the cursor and below it.",
  },
}

---@param group table
---@return string
local function target(group)
  return vim.fn.hlexists(group.prefer) == 1 and group.prefer or group.link
end

--- Set them; again after each ColorScheme, which clears them.
function M.apply()
  for _, group in ipairs(GROUPS) do
    vim.api.nvim_set_hl(0, group.name, { link = target(group), default = true })
  end
end

--- The groups, for the help.
---@return { name: string, text: string, default: string }[]
function M.describe()
  return vim.tbl_map(function(group)
    return {
      name = group.name,
      text = group.text .. " Where Neovim has " .. group.prefer .. ", it links to that.",
      default = group.link,
    }
  end, GROUPS)
end

return M
