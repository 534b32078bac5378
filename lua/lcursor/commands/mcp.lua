-- `:LCursor mcp`.

-- stylua: ignore
---@type lcursor.Noun
return {
  text = "MCP servers for agents and chats: |lcursor-mcp-servers|.",
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
