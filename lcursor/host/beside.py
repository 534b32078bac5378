"""What chat and edits have of the index: its answers about a project, and its rest while they work.

An answer that is waited for goes before work that nobody waits for. Any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lcursor.host.indexing import Indexing

if TYPE_CHECKING:
    from lcursor.context.codebase import Codebase

REST_S = 1.0
"""The index is told this often that it shall rest."""


class Beside:
    """The index, as one slot uses it.

    Args:
        index: is asked about the codebase, where it runs, and rests while the slot is busy.
    """

    def __init__(self, index: Indexing) -> None:
        self._index = index
        self._lock = threading.Lock()
        self._is_done: threading.Event | None = None  # ends the thread of the present work

    def knows(self, root: Path, secrets: Sequence[str]) -> Codebase:
        """Return what knows a project."""
        from lcursor.context.codebase import Grep
        from lcursor.context.indexed import Indexed

        plain = Grep(root, secrets)
        worker = self._index.worker_of(root)
        return plain if worker is None else Indexed(worker, plain)

    def busy(self, is_busy: bool) -> None:
        """Let the index rest while the slot works."""
        with self._lock:
            if is_busy and self._is_done is None:
                self._is_done = threading.Event()
                thread = threading.Thread(
                    target=self._rest, args=(self._is_done,), name="lcursor-rest", daemon=True
                )
                thread.start()
            elif not is_busy and self._is_done is not None:
                self._is_done.set()
                self._is_done = None

    def _rest(self, is_done: threading.Event) -> None:
        while not is_done.is_set():
            self._index.typing()
            is_done.wait(REST_S)
