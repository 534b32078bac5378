"""The Model Context Protocol: `lcursor mcp` gives other agents the index and the editor.

`tools` has the tools as functions, `editor` talks to a running Neovim, and `server` offers the
tools over the protocol. Only `server` imports the SDK, which is an optional package.
"""
