"""The process that Neovim starts, which dispatches messages to the services."""
