"""Decide which requests a llama-server gets at once: all its slots share one context.

A server that runs out of context fails all requests that it is answering. So a request waits until
its prompt and answer fit beside the others. Those with a lower rank come first, then the earlier
ones; none overtakes another one, so that a large prompt is not delayed for ever. Any thread.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import Final

ANSWER_TOKENS: Final = 1024
"""Expected length of an answer; few are longer."""


@dataclass(slots=True, eq=False)
class Admitted:
    """A request that waits or runs, until `leave`."""

    admission: Admission
    tokens: int
    order: tuple[int, int]
    """Rank and number."""
    is_running: threading.Event = field(default_factory=threading.Event)

    def leave(self) -> None:
        """End it; only the first call does anything."""
        self.admission.remove(self)


class Admission:
    """The requests to one server; without limits until `resize`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots = self._context_tokens = 0
        self._waiting: list[Admitted] = []
        self._running: list[Admitted] = []
        self._numbers = itertools.count()

    def resize(self, slots: int, context_tokens: int) -> None:
        """Set the number of requests and of tokens at once; 0 is no limit."""
        with self._lock:
            self._slots, self._context_tokens = slots, context_tokens
            self._admit()

    def enter(self, prompt_tokens: int, max_tokens: int, rank: int) -> Admitted:
        """Add a request, which runs now or later.

        Args:
            max_tokens: limit of the answer; 0 for none.
            rank: requests with a lower one come first.
        """
        tokens = prompt_tokens + min(max_tokens or ANSWER_TOKENS, ANSWER_TOKENS)
        with self._lock:
            entered = Admitted(self, tokens, (rank, next(self._numbers)))
            self._waiting.append(entered)
            self._admit()
        return entered

    def remove(self, request: Admitted) -> None:
        """Remove a request, if it is still here."""
        with self._lock:
            for requests in (self._waiting, self._running):
                if request in requests:
                    requests.remove(request)
            self._admit()

    def _admit(self) -> None:
        """Let requests run that fit. Under the lock."""
        while self._waiting:
            first = min(self._waiting, key=lambda each: each.order)
            used = sum(each.tokens for each in self._running)
            is_full = 0 < self._slots <= len(self._running)
            has_space = not self._context_tokens or used + first.tokens <= self._context_tokens
            if self._running and (is_full or not has_space):
                return
            self._waiting.remove(first)
            self._running.append(first)
            first.is_running.set()
