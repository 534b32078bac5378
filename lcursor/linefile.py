"""A file of lines that several processes add to and read, in which no line is lost or halved.

Owns the file, mode 0600 in folders of 0700: who adds to it locks it for a moment and takes in what
the others wrote first; a line that a killed writer left half is closed before the next one; what
could not be written whole is taken out again; a file that somebody wrote anew, or deleted, is
noticed. What the lines mean is its owner's. One thread at a time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from lcursor import folders
from lcursor.errors import LcursorError
from lcursor.storage import file_lock

LOCK_S = 2.0
"""Longest wait for another process that writes; then it has been stopped, and is not waited for."""
HEAD_BYTES = 64
"""So many of the first bytes tell a file from one that has its number again."""


class LineFile:
    """The file, and how much of it was read.

    Args:
        path: of the file; it and two folders above are made when something is to be written.
        is_guarded: refuse folders that others may write to, and a file behind a link.
    """

    def __init__(self, path: Path, *, is_guarded: bool = False) -> None:
        self.path = path
        self.read_bytes = 0
        """How much of it was read; up to here its owner knows it."""
        self._is_guarded = is_guarded
        self._number = (0, 0)
        """Device and inode of the file that was read."""
        self._head = b""

    def has_news(self) -> bool:
        """Whether there is something in it that was not read; a look without the lock."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino, found.st_size) != (*self._number, self.read_bytes)

    @contextlib.contextmanager
    def written(self) -> Iterator[int | OSError]:
        """Give the file, locked and made where there is none; or why there can be none."""
        with contextlib.ExitStack() as stack:
            given: int | OSError | None = None
            while given is None:
                try:
                    fd = self._made()
                except OSError as error:
                    given = error
                except LcursorError as error:
                    given = OSError(0, str(error))
                else:
                    with contextlib.ExitStack() as one:
                        one.callback(os.close, fd)
                        one.enter_context(file_lock.hold(fd, LOCK_S))
                        if file_lock.is_same_file(self.path, fd):
                            stack.push(one.pop_all())
                            given = fd  # else someone wrote it anew just now
            yield given

    @contextlib.contextmanager
    def read(self) -> Iterator[int]:
        """Give the file, locked; it is not made.

        Raises:
            OSError: there is none, or it cannot be read.
        """
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with file_lock.hold(fd, LOCK_S):
                yield fd
        finally:
            os.close(fd)

    def news(self, fd: int) -> tuple[list[bytes], bool]:
        """Return the lines that were not read yet, without their ends and without empty ones.

        Args:
            fd: of the file, locked.

        Returns:
            The lines, and whether they are from the start: it is read for the first time, or is
            not the file any more of which something is known.

        Raises:
            OSError: it cannot be read.
        """
        found, head = os.fstat(fd), os.pread(fd, HEAD_BYTES, 0)
        number = (found.st_dev, found.st_ino)
        is_known = number == self._number and head.startswith(self._head)
        if not is_known or found.st_size < self.read_bytes:
            self.forget()
        self._number, self._head = number, head
        first = self.read_bytes
        data = _read(fd, first, found.st_size)
        self.read_bytes = first + len(data)
        return _lines(data), not first

    def known(self, fd: int) -> list[bytes]:
        """Return the lines that were read.

        Raises:
            OSError: it cannot be read.
        """
        return _lines(_read(fd, 0, self.read_bytes))

    def forget(self) -> None:
        """Know nothing of it: it is read from the start."""
        self._number, self._head, self.read_bytes = (0, 0), b"", 0

    def append(
        self, fd: int, lines: Sequence[bytes], *, is_firm: bool = True
    ) -> tuple[int, OSError | None]:
        """Add lines, which then count as read; all of them, or none.

        Args:
            fd: of the file, locked, with nothing in it that was not read.
            lines: each with its end.
            is_firm: have them survive also when the power fails; else only when we are killed.

        Returns:
            How many lines are in the file, and what went wrong; where something did they are none,
            but if even taking them out again was impossible.
        """
        found = os.fstat(fd)
        size, data = found.st_size, b"".join(lines)
        self._number = (found.st_dev, found.st_ino)
        try:
            if size and os.pread(fd, 1, size - 1) != b"\n":
                data = b"\n" + data  # the line before was cut off by whatever killed its writer
            _append(fd, data)
            if is_firm:
                os.fsync(fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, size)
            left = b""
            with contextlib.suppress(OSError):
                left = _read(fd, size, os.fstat(fd).st_size)
            self.read_bytes = size + len(left)
            return left.lstrip(b"\n").count(b"\n"), error
        self.read_bytes, self._head = size + len(data), (self._head + data)[:HEAD_BYTES]
        return len(lines), None

    def replace(self, fd: int, data: bytes, *, keeps_time: bool = False) -> None:
        """Write the file anew; it counts as read.

        Args:
            fd: of the file as it was, locked.
            data: all that it shall have.
            keeps_time: have it look as if it had not been changed.

        Raises:
            OSError: it cannot be written; it stays as it was.
        """
        found = os.fstat(fd)
        part = self.path.with_suffix(f".{os.getpid()}.part")
        try:
            new = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                _append(new, data)
                if keeps_time:
                    os.utime(new, ns=(found.st_atime_ns, found.st_mtime_ns))
                os.fsync(new)
                there = os.fstat(new)
            finally:
                os.close(new)
            os.replace(part, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
            raise
        self._number, self._head = (there.st_dev, there.st_ino), data[:HEAD_BYTES]
        self.read_bytes = len(data)

    def firm(self) -> None:
        """Have all that was written survive also when the power fails.

        Raises:
            OSError: there is no such file, or no such promise of the disk.
        """
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _made(self) -> int:
        how = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        above = (self.path.parent.parent, self.path.parent)
        if self._is_guarded:
            how |= os.O_NOFOLLOW
            for folder in above:
                folders.own(folder)
        elif not self.path.parent.is_dir():
            for folder in above:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(self.path, how, 0o600)


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
