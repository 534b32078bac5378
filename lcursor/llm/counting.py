"""How many tokens a text has: by the server's count, or by a guess that says that it is one.

Owns the counts of texts that were counted before, since a file that is on two bills is counted
once. Knows how much of a context is for the prompt. Any thread.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

from lcursor.llm import tokens
from lcursor.llm.records import Message

BYTES_A_TOKEN_AT_LEAST = 2.0
"""With fewer bytes a token than this a prompt would not be code or prose: enough for a guard."""
ANSWER_SHARE = 8
"""An answer whose length nobody limits is left one part in so many of the context."""
MOST_ANSWER_TOKENS = 2048
MOST_COUNTED = 512


class Teller(Protocol):
    """What of a client is used here."""

    def count(self, messages: Sequence[Message]) -> tuple[int, bool]:
        """Return the tokens of a prompt, and whether that is exact."""

    def count_text(self, text: str) -> tuple[int, bool]:
        """Return the tokens of a text, and whether that is exact."""


class Counter:
    """Counts with a server where there is one.

    Args:
        client: of the server; None guesses.
    """

    def __init__(self, client: Teller | None = None) -> None:
        self.client = client
        self._known: OrderedDict[str, tuple[int, bool]] = OrderedDict()
        self._lock = threading.Lock()

    def messages(self, messages: Sequence[Message]) -> tuple[int, bool]:
        """Return the tokens of a prompt, and whether that is exact. Waits for the server."""
        if self.client is None:
            return tokens.of_messages(messages), False
        return self.client.count(messages)

    def text(self, text: str) -> tuple[int, bool]:
        """Return the tokens of a text, and whether that is exact. Waits for the server."""
        if self.client is None or not text:
            return self.known(text)
        name = digest(text)
        with self._lock:
            found = self._known.get(name)
        if found is None:
            found = self.client.count_text(text)
            with self._lock:
                self._known[name] = found
                if len(self._known) > MOST_COUNTED:
                    self._known.popitem(last=False)
        return found

    def known(self, text: str) -> tuple[int, bool]:
        """Return what is known without asking; else a guess."""
        with self._lock:
            found = self._known.get(digest(text)) if self._known and text else None
        return found or (tokens.of_text(text), False)


def digest(text: str) -> str:
    """Return what a text is known again by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def at_most(messages: Sequence[Message]) -> int:
    """Return a number of tokens that a prompt hardly reaches."""
    sizes = (len(each.text.encode("utf-8", "replace")) for each in messages)
    return sum(round(size / BYTES_A_TOKEN_AT_LEAST) + 2 * tokens.MESSAGE_TOKENS for size in sizes)


def limit(context_tokens: int, max_tokens: int = 0) -> int:
    """Return how many tokens of a context a prompt may have; 0 where that is not known.

    Args:
        context_tokens: of prompt and answer; 0 where it is not known.
        max_tokens: of an answer, by the settings; 0 for no limit.
    """
    if context_tokens <= 0:
        return 0
    answer = max_tokens or min(context_tokens // ANSWER_SHARE, MOST_ANSWER_TOKENS)
    return context_tokens - min(answer, context_tokens // 2)
