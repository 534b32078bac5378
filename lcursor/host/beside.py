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
        self._is_busy = threading.Event()

    def knows(self, root: Path, secrets: Sequence[str]) -> Codebase:
        """Return what knows a project."""
        from lcursor.context.codebase import Grep
        from lcursor.context.indexed import Indexed

        plain = Grep(root, secrets)
        worker = self._index.worker_of(root)
        return plain if worker is None else Indexed(worker, plain)

    def busy(self, is_busy: bool) -> None:
        """Take that the slot works now, or does not any more."""
        if not is_busy:
            self._is_busy.clear()
        elif not self._is_busy.is_set():
            self._is_busy.set()
            threading.Thread(target=self._rest, name="lcursor-rest", daemon=True).start()

    def _rest(self) -> None:
        pause = threading.Event()
        while self._is_busy.is_set():
            self._index.typing()
            pause.wait(REST_S)
