"""A temporary folder for a copy of a project, which does not outlive its process for long.

If the process is killed, the next one that makes such a folder deletes it. Blocks for the disk.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from lcursor.storage import file_lock, folders


class CopyFolder:
    """The folder, of mode 0700, in lcursor's cache folder.

    Raises:
        OSError: it cannot be created.
        LcursorError: the cache folder belongs to another user.
    """

    def __init__(self) -> None:
        home = folders.make_private(folders.cache_home().absolute() / "checks")
        _delete_stale(home)
        self.path = Path(os.path.realpath(home), secrets.token_hex(8))
        self._lock_path = self.path.with_suffix(".lock")
        lock = None
        while lock is None:  # another process may delete the file before it is locked
            lock = file_lock.try_lock(self._lock_path)
        self._lock = lock
        self.path.mkdir(mode=0o700)

    def delete(self) -> None:
        """Delete the folder; only the first call does anything."""
        if self._lock >= 0:
            _delete(self._lock_path, self._lock)
            self._lock = -1


def _delete_stale(home: Path) -> None:
    for path in home.glob("*.lock"):
        lock = file_lock.try_lock(path)
        if lock is not None:
            _delete(path, lock)


def _delete(lock_path: Path, lock: int) -> None:
    """Delete a folder and its lock file, and release the lock."""
    folders.remove(lock_path.with_suffix(""))
    lock_path.unlink(missing_ok=True)
    os.close(lock)
