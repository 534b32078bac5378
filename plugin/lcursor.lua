-- The commands, the <Plug> maps and the autocommands. Loads no module before one of them is used.

if vim.g.loaded_lcursor then
  return
end
vim.g.loaded_lcursor = true

if vim.fn.has("nvim-0.11") == 0 then
  return vim.api.nvim_echo({ { "lcursor needs Neovim 0.11 or newer.", "WarningMsg" } }, true, {})
end

local function command(name, desc, opts, run)
  opts = vim.tbl_extend("keep", opts, { nargs = "*", range = true, desc = "lcursor: " .. desc })
  vim.api.nvim_create_user_command(name, function(call)
    require("lcursor.ui.notify").run(run, call)
  end, opts)
end

local words = "customlist,v:lua.require'lcursor.commands'.complete"
command("LCursor", "edit, hunk, chat, index, status, ...", { complete = words }, function(opts)
  require("lcursor.commands").run(opts)
end)
words = "customlist,v:lua.require'lcursor.editor.mentions'.complete"
command("LCChat", "the chat", { bang = true, complete = words }, function(opts)
  require("lcursor.chat").command(opts)
end)
command("LCEdit", "ask for an edit", { bang = true, complete = words }, function(opts)
  require("lcursor.commands").edit(opts)
end)

-- The names of the <Plug> maps by their modes; those with "expr" return what to type.
-- stylua: ignore
-- generated: plugs (make docs)
local plugs = {
  ["i expr"] = { "accept", "accept-line", "accept-word" },
  ["i"] = { "dismiss", "next", "prev", "trigger", "next-edit-dismiss-insert", "chat-send-insert",
    "agent-send-insert" },
  ["ni"] = { "next-edit-accept", "chat-stop", "agent-stop" },
  ["n"] = { "next-edit-accept-all", "next-edit-dismiss", "chat-send", "chat-regenerate",
    "chat-edit", "chat-next-branch", "chat-prev-branch", "chat-next", "chat-prev", "chat-context",
    "chat-sources", "chat-jump", "chat-yank-block", "chat-insert-block", "chat-open-block",
    "chat-apply-block", "chat-allow", "chat-reject", "chat-model", "chat-list", "chat-close",
    "chat-help", "agent-send", "agent-approve", "agent-approve-run", "agent-reject",
    "agent-change", "agent-next-waiting", "agent-jump", "agent-model", "agent-list",
    "agent-close", "agent-help" },
  ["nx"] = { "edit" },
  ["nxo"] = { "edit-stop", "hunk-accept", "hunk-reject", "hunk-accept-next", "hunk-next",
    "hunk-prev", "hunk-last", "hunk-first", "hunk-object", "hunk-diff", "hunk-edit", "hunk-list",
    "hunk-accept-file", "hunk-reject-file", "hunk-accept-all", "hunk-reject-all",
    "hunk-next-alternative", "hunk-prev-alternative", "hunk-again" },
  ["nxo expr"] = { "hunk-accept-operator", "hunk-reject-operator" },
}
-- end: plugs
for modes, names in pairs(plugs) do
  for _, name in ipairs(names) do
    local plug = ("<Plug>(lcursor-%s)"):format(name)
    vim.keymap.set(vim.split(modes:match("%a+"), ""), plug, function()
      return require("lcursor.commands").press(plug)
    end, { desc = "lcursor: " .. name, expr = modes:find("expr") ~= nil })
  end
end

local group = vim.api.nvim_create_augroup("lcursor", {})
local function on(event, desc, callback)
  vim.api.nvim_create_autocmd(event, { group = group, desc = desc, callback = callback })
end
on({ "InsertEnter", "ModeChanged" }, "Load lcursor at the first edit of a file", function(event)
  local is_insert = event.event == "InsertEnter"
  if vim.bo[event.buf].buftype == "" and (is_insert or vim.v.event.new_mode == "no") then
    require("lcursor.next_edit").start()
    if is_insert then
      require("lcursor.complete").start()
      vim.schedule(function() -- the first key does not wait for it
        require("lcursor.ui.notify").guarded(require("lcursor.index").start)()
      end)
    end
    return is_insert
  end
end)
local offer_actions = vim.schedule_wrap(function(event)
  require("lcursor.integrations.actions").attach(event)
end)
on({ "LspAttach", "DiagnosticChanged" }, "Offer code actions", offer_actions)
on("SessionLoadPost", "Remove empty windows that a session made of those of lcursor", function()
  if vim.fn.execute("ls!"):find('"lcursor://', 1, true) then
    require("lcursor.ui.window").remove_restored()
  end
end)
