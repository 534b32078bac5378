"""Drive a real Neovim from outside, as a user at a terminal: for demo, benchmarks and tests."""
