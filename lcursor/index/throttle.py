"""Pause bulk work while the user types and while a query is being answered.

Any thread reports typing and queries; the bulk work calls `passes` between two small steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

TYPING_S = 1.5
"""Pause after the last key."""
QUIET_S = 30.0
"""So long after the last key nobody is taken to be at work."""
QUERY_S = 0.03
"""Longest that one step waits for queries, so that a stream of them does not stop the work."""


class Throttle:
    """Pauses and stops bulk work."""

    def __init__(self, typing_s: float = TYPING_S) -> None:
        self._typing_s = typing_s
        self._change = threading.Condition()
        self._until_s = 0.0
        self._typed_s = float("-inf")
        self._queries = 0
        self._is_stopped = False

    def typing(self) -> None:
        """Note that the user pressed a key."""
        with self._change:
            self._typed_s = time.monotonic()
            self._until_s = self._typed_s + self._typing_s

    @contextmanager
    def query(self) -> Iterator[None]:
        """Have bulk work wait while a query is answered in this block."""
        with self._change:
            self._queries += 1
        try:
            yield
        finally:
            with self._change:
                self._queries -= 1
                if not self._queries:
                    self._change.notify_all()

    def stop(self) -> None:
        """Stop the bulk work."""
        with self._change:
            self._is_stopped = True
            self._change.notify_all()

    @property
    def is_stopped(self) -> bool:
        """Whether the work is to end."""
        return self._is_stopped

    @property
    def held_s(self) -> float:
        """How long bulk work is to wait because somebody typed a moment ago; 0 for not at all."""
        return max(self._until_s - time.monotonic(), 0.0)

    def is_quiet(self) -> bool:
        """Whether nobody has typed for long, and nobody waits for an answer."""
        return not self._queries and time.monotonic() - self._typed_s > QUIET_S

    def passes(self) -> bool:
        """Wait until no query is being answered; return False when the work is to end.

        Who types is not waited for here: what to do meanwhile is for the caller to know.
        """
        with self._change:
            if self._queries and not self._is_stopped:
                self._change.wait_for(lambda: not self._queries or self._is_stopped, QUERY_S)
            return not self._is_stopped
