"""Estimate the tokens of source code without a tokenizer. Pure."""

from __future__ import annotations

CHARS_PER_TOKEN = 3.2
"""Conservative for source code: a prompt must not exceed its limit."""


def tokens(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    return -int(-len(text) // CHARS_PER_TOKEN)


def chars(count: int) -> int:
    """Return how many characters have an estimated number of tokens."""
    return int(count * CHARS_PER_TOKEN)
