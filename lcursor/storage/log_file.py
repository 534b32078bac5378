"""A file of lines that several processes append to and read, without losing or splitting a line.

The file has mode 0600, its folders 0700. A writer locks it briefly and first reads new lines of
other processes. It terminates a partial line of a killed writer, truncates a failed append, and
detects a file that was replaced or deleted. One thread at a time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from lcursor.storage import file_lock, folders

LOCK_S = 2.0
"""Time limit for the lock: a process that holds it for longer is suspended."""
HEAD_BYTES = 64
"""The first bytes distinguish a file from a later one with the same inode number."""


class LogFile:
    """The file and the position up to which it was read.

    Args:
        path: the file; it and two folders above are created with the first line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read_bytes = 0
        """Number of bytes that were read."""
        self._inode = (0, 0)
        """Device and inode of the file that was read."""
        self._head = b""
        self._has_name = False
        """Whether the file's name survives a power failure."""

    @contextlib.contextmanager
    def lock_for_writing(self) -> Iterator[int | OSError]:
        """Yield the locked file, created if necessary, or the error that prevented this."""
        while True:
            try:
                fd = self._open()
            except OSError as error:
                yield error
                return
            try:
                with file_lock.hold(fd, LOCK_S):
                    if file_lock.is_same_file(self.path, fd):
                        yield fd
                        return  # else it was replaced before it was locked: try again
            finally:
                os.close(fd)

    @contextlib.contextmanager
    def lock_for_reading(self) -> Iterator[int]:
        """Yield the locked file, without creating it.

        Raises:
            OSError: there is none, or it cannot be read.
        """
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with file_lock.hold(fd, LOCK_S):
                yield fd
        finally:
            os.close(fd)

    def read_new(self, fd: int) -> tuple[list[bytes], bool]:
        """Return the lines since the last call, without line ends and empty lines.

        Returns:
            The lines, and whether they are from the start of the file: in the first call, or after
            the file was replaced.

        Raises:
            OSError: it cannot be read.
        """
        status, head = os.fstat(fd), os.pread(fd, HEAD_BYTES, 0)
        inode = (status.st_dev, status.st_ino)
        is_same = inode == self._inode and head.startswith(self._head)
        if not is_same or status.st_size < self.read_bytes:
            self.reset()
        self._inode, self._head = inode, head
        first = self.read_bytes
        data = _read(fd, first, status.st_size)
        self.read_bytes = first + len(data)
        return _lines(data), not first

    def reset(self) -> None:
        """Read it from the start next time."""
        self._inode, self._head, self.read_bytes = (0, 0), b"", 0

    def append(self, fd: int, lines: Sequence[bytes], *, fsync: bool = True) -> OSError | None:
        """Append lines, all or none, which then count as read; return the error if that failed.

        Args:
            fd: the file, locked and read to its end.
            lines: each with its line end.
            fsync: make them survive a power failure.
        """
        found = os.fstat(fd)
        size, data = found.st_size, b"".join(lines)
        self._inode = (found.st_dev, found.st_ino)
        try:
            if size and os.pread(fd, 1, size - 1) != b"\n":
                data = b"\n" + data  # the last writer died within a line
            _append(fd, data)
            if fsync:
                os.fsync(fd)
                if not self._has_name:
                    folders.fsync_folder(self.path.parent)
                    self._has_name = True
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, size)
            self.read_bytes = size
            return error
        self.read_bytes, self._head = size + len(data), (self._head + data)[:HEAD_BYTES]
        return None

    def _open(self) -> int:
        if not self.path.parent.is_dir():
            for folder in (self.path.parent.parent, self.path.parent):
                folders.create(folder)
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line]


def _read(fd: int, first: int, end: int) -> bytes:
    found = b""
    while first < end:
        data = os.pread(fd, end - first, first)
        if not data:
            break
        found += data
        first += len(data)
    return found


def _append(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
