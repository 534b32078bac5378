"""The process that Neovim starts: messages in, messages out. The only package that knows pynvim."""
