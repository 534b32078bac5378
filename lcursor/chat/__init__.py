"""Conversations: their messages, their turns, their archive."""
