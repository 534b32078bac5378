"""Directories under watch: the kernel's inotify, one watch each, one thread for all of them.

The only importer of watchdog, of which it takes the lower floor (`InotifyFD`): the upper one
(`Observer`) swallows a reached limit and a queue that overflowed, wants a thread for each watch
and watches whatever lies below a directory, ignored or not. Calls back on the reading thread.

Source: watchdog 7.1.0, observers/inotify.py `_add_callback`, `on_queue_overflow`.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchdog.observers.inotify_c import InotifyEvent

LIMIT_FILE = Path("/proc/sys/fs/inotify/max_user_watches")
JOIN_S = 2.0


class WatchFailed(Exception):
    """The kernel does not let us watch; in words for a person. Never leaves `lcursor.index`."""


Seen = Callable[[str, str, bool], None]
"""Given the directory, the name in it ("" for itself) and whether that is a directory."""


class Folders:
    """The watches of a project.

    Args:
        seen: told of each change of an entry; must be quick and raise nothing.
        lost: told that the kernel had more events than it keeps.

    Raises:
        WatchFailed: there is no inotify, or no instance of it is left.
    """

    def __init__(self, seen: Seen, lost: Callable[[], None]) -> None:
        self._seen, self._lost = seen, lost
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._folders: dict[int, tuple[str, int]] = {}
        """By the kernel's number of a watch: the directory, and our number of the callback."""
        self._watches: dict[str, int] = {}
        try:
            from watchdog.observers import inotify_c

            self._fd: Any = inotify_c.InotifyFD()
        except Exception as error:  # no inotify: ImportError, UnsupportedLibcError, OSError
            raise WatchFailed(words(error)) from error
        flags = inotify_c.InotifyConstants
        self._mask = (
            flags.IN_CLOSE_WRITE
            | flags.IN_CREATE
            | flags.IN_DELETE
            | flags.IN_MOVED_FROM
            | flags.IN_MOVED_TO
            | flags.IN_DELETE_SELF
            | flags.IN_MOVE_SELF
            | flags.IN_ONLYDIR
            | flags.IN_DONT_FOLLOW
            | flags.IN_EXCL_UNLINK
        )
        self._most = most_watches()
        self._fd.start()

    @property
    def names(self) -> set[str]:
        """The directories."""
        with self._lock:
            return set(self._watches)

    def add(self, folder: str, path: Path) -> bool:
        """Watch a directory; return whether that was possible. Once more does no harm.

        Raises:
            WatchFailed: no watch is left.
        """
        with self._lock:
            if len(self._watches) >= self._most:
                raise WatchFailed(f"the project has more than {self._most} directories")
            number = next(self._numbers)
            try:
                watch = self._fd.add_callback(os.fsencode(path), self._mask, self, number)
            except OSError as error:
                if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}:
                    return False
                raise WatchFailed(words(error)) from error
            if watch == -1:  # not readable: watchdog keeps it as if it were a watch
                self._fd.remove_callbacks([(watch, number)])
                return False
            before = self._folders.get(watch)
            if before:  # the same directory, maybe under another name
                self._fd.remove_callbacks([(watch, before[1])])
                self._watches.pop(before[0], None)
            old = self._watches.get(folder)
            if old is not None and old != watch:  # another directory had this name
                self._forget(old)
            self._folders[watch] = (folder, number)
            self._watches[folder] = watch
            return True

    def drop(self, folder: str) -> None:
        """No longer watch a directory and what is below it."""
        with self._lock:
            below = f"{folder}/"
            for name in [one for one in self._watches if one == folder or one.startswith(below)]:
                self._forget(self._watches[name])

    def close(self) -> None:
        """Give all watches back and end the thread."""
        self._fd.stop()
        if self._fd is not threading.current_thread():
            self._fd.join(JOIN_S)

    def _forget(self, watch: int) -> None:
        folder, number = self._folders.pop(watch)
        self._watches.pop(folder, None)
        with contextlib.suppress(OSError):
            self._fd.remove_callbacks([(watch, number)])

    # What `InotifyFD` calls, on its thread.

    def on_event(self, event: InotifyEvent) -> None:
        """Pass an event on."""
        with self._lock:
            at = self._folders.get(event.wd)
        if at:
            is_folder = event.is_directory or not event.name
            self._seen(at[0], os.fsdecode(event.name), is_folder)

    def on_watch_deleted(self, wd: int) -> None:
        """Forget a directory that is gone."""
        with self._lock:
            at = self._folders.pop(wd, None)
            if at and self._watches.get(at[0]) == wd:
                del self._watches[at[0]]

    def on_queue_overflow(self) -> None:
        """Say that events were lost."""
        self._lost()


def most_watches() -> int:
    """Return how many watches one project may take: half of what the user has."""
    try:
        return int(LIMIT_FILE.read_text()) // 2
    except (OSError, ValueError):
        return 1 << 20


def words(error: BaseException) -> str:
    """Return what kept us from watching, and what helps where something does."""
    number = getattr(error, "errno", None)
    if number == errno.ENOSPC:
        return "the limit of inotify watches is reached (sysctl fs.inotify.max_user_watches)"
    if number == errno.EMFILE:
        return "the limit of inotify instances is reached (sysctl fs.inotify.max_user_instances)"
    return f"inotify cannot be used: {error}"
