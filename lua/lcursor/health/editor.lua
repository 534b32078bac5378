-- The sections about Neovim: what is switched off, keys, the last completion, other plugins.

local config = require("lcursor.config")
local keymaps = require("lcursor.editor.keymaps")
local keys = require("lcursor.config.keys")

local M = {}

local health = vim.health
local GIT_MS = 500
local MODES = { n = "Normal", x = "Visual", o = "Operator-pending", i = "Insert" }

-- Other plugins that draw ghost text: name, a script or Lua module of theirs, how to switch it off.
-- stylua: ignore
local OTHERS = {
  { "copilot.vim", script = [[/plugin/copilot\.vim$]], off = "`:Copilot disable`" },
  { "copilot.lua", module = "copilot", off = "`:Copilot disable`" },
  { "windsurf.vim", script = [[/plugin/codeium\.vim$]], off = "`:CodeiumDisable`" },
  { "windsurf.nvim", module = "codeium.virtual_text", off = "`:Codeium Toggle`" },
  { "neocodeium", module = "neocodeium", off = "`:NeoCodeium disable`" },
  { "supermaven-nvim", module = "supermaven-nvim", off = "`:SupermavenStop`" },
  { "llama.vim", script = [[/plugin/llama\.vim$]], off = "`:LlamaDisable`" },
  { "tabnine-nvim", module = "tabnine", off = "`:TabnineDisable`" },
  { "minuet-ai.nvim", module = "minuet.virtualtext", off = "`:Minuet virtualtext disable`" },
  { "augment.vim", script = [[/plugin/augment\.vim$]],
    off = "`:let g:augment_disable_completions = v:true`" },
}

---@return integer[] ordinary buffers that are loaded
local function file_buffers()
  return vim.tbl_filter(function(buf)
    return vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buflisted and vim.bo[buf].buftype == ""
  end, vim.api.nvim_list_bufs())
end

