"""Stop work from another thread, also while it waits for a server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lcursor.errors import Cancelled


class Stop(threading.Event):
    """Whether some work is to stop. Thread: any.

    with stop.closing(stream.close):  # called as soon as it is set
        for event in stream: ...
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._closers: list[Callable[[], None]] = []

    def set(self) -> None:
        """Stop the work."""
        super().set()
        with self._lock:
            closers = list(self._closers)
        for close in closers:
            close()

    def check(self) -> None:
        """Raise `Cancelled` if it is set."""
        if self.is_set():
            raise Cancelled("the work was stopped")

    @contextmanager
    def closing(self, close: Callable[[], None]) -> Iterator[None]:
        """Call a function if it is set before the end of the block, and then raise `Cancelled`.

        Args:
            close: may be called twice, on any thread.
        """
        with self._lock:
            self._closers.append(close)
        if self.is_set():
            close()
        try:
            yield
        finally:
            with self._lock:
                self._closers.remove(close)
        self.check()
