"""Pause bulk work while the user types or searches, and lower its priority.

Any thread reports typing and queries; the bulk work calls `passes` between two small steps.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

TYPING_S = 1.5
"""Pause after the last key."""
QUIET_S = 30.0
"""Time after the last key after which the user counts as away."""
QUERY_S = 0.03
"""Maximum wait of one step, so that continuous queries do not stop the work."""

NICE = 10
"""Of the threads and processes for bulk work, and of the worker's session."""


class Throttle:
    """Pauses and stops bulk work."""

    def __init__(self, typing_s: float = TYPING_S) -> None:
        self._typing_s = typing_s
        self._change = threading.Condition()
        self._until_s = 0.0
        self._typed_s = float("-inf")
        self._queries = 0
        self.is_stopped = False
        """Whether the work must stop."""

    def typing(self) -> None:
        """Note that the user pressed a key."""
        with self._change:
            self._typed_s = time.monotonic()
            self._until_s = self._typed_s + self._typing_s

    @contextlib.contextmanager
    def query(self) -> Iterator[None]:
        """Pause bulk work while this block answers a query."""
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
            self.is_stopped = True
            self._change.notify_all()

    @property
    def held_s(self) -> float:
        """Time that bulk work must wait because the user just typed; 0 for none."""
        return max(self._until_s - time.monotonic(), 0.0)

    def is_quiet(self) -> bool:
        """Return whether the user is away and no query is being answered."""
        return not self._queries and time.monotonic() - self._typed_s > QUIET_S

    def passes(self) -> bool:
        """Wait until no query is running; return False when the work must stop.

        Does not wait while the user types; see `held_s`.
        """
        with self._change:
            if self._queries and not self.is_stopped:
                self._change.wait_for(lambda: not self._queries or self.is_stopped, QUERY_S)
            return not self.is_stopped
