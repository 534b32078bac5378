-- The command, the <Plug> maps and one autocommand. Requires nothing until one of them is used.

if vim.g.loaded_lcursor then
  return
end
vim.g.loaded_lcursor = true

if vim.fn.has("nvim-0.11") == 0 then
  local text = "lcursor: this Neovim is too old. Update to 0.11 or newer."
  vim.api.nvim_echo({ { text, "WarningMsg" } }, true, {})
  return
end

vim.api.nvim_create_user_command("LCursor", function(opts)
  require("lcursor.commands").run(opts)
end, {
  nargs = "*",
  desc = "lcursor: status, toggle, why, log, ...",
  complete = function(lead, line)
    return require("lcursor.commands").complete(lead, line)
  end,
})

local words = "customlist,v:lua.require'lcursor.chat.spelled'.complete"
vim.api.nvim_create_user_command("LCChat", function(opts)
  require("lcursor.chat").command(opts)
end, { nargs = "*", range = true, bang = true, complete = words, desc = "lcursor: the chat" })

for kind, name in pairs({ all = "accept", line = "accept-line", word = "accept-word" }) do
  vim.api.nvim_set_keymap("i", "<Plug>(lcursor-" .. name .. ")", "", {
    callback = function()
      return require("lcursor.complete").accept_keys(kind)
    end,
    expr = true,
    noremap = true,
    replace_keycodes = true,
    desc = "lcursor: " .. name,
  })
end

local calls = {
  dismiss = { "dismiss" },
  trigger = { "trigger" },
  next = { "cycle", 1 },
  prev = { "cycle", -1 },
}
for name, call in pairs(calls) do
  vim.api.nvim_set_keymap("i", "<Plug>(lcursor-" .. name .. ")", "", {
    callback = function()
      require("lcursor.complete")[call[1]](call[2])
    end,
    noremap = true,
    desc = "lcursor: " .. name,
  })
end

local group = vim.api.nvim_create_augroup("lcursor", {})

vim.api.nvim_create_autocmd("InsertEnter", {
  group = group,
  desc = "Load lcursor at the first insert in a normal buffer",
  callback = function(event)
    if vim.bo[event.buf].buftype == "" then
      require("lcursor.complete").start()
      require("lcursor.index").start()
      return true
    end
  end,
})

vim.api.nvim_create_autocmd("VimLeavePre", {
  group = group,
  desc = "Let the Python half end in peace",
  callback = function()
    local host = package.loaded["lcursor.host"]
    if host then
      host.leave()
    end
  end,
})
