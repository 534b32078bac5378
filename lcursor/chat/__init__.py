"""Chats with a model about a project: stored as a tree of messages, answered turn by turn."""