local function name_of(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  return name ~= "" and vim.fn.fnamemodify(name, ":~:.") or ("buffer %d (no name)"):format(buf)
end

---@param found lcursor.Findings
function M.check_switches(found)
  local all = true
  local function off(text, advice)
    all = false
    health.warn(text, advice)
  end
  local settings = found.settings
  local switches =
    { enabled = settings.enabled, ["completion.enabled"] = settings.completion.enabled }
  for key, is_on in vim.spairs(switches) do
    if not is_on and not config.switch() then
      local advice = "Set `%s = true` where you configure lcursor, then restart Neovim"
      off("Switched off by the setting " .. key, advice:format(key))
    end
  end
  if config.switch() == false then
    off("Switched off by vim.g.lcursor_enabled", "Run `:LCursor enable`")
  end
  for _, buf in ipairs(file_buffers()) do
    if config.switch(buf) == false then
      local advice = ("Run `:LCursor enable buffer` in it (`:buffer %d`)"):format(buf)
      off("Switched off in " .. name_of(buf), advice)
    end
    for _, problem in ipairs(config.buffer_problems(buf)) do
      health.warn(
        ("%s: %s"):format(name_of(buf), problem.message),
        "Correct it where you set vim.b.lcursor; all settings are in :help lcursor-config"
      )
    end
  end
  if all then
    health.ok("Nothing is switched off")
  end
end

---@param map table as maparg() gives it
local function owner(map)
  if type(map.callback) == "function" then
    local source = debug.getinfo(map.callback, "S")
    local line = source.linedefined > 0 and ":" .. source.linedefined or ""
    local where = source.short_src .. line
    return map.desc and ("%s (%s)"):format(map.desc, where) or where
  end
  local script = map.sid and map.sid > 0 and vim.fn.getscriptinfo({ sid = map.sid })[1]
  local rhs = (map.rhs or "") ~= "" and map.rhs or "<Nop>"
  return rhs .. (script and (" (%s)"):format(script.name) or "")
end

--- Return whether a mapping is one of Neovim's defaults.
---@param map table as maparg() gives it
local function is_default(map)
  local source = map.callback and debug.getinfo(map.callback, "S").source or ""
  return vim.startswith(source, "@vim/") or vim.startswith(source, "@" .. vim.env.VIMRUNTIME)
end

--- Return who has mapped a key, besides lcursor and Neovim.
---@param mode string one letter
---@return string[]
local function owners(lhs, mode)
  local raw, found = vim.keycode(lhs), {}
  local function look(maps, prefix)
    for _, map in ipairs(maps) do
      local is_other = not keymaps.is_own(map) and not is_default(map)
      if vim.keycode(map.lhs) == raw and is_other then
        table.insert(found, prefix .. owner(map))
      end
    end
  end
  look(vim.api.nvim_get_keymap(mode), "")
  for _, buf in ipairs(file_buffers()) do
    look(vim.api.nvim_buf_get_keymap(buf, mode), name_of(buf) .. ": ")
  end
  return found
end

--- Return what the user has mapped to a key, unless they have mapped its action elsewhere.
---@param group lcursor.KeyGroup
---@param key lcursor.Key
---@param yields boolean whether the user's mapping comes first
---@return string?
local function existing(group, key, lhs, yields)
  local plug = keys.plug(group, key)
  for mode in key[3]:gmatch(".") do
    local others = vim.fn.hasmapto(plug, mode) == 0 and owners(lhs, mode) or {}
    if #others > 0 and yields == keymaps.yields(group, key, mode) then
      return ("in %s mode it is %s"):format(MODES[mode], table.concat(others, "; "))
    end
  end
end

--- List the mappings of the user that keys of lcursor override while something is visible.
---@param name string of the group
---@param what string that is visible
---@param settings table<string, any> its keys, by action
local function check_overridden(name, what, settings)
  local group, is_any = keys.groups[name], false
  for _, key in ipairs(group.keys) do
    local lhs = settings.enabled ~= false and settings[key[1]] or ""
    local own = lhs ~= "" and not key.passes and existing(group, key, lhs, false)
    if own then
      is_any = true
      local text = "%s is overridden while a %s is visible (%s); `%s.%s = false` disables that"
      health.info(text:format(lhs, what, own, group.option, key[1]))
    end
  end
  if not is_any then
    health.ok(("No mapping of yours is overridden while a %s is visible"):format(what))
  end
end

--- List the mappings of the user that are overridden, and the default keys that stay theirs.
---@param found lcursor.Findings
function M.check_keys(found)
  local settings, plug = found.settings, "<Plug>(lcursor-accept)"
  if vim.fn.hasmapto(plug, "i") == 0 and settings.completion.keymap.accept == "" then
    health.warn(
      "No key accepts a suggestion",
      ('Map one: `vim.keymap.set("i", "<Tab>", "%s")`, or set completion.keymap'):format(plug)
    )
  end
  check_overridden("suggestion", "suggestion", settings.completion.keymap)
  if settings.next_edit.mode ~= "off" then
    check_overridden("next_edit", "next edit", settings.next_edit.keymap)
  end
  local is_any = false
  for _, name in ipairs({ "edit", "hunk", "next_edit" }) do
    local group = keys.groups[name]
    for _, key in ipairs(group.keys) do
      local lhs = key[2] or ""
      local own = lhs ~= "" and existing(group, key, lhs, true)
      if own then
        is_any = true
        local text = "%s is not mapped for %s.%s (%s); %s"
        health.info(text:format(lhs, group.option, key[1], key[4], own))
      end
    end
  end
  if is_any then
    health.info("Set such a key in its option to map it nevertheless")
  else
    health.ok("No mapping of yours has a default key of hunks or next edits")
  end
end

---@param found lcursor.Findings
function M.check_completion(found)
  local complete = require("lcursor.complete")
  local answer, tokens = require("lcursor.commands.status").last_answer()
  if answer then
    health.ok("Last answer: " .. answer)
    health.info("Its tokens: " .. tokens)
  else
    health.info("No suggestion was requested yet")
  end
  for _, buf in ipairs(file_buffers()) do
    local why = vim.api.nvim_buf_call(buf, complete.why)
    if why.code == "checking" then -- git answers soon
      vim.wait(GIT_MS, function()
        why = vim.api.nvim_buf_call(buf, complete.why)
        return why.code ~= "checking"
      end, 20)
    end
    health.info(("%s: %s"):format(name_of(buf), why.text))
  end
  local rules = {}
  for filetype, on in vim.spairs(found.settings.completion.filetypes) do
    table.insert(rules, ("%s %s"):format(filetype, on and "on" or "off"))
  end
  health.info("Setting completion.filetypes: " .. table.concat(rules, ", "))
end

--- Return the completion menus that are loaded, and whether their own ghost text is on.
---@return { name: string, has_ghost: boolean, off: string }[]
local function menus()
  local found = {}
  if package.loaded["blink.cmp"] then
    local settings = package.loaded["blink.cmp.config"]
    local ghost = type(settings) == "table"
      and vim.tbl_get(settings, "completion", "ghost_text", "enabled")
    local off = "Set `completion = { ghost_text = { enabled = false } }` in blink.cmp"
    table.insert(found, { name = "blink.cmp", has_ghost = ghost == true, off = off })
  end
  local cmp = package.loaded["cmp"]
  if type(cmp) == "table" then
    local ok, settings = pcall(cmp.get_config)
    local ghost = ok and vim.tbl_get(settings or {}, "experimental", "ghost_text")
    local off = "Set `experimental = { ghost_text = false }` in nvim-cmp"
    table.insert(found, { name = "nvim-cmp", has_ghost = ghost and true or false, off = off })
  end
  return found
end

function M.check_integrations()
  local has_other = false
  for _, other in ipairs(OTHERS) do
    local is_loaded = other.module and package.loaded[other.module] ~= nil
      or other.script and #vim.fn.getscriptinfo({ name = other.script }) > 0
    if is_loaded then
      has_other = true
      health.warn(
        other[1] .. " draws ghost text in the same place",
        "Keep one: " .. other.off .. " or `:LCursor disable`"
      )
    end
  end
  for _, menu in ipairs(menus()) do
    if menu.has_ghost then
      health.warn(menu.name .. " draws ghost text of its own", menu.off)
    else
      health.ok(menu.name .. ": suggestions are hidden while its menu is open")
    end
  end
  local inline = vim.lsp.inline_completion
  if inline and inline.is_enabled() then
    health.warn(
      "Neovim's own inline completion is on and draws in the same place",
      "Keep one: `:lua vim.lsp.inline_completion.enable(false)` or `:LCursor disable`"
    )
  end
  if not has_other then
    health.ok("No other plugin draws ghost text")
  end
end

return M
