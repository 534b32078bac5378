"""Estimate how many tokens a text has, and how many a prompt may have. Pure.

`client.ChatClient.count` counts with the server's tokenizer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from lcursor.llm.records import Message

BYTES_PER_TOKEN = 3.2
"""Of code and prose mixed; a letter of three bytes is about a token by itself."""
MIN_BYTES_PER_TOKEN = 2.0
"""With fewer a prompt would be neither code nor prose: good enough for a guard."""
MESSAGE_TOKENS = 4
"""What a template puts around each message."""
ANSWER_SHARE = 8
"""An answer without a limit is left one part in so many of the context."""
MAX_ANSWER_TOKENS = 2048

Countable = str | Sequence[Message]
"""A text by itself, or a prompt."""


def estimate(what: str | Iterable[Message]) -> int:
    """Return about how many tokens a text or a prompt has."""
    if not isinstance(what, str):
        return sum(estimate(message.text) + MESSAGE_TOKENS for message in what)
    return -int(-len(what.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def estimated(what: Countable) -> tuple[int, bool]:
    """Return an estimate as `ChatClient.count` returns a count."""
    return estimate(what), False


def upper_bound(messages: Iterable[Message]) -> int:
    """Return a number of tokens that a prompt hardly exceeds."""
    sizes = (len(each.text.encode("utf-8", "replace")) for each in messages)
    return sum(round(size / MIN_BYTES_PER_TOKEN) + 2 * MESSAGE_TOKENS for size in sizes)


def prompt_limit(context_tokens: int, max_tokens: int = 0) -> int:
    """Return how many tokens of a context a prompt may have; 0 if the context is not known.

    Args:
        context_tokens: of prompt and answer.
        max_tokens: limit of an answer by the settings; 0 for none.
    """
    if context_tokens <= 0:
        return 0
    answer = max_tokens or min(context_tokens // ANSWER_SHARE, MAX_ANSWER_TOKENS)
    return context_tokens - min(answer, context_tokens // 2)


def digest(text: str) -> str:
    """Return a short digest that identifies a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
