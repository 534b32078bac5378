"""The lock of a project's index: who holds it is the one writer.

Owns the lock file: `flock` on it is the lock, which the kernel takes back however its holder ends;
its text says who that is and where it listens. The file is never deleted. Any thread.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any


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
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        except OSError:
            os.close(fd)
            raise
        lock = cls(path, fd)
        if lock.is_mine():
            return lock
        os.close(fd)  # deleted between the two calls: whoever comes next makes it anew
        return None

    def is_mine(self) -> bool:
        """Whether the file by that name is still the one that is locked."""
        try:
            there, here = os.stat(self.path), os.fstat(self._fd)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

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
