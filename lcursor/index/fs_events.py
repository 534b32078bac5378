"""Watch directories for changes of their entries. The only importer of watchdog.

On Linux each directory has its own inotify watch, so that ignored directories need none. watchdog's
`Observer` cannot do that: it needs a thread per watch, hides a reached limit and an overflowed
queue, or watches everything below a directory. Its `InotifyFD` can (watchdog 7.1.0,
observers/inotify_c.py). On other systems, such as macOS, watching a whole tree is cheap, so an
`Observer` does it, and events of other directories are dropped.
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

from lcursor import system

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.inotify_c import InotifyEvent

IS_LINUX = system.IS_LINUX
LIMIT = "fs.inotify.max_user_watches"
"""The setting of the kernel."""
JOIN_S = 2.0
READ_EVENTS = frozenset({"opened", "closed_no_write"})

OnEntry = Callable[[str, str, bool], None]
"""Called with a watched directory, the name of the changed entry ("" for the directory itself), and
whether that is a directory. On the reading thread; must be quick and not raise."""


class WatchFailed(Exception):
    """Watching is impossible; the message is for the user. Caught in `watch`."""


class TreeWatches:
    """Watches on a whole tree, which are filtered by directory."""

    def __init__(self, root: Path, on_entry: OnEntry) -> None:
        self._root, self._on_entry = root, on_entry
        self._folders: dict[str, str] = {}
        """Names of the watched directories by path."""
        try:
            from watchdog.events import FileSystemEventHandler  # missing on Python 3.10
            from watchdog.observers import Observer

            self._handler = FileSystemEventHandler()
            self._handler.on_any_event = self._on_event  # type: ignore[method-assign]
            self._observer = Observer()
            self._observer.schedule(self._handler, str(root), recursive=True)
            self._observer.start()
        except Exception as error:  # ImportError, OSError, or the system's own
            raise WatchFailed(f"the project cannot be watched: {error}") from error

    @property
    def names(self) -> set[str]:
        """The watched directories."""
        return set(self._folders.values())

    def add(self, folder: str, path: Path) -> bool:
        """Watch a directory; return False if there is none."""
        if not path.is_dir() or path.is_symlink():
            return False
        if not path.is_relative_to(self._root) and str(path) not in self._folders:
            self._observer.schedule(self._handler, str(path), recursive=False)
        self._folders[str(path)] = folder
        return True

    def drop(self, folder: str) -> None:
        """Stop watching a directory and those below it."""
        for path, name in list(self._folders.items()):
            if name == folder or name.startswith(f"{folder}/"):
                del self._folders[path]

    def close(self) -> None:
        """Stop watching."""
        self._observer.stop()
        if self._observer is not threading.current_thread():
            self._observer.join(JOIN_S)

    def _on_event(self, event: FileSystemEvent) -> None:
        if event.event_type in READ_EVENTS or (
            event.is_directory and event.event_type == "modified"
        ):
            return
        for full in (os.fsdecode(event.src_path), os.fsdecode(event.dest_path)):
            parent, name = os.path.split(full)
            # One lookup, because the watcher may drop a directory meanwhile.
            folder, own = self._folders.get(parent), self._folders.get(full)
            if folder is not None:
                self._on_entry(folder, name, event.is_directory)
            elif own is not None:  # the root itself
                self._on_entry(own, "", True)


class InotifyWatches:
    """Watches on single directories, through inotify; one thread reads the events.

    Args:
        on_lost: called when the kernel dropped events; on the reading thread.

    Raises:
        WatchFailed: there is no inotify, or its limit of instances is reached.
    """

    def __init__(self, on_entry: OnEntry, on_lost: Callable[[], None]) -> None:
        self._on_entry, self._on_lost = on_entry, on_lost
        self._lock = threading.Lock()
        self._callback_ids = itertools.count(1)
        self._folders: dict[int, tuple[str, int]] = {}
        """Watched directories and the ids of their callbacks, by watch descriptor."""
        self._watches: dict[str, int] = {}
        try:
            from watchdog.observers import inotify_c

            self._fd: Any = inotify_c.InotifyFD()
        except Exception as error:  # ImportError, UnsupportedLibcError, OSError
            raise WatchFailed(describe(error)) from error
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
        self._max_watches = max_watches()
        self._fd.start()

    @property
    def names(self) -> set[str]:
        """The watched directories."""
        with self._lock:
            return set(self._watches)

    def add(self, folder: str, path: Path) -> bool:
        """Watch a directory; return False if there is none, or it cannot be read.

        Raises:
            WatchFailed: the limit of watches is reached.
        """
        with self._lock:
            if len(self._watches) >= self._max_watches:
                raise WatchFailed(f"the project has more than {self._max_watches} directories")
            callback = next(self._callback_ids)
            try:
                watch = self._fd.add_callback(os.fsencode(path), self._mask, self, callback)
            except OSError as error:
                if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}:
                    return False
                raise WatchFailed(describe(error)) from error
            if watch == -1:  # not readable: watchdog stores this value as a watch
                self._fd.remove_callbacks([(watch, callback)])
                return False
            before = self._folders.get(watch)
            if before:  # the same directory, maybe under another name
                self._fd.remove_callbacks([(watch, before[1])])
                self._watches.pop(before[0], None)
            old = self._watches.get(folder)
            if old is not None and old != watch:  # another directory had this name
                self._forget(old)
            self._folders[watch] = (folder, callback)
            self._watches[folder] = watch
            return True

    def drop(self, folder: str) -> None:
        """Stop watching a directory and those below it."""
        with self._lock:
            below = f"{folder}/"
            for name in [one for one in self._watches if one == folder or one.startswith(below)]:
                self._forget(self._watches[name])

    def close(self) -> None:
        """Stop watching and end the thread."""
        self._fd.stop()
        if self._fd is not threading.current_thread():
            self._fd.join(JOIN_S)

    def _forget(self, watch: int) -> None:
        folder, callback = self._folders.pop(watch)
        self._watches.pop(folder, None)
        with contextlib.suppress(OSError):
            self._fd.remove_callbacks([(watch, callback)])

    # Called by `InotifyFD`, on its thread.

    def on_event(self, event: InotifyEvent) -> None:
        """Forward an event."""
        with self._lock:
            found = self._folders.get(event.wd)
        if found:
            is_folder = event.is_directory or not event.name
            self._on_entry(found[0], os.fsdecode(event.name), is_folder)

    def on_watch_deleted(self, wd: int) -> None:
        """Forget a directory that was deleted."""
        with self._lock:
            found = self._folders.pop(wd, None)
            if found and self._watches.get(found[0]) == wd:
                del self._watches[found[0]]

    def on_queue_overflow(self) -> None:
        """Report that events were lost."""
        self._on_lost()


Watches = InotifyWatches | TreeWatches


def open_watches(root: Path, on_entry: OnEntry, on_lost: Callable[[], None]) -> Watches:
    """Return an object that watches directories of a project, at first none.

    Raises:
        WatchFailed: watching is impossible.
    """
    if system.is_on_network(root):
        raise WatchFailed("the project is on a disk of another machine, which reports no changes")
    return InotifyWatches(on_entry, on_lost) if IS_LINUX else TreeWatches(root, on_entry)


def max_watches() -> int:
    """Return the maximum watches of one project: half of the user's limit."""
    try:
        return int(system.kernel_setting(LIMIT)) // 2
    except ValueError:
        return 1 << 20


def describe(error: BaseException) -> str:
    """Return why watching is impossible, with a hint if there is one."""
    number = getattr(error, "errno", None)
    if number == errno.ENOSPC:
        return f"the limit of inotify watches is reached (sysctl {LIMIT})"
    if number == errno.EMFILE:
        return "the limit of inotify instances is reached (sysctl fs.inotify.max_user_instances)"
    return f"inotify cannot be used: {error}"
