"""Count the tokens of texts: with a server's tokenizer, or by an estimate that says that it is one.

Remembers counts, so that a file in two prompts is counted once. Any thread.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Sequence
from typing import Any

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
MAX_REMEMBERED = 512


class Counter:
    """Counts with a server if there is one.

    Args:
        client: a `client.ChatClient`, which imports this module; None estimates.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client
        self._counts: dict[str, tuple[int, bool]] = {}
        self._lock = threading.Lock()

    def messages(self, messages: Sequence[Message]) -> tuple[int, bool]:
        """Return the tokens of a prompt, and whether that is exact. Waits for the server."""
        if self.client is None:
            return estimate_messages(messages), False
        counted: tuple[int, bool] = self.client.count(messages)
        return counted

    def text(self, text: str) -> tuple[int, bool]:
        """Return the tokens of a text, and whether that is exact. Waits for the server."""
        if self.client is None or not text:
            return self.known(text)
        name = digest(text)
        with self._lock:
            found = self._counts.get(name)
        if found is None:
            found = self.client.count_text(text)
            with self._lock:
                self._counts[name] = found
                if len(self._counts) > MAX_REMEMBERED:
                    self._counts.pop(next(iter(self._counts)))  # the oldest
        return found

    def known(self, text: str) -> tuple[int, bool]:
        """Return what is known without asking the server, else an estimate."""
        with self._lock:
            found = self._counts.get(digest(text)) if self._counts and text else None
        return found or (estimate(text), False)


def estimate(text: str) -> int:
    """Return about how many tokens a text has by itself."""
    return -int(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def estimate_messages(messages: Iterable[Message]) -> int:
    """Return about how many tokens a prompt has."""
    return sum(estimate(message.text) + MESSAGE_TOKENS for message in messages)


def upper_bound(messages: Sequence[Message]) -> int:
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
