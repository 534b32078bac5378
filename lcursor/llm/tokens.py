"""Estimate the tokens of a text, and the token limit of a prompt. Pure.

`client.ChatClient.count` counts with the server's tokenizer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from lcursor.llm.records import Message

BYTES_PER_TOKEN = 3.2
"""Average for mixed code and prose; a character of three bytes is about one token."""
MIN_BYTES_PER_TOKEN = 2.0
"""Lower bound for code and prose."""
MESSAGE_TOKENS = 4
"""Tokens of the template around each message."""
ANSWER_SHARE = 8
"""Part of the context reserved for an answer without a limit, as a divisor."""
MAX_ANSWER_TOKENS = 2048

Countable = str | Sequence[Message]
"""A text by itself, or a prompt."""


def estimate(what: str | Iterable[Message]) -> int:
    """Return the estimated tokens of a text or a prompt."""
    if not isinstance(what, str):
        texts = ("".join([each.text, *(call.arguments for call in each.calls)]) for each in what)
        return sum(estimate(text) + MESSAGE_TOKENS for text in texts)
    return -int(-len(what.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def estimated(what: Countable) -> tuple[int, bool]:
    """Return an estimate in the form of `ChatClient.count`."""
    return estimate(what), False


def upper_bound(messages: Iterable[Message]) -> int:
    """Return a number of tokens that a prompt practically never exceeds."""
    sizes = (len(each.text.encode("utf-8", "replace")) for each in messages)
    return sum(round(size / MIN_BYTES_PER_TOKEN) + 2 * MESSAGE_TOKENS for size in sizes)


def prompt_limit(context_tokens: int, max_tokens: int = 0) -> int:
    """Return the maximum tokens of a prompt; 0 if the context is unknown.

    Args:
        context_tokens: context for prompt and answer.
        max_tokens: configured limit of an answer; 0 for none.
    """
    if context_tokens <= 0:
        return 0
    answer = max_tokens or min(context_tokens // ANSWER_SHARE, MAX_ANSWER_TOKENS)
    return context_tokens - min(answer, context_tokens // 2)


def digest(text: str) -> str:
    """Return a short digest that identifies a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
