-- `:LCursor mcp`.

-- stylua: ignore
---@type lcursor.Noun
return {
  text = "Servers with tools for agents: |lcursor-mcp|.",
  default = "list",
  verbs = {
    { "list", "List them; `<CR>` shows all that one may do, and allows it.", function()
      require("lcursor.agent.servers").open()
    end },
    { "import", "Show those of other programs' files as text to copy.", function()
      require("lcursor.agent.servers").import()
    end },
  },
}
