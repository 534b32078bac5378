-- The commands, the <Plug> maps and two autocommands. Loads no module before one of them is used.

if vim.g.loaded_lcursor then
  return
end
vim.g.loaded_lcursor = true

if vim.fn.has("nvim-0.11") == 0 then
  local text = "lcursor: this Neovim is too old. Update to 0.11 or newer."
  vim.api.nvim_echo({ { text, "WarningMsg" } }, true, {})
  return
end

local function command(name, desc, opts, run)
  opts = vim.tbl_extend("keep", opts, { nargs = "*", range = true, desc = "lcursor: " .. desc })
  vim.api.nvim_create_user_command(name, run, opts)
end

local function map(mode, name, callback, more)
  more = more or {}
  more.callback, more.noremap, more.desc = callback, true, "lcursor: " .. name
  vim.api.nvim_set_keymap(mode, "<Plug>(lcursor-" .. name .. ")", "", more)
end

local words = "customlist,v:lua.require'lcursor.commands'.complete"
command("LCursor", "status, toggle, why, log, ...", { complete = words }, function(opts)
  require("lcursor.commands").run(opts)
end)
words = "customlist,v:lua.require'lcursor.chat.mentions'.complete"
command("LCChat", "the chat", { bang = true, complete = words }, function(opts)
  require("lcursor.joined").chat().command(opts)
end)
command("LCEdit", "ask for an edit", { bang = true, complete = words }, function(opts)
  require("lcursor.joined").edit().command(opts)
end)

for kind, name in pairs({ all = "accept", line = "accept-line", word = "accept-word" }) do
  map("i", name, function()
    return require("lcursor.complete").accept_keys(kind)
  end, { expr = true, replace_keycodes = true })
end
local calls = { dismiss = { "dismiss" }, trigger = { "trigger" } }
calls.next, calls.prev = { "cycle", 1 }, { "cycle", -1 }
for name, call in pairs(calls) do
  map("i", name, function()
    require("lcursor.complete")[call[1]](call[2])
  end)
end
for _, mode in ipairs({ "n", "x" }) do
  map(mode, "edit", function()
    require("lcursor").edit()
  end)
end
local hunks = "accept reject accept-file reject-file accept-turn reject-turn object edit next"
  .. " previous next-alternative previous-alternative again list stop"
for name in hunks:gmatch("%S+") do
  for _, mode in ipairs({ "n", "x", "o" }) do -- not "": that is Select mode as well
    map(mode, name == "stop" and "edit-stop" or "hunk-" .. name, function()
      require("lcursor.edit.keymaps").press(name)
    end)
  end
end

local function on(event, desc, callback)
  local group = vim.api.nvim_create_augroup("lcursor", { clear = false })
  vim.api.nvim_create_autocmd(event, { group = group, desc = desc, callback = callback })
end
on("InsertEnter", "Load lcursor at the first insert in a normal buffer", function(event)
  if vim.bo[event.buf].buftype == "" then
    require("lcursor.complete").start()
    require("lcursor.index").start()
    return true
  end
end)
on("VimLeavePre", "Stop the Python host", function()
  if package.loaded["lcursor.host"] then
    package.loaded["lcursor.host"].leave()
  end
end)
