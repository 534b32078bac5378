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

from lcursor.errors import LcursorError
from lcursor.storage import file_lock, folders

LOCK_S = 2.0
"""Time limit for the lock: a process that holds it for longer was stopped."""
HEAD_BYTES = 64
"""The first bytes tell a file from a later one with the same inode number."""


class LogFile:
    """The file, and how much of it was read.

    Args:
        path: of the file; it and two folders above are created with the first line.
        is_guarded: refuse folders that others may write to, and a symbolic link as the file.
    """

    def __init__(self, path: Path, *, is_guarded: bool = False) -> None:
        self.path = path
        self.read_bytes = 0
        """How much was read."""
        self._is_guarded = is_guarded
        self._inode = (0, 0)
        """Device and inode of the file that was read."""
        self._head = b""

    def has_changed(self) -> bool:
        """Return whether it was replaced or grew; looks without the lock."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino, found.st_size) != (*self._inode, self.read_bytes)

    @contextlib.contextmanager
    def lock_for_writing(self) -> Iterator[int | OSError]:
        """Yield the file, locked and created if need be; or the error that prevents it."""
        with contextlib.ExitStack() as stack:
            result: int | OSError | None = None
            while result is None:
                try:
                    fd = self._open()
                except OSError as error:
                    result = error
                except LcursorError as error:
                    result = OSError(0, str(error))
                else:
                    with contextlib.ExitStack() as attempt:
                        attempt.callback(os.close, fd)
                        attempt.enter_context(file_lock.hold(fd, LOCK_S))
                        if file_lock.is_same_file(self.path, fd):
                            stack.push(attempt.pop_all())
                            result = fd  # else it was replaced just now: try again
            yield result

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

        Args:
            fd: of the file, locked.

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

    def read_again(self, fd: int) -> list[bytes]:
        """Return the lines that were read before.

        Raises:
            OSError: it cannot be read.
        """
        return _lines(_read(fd, 0, self.read_bytes))

    def reset(self) -> None:
        """Read it from the start next time."""
        self._inode, self._head, self.read_bytes = (0, 0), b"", 0

    def append(
        self, fd: int, lines: Sequence[bytes], *, fsync: bool = True
    ) -> tuple[int, OSError | None]:
        """Append lines, all or none; they count as read.

        Args:
            fd: of the file, locked and read to its end.
            lines: each with its line end.
            fsync: make them survive a power failure.

        Returns:
            How many lines are in the file now, and the error. After an error that is 0, unless even
            undoing it failed.
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
            rest = b""
            with contextlib.suppress(OSError):
                rest = _read(fd, size, os.fstat(fd).st_size)
            self.read_bytes = size + len(rest)
            return rest.lstrip(b"\n").count(b"\n"), error
        self.read_bytes, self._head = size + len(data), (self._head + data)[:HEAD_BYTES]
        return len(lines), None

    def replace(self, fd: int, data: bytes, *, keep_mtime: bool = False) -> None:
        """Replace the file; its new content counts as read.

        Args:
            fd: of the old file, locked.
            data: the whole content.
            keep_mtime: give it the old file's modification time.

        Raises:
            OSError: it cannot be written; the old file stays.
        """
        old = os.fstat(fd)
        part = self.path.with_suffix(f".{os.getpid()}.part")
        try:
            new_fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                _append(new_fd, data)
                if keep_mtime:
                    os.utime(new_fd, ns=(old.st_atime_ns, old.st_mtime_ns))
                os.fsync(new_fd)
                new = os.fstat(new_fd)
            finally:
                os.close(new_fd)
            os.replace(part, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
            raise
        self._inode, self._head = (new.st_dev, new.st_ino), data[:HEAD_BYTES]
        self.read_bytes = len(data)

    def fsync(self) -> None:
        """Make everything that was written survive a power failure.

        Raises:
            OSError: there is no such file, or it cannot be flushed.
        """
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        above = (self.path.parent.parent, self.path.parent)
        if self._is_guarded:
            flags |= os.O_NOFOLLOW
            for folder in above:
                folders.make_private(folder)
        elif not self.path.parent.is_dir():
            for folder in above:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(self.path, flags, 0o600)


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
