"""A real Neovim driven from outside, as a person at a terminal would: demo, benches and tests."""
