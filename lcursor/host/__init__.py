"""The process that Neovim starts: it receives messages and passes them to the services."""
