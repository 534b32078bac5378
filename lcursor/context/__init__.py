"""What goes into a prompt: mentions, rules, retrieval, and what it costs."""
