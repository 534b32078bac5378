"""The real projects of `project.py`: roots, and connections to their workers.

Imports the index when it is needed first, so that a host without one starts as fast. Thread: those
of `project.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lcursor.config import IndexConfig

if TYPE_CHECKING:
    from lcursor.host.project import Worker


class Workers:
    """Finds projects, and reaches their workers."""

    def __init__(self) -> None:
        self._config = IndexConfig()

    def configure(self, config: IndexConfig) -> None:
        """Take the settings with which a worker is started."""
        self._config = config

    def root_of(self, path: str) -> Path:
        """Return the root of the project that a path is in."""
        from lcursor.project.root import root_of

        return root_of(Path(path))

    def is_begun(self, root: Path) -> bool:
        """Return whether somebody has asked for an index of it."""
        from lcursor.project.root import is_begun

        return is_begun(root)

    def client(self, root: Path) -> Worker:
        """Return a client; it connects, and starts a worker, when it is asked something."""
        from lcursor.index.client import Client

        return Client(root, embedder=self._config.embedder or "none")
