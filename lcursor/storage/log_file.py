"""A file of lines that several processes append to and read, without losing or halving a line.

The file has mode 0600 in folders of 0700. A writer locks it for a moment and first reads what
others added. A partial line of a killed writer is ended before the next line, an append that fails
is undone, and a file that was replaced or deleted is noticed. One thread at a time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from lcursor.storage import file_lock

LOCK_S = 2.0
"""Time limit for the lock: a process that holds it for longer was stopped."""
HEAD_BYTES = 64
"""The first bytes tell a file from a later one with the same inode number."""


class LogFile:
    """The file, and how much of it was read.

    Args:
        path: of the file; it and two folders above are created with the first line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read_bytes = 0
        """How much was read."""
        self._inode = (0, 0)
        """Device and inode of the file that was read."""
        self._head = b""

    @contextlib.contextmanager
    def lock_for_writing(self) -> Iterator[int | OSError]:
        """Yield the file, locked and created if need be; or the error that prevents it."""
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
                        return  # else it was replaced just now: try again
            finally:
                os.close(fd)

    @contextlib.contextmanager
    def lock_for_reading(self) -> Iterator[int]:
        """Yield the file, locked; it is not created.

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
            The lines, and whether they are from the start of the file: it is the first call, or the
            file was replaced.

        Raises:
            OSError: it cannot be read.
        """
        found, head = os.fstat(fd), os.pread(fd, HEAD_BYTES, 0)
        inode = (found.st_dev, found.st_ino)
        is_same = inode == self._inode and head.startswith(self._head)
        if not is_same or found.st_size < self.read_bytes:
            self.reset()
        self._inode, self._head = inode, head
        first = self.read_bytes
        data = _read(fd, first, found.st_size)
        self.read_bytes = first + len(data)
        return _lines(data), not first

    def reset(self) -> None:
        """Read it from the start next time."""
        self._inode, self._head, self.read_bytes = (0, 0), b"", 0

    def append(self, fd: int, lines: Sequence[bytes], *, fsync: bool = True) -> OSError | None:
        """Append lines, all or none; they count as read. Return the error if that failed.

        Args:
            fd: of the file, locked and read to its end.
            lines: each with its line end.
            fsync: make them survive a power failure.
        """
        found = os.fstat(fd)
        size, data = found.st_size, b"".join(lines)
        self._inode = (found.st_dev, found.st_ino)
        try:
            if size and os.pread(fd, 1, size - 1) != b"\n":
                data = b"\n" + data  # the line before was cut off with its writer
            _append(fd, data)
            if fsync:
                os.fsync(fd)
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
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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
