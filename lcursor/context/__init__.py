"""The context of a prompt: mentions, rules, commands and retrieval."""
