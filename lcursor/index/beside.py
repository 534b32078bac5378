"""A piece of work on a thread of its own, begun at once, whose result is waited for.

For work that gives up the interpreter's lock for most of its time. Owns the thread; who began it
must ask for the result. On Linux the thread has the priority of the one that began it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Beside(Generic[T]):
    """Work that has begun.

    Args:
        work: what to do.
        name: of the thread.
    """

    def __init__(self, work: Callable[[], T], name: str) -> None:
        self._work = work
        self._found: list[T] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def result(self) -> T:
        """Wait for the end; return what it gave, or raise what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found[0]

    def _run(self) -> None:
        try:
            self._found.append(self._work())
        except Exception as error:  # noqa: BLE001 - the root of a thread; raised by `result`
            self._error = error
