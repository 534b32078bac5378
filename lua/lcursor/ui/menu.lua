-- The completion menu: Neovim's own, or that of a plugin.

local M = {}

--- Return whether a completion menu is open: Neovim's own, nvim-cmp's or blink.cmp's.
---@return boolean
function M.is_visible()
  if vim.fn.pumvisible() == 1 then
    return true
  end
  local cmp = package.loaded["cmp"]
  if type(cmp) == "table" and type(cmp.visible) == "function" then
    local ok, visible = pcall(cmp.visible)
    if ok and visible then
      return true
    end
  end
  local blink = package.loaded["blink.cmp"]
  if type(blink) == "table" then
    local ok, visible = pcall(blink.is_menu_visible or blink.is_visible)
    return ok and visible == true
  end
  return false
end

--- Return whether a plugin asks language servers and shows what they answer.
---@return boolean
function M.is_plugin()
  local loaded = package.loaded
  return (loaded["blink.cmp"] or loaded["cmp_nvim_lsp"] or loaded["mini.completion"]) ~= nil
end

return M
