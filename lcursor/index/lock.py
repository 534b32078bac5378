"""The lock of a project's index: its holder is the one writer.

The lock file (see `storage.file_lock`) says who holds it and where that listens. It is never
deleted. Any thread.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from lcursor.storage import file_lock


class Lock:
    """A held lock."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path, self._fd = path, fd

    @classmethod
    def take(cls, path: Path) -> Lock | None:
        """Return the lock, or None where another process holds it.

        Raises:
            OSError: there can be no such file.
        """
        fd = file_lock.try_lock(path)
        return None if fd is None else cls(path, fd)

    def is_mine(self) -> bool:
        """Whether the file by that name is still the one that is locked."""
        return file_lock.is_same_file(self.path, self._fd)

    def say(self, **words: Any) -> None:
        """Write who holds the lock."""
        data = json.dumps(words).encode()
        os.pwrite(self._fd, data, 0)
        os.ftruncate(self._fd, len(data))

    def release(self) -> None:
        """Give the lock back."""
        os.close(self._fd)


def words(path: Path) -> dict[str, Any]:
    """Return what the last holder wrote; empty where it wrote nothing that can be read.

    It may be dead: its address is a place to try, its number only good for a message.
    """
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
