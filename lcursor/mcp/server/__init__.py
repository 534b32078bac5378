"""`lcursor mcp`: the index and the editor for agents of others.

`tools` has the tools as functions, `editor` talks to a running Neovim, and `protocol` offers the
tools; it alone imports the SDK, which is an optional package.
"""
