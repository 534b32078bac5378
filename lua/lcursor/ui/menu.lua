-- Whether a completion menu or a snippet, Neovim's own or a plugin's, uses keys at the cursor.

local M = {}

--- Return whether Neovim's own menu is open, except one of 'autocomplete' (Neovim 0.12) in which
--- nothing is selected: that opens at nearly each key.
---@return boolean
local function is_own_visible()
  if vim.fn.pumvisible() == 0 then
    return false
  end
  local ok, is_automatic = pcall(vim.api.nvim_get_option_value, "autocomplete", { buf = 0 })
  return not (ok and is_automatic) or vim.fn.complete_info({ "selected" }).selected >= 0
end

--- Return whether a completion menu is open: Neovim's own, nvim-cmp's or blink.cmp's.
---@return boolean
function M.is_visible()
  if is_own_visible() then
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

--- Return whether the fields of a snippet are being filled in, by a plugin.
---@param direction? 1|-1 only if a key can jump to a field in that direction
---@return boolean
local function is_in_plugin_snippet(direction)
  local function ask(fn, ...)
    local ok, found = pcall(fn, ...)
    return ok and found ~= nil and found ~= false and found ~= 0
  end
  local luasnip, mini = package.loaded["luasnip"], package.loaded["mini.snippets"]
  if type(luasnip) == "table" then
    local fn = direction and luasnip.locally_jumpable or luasnip.in_snippet
    if ask(fn, direction) then
      return true
    end
  end
  return type(mini) == "table" and ask(vim.tbl_get(mini, "session", "get"))
    or vim.g.loaded_vsnip ~= nil and ask(vim.fn["vsnip#jumpable"], direction or 1)
end

--- Return whether the fields of a snippet are being filled in.
---@return boolean
function M.is_in_snippet()
  return vim.snippet.active() or is_in_plugin_snippet()
end

--- Return whether <Tab> or <S-Tab> jumps in a snippet now. Ask it while lcursor maps neither.
---@param lhs string
---@return boolean
function M.jumps(lhs)
  local direction = ({ ["<tab>"] = 1, ["<s-tab>"] = -1 })[lhs:lower()]
  local map = direction and vim.fn.maparg(lhs, "i", false, true) or {}
  if not next(map) then
    return false
  elseif vim.snippet.active({ direction = direction }) then
    return true
  end
  local is_default = vim.startswith(map.desc or "", "vim.snippet") -- does not know the plugin
  return not is_default and is_in_plugin_snippet(direction)
end

--- Return whether a plugin asks language servers and shows what they answer.
---@return boolean
function M.is_plugin()
  local loaded = package.loaded
  return (loaded["blink.cmp"] or loaded["cmp_nvim_lsp"] or loaded["mini.completion"]) ~= nil
end

return M
