"""How many tokens a text has, where no server counts them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lcursor.llm.records import Message

BYTES_PER_TOKEN = 3.2
"""Of code and prose mixed; a letter of three bytes is about a token by itself."""
MESSAGE_TOKENS = 4
"""What a template puts around each message."""


def of_text(text: str) -> int:
    """Return an estimate for a text by itself."""
    return -int(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def of_messages(messages: Iterable[Message]) -> int:
    """Return an estimate for a prompt."""
    return sum(of_text(message.text) + MESSAGE_TOKENS for message in messages)
