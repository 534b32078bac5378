"""A file of operations, one a line of JSON, that several Neovims add to and read.

Owns the file, mode 0600 in a folder of 0700. Who adds locks it for a moment and takes in what the
others wrote first. Lines that make no sense are skipped and counted. Where the file cannot be
written that is told once; what was to be written waits for the next time. Any thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lcursor import folders, locked
from lcursor.errors import EditUnsaved, LcursorError

Op = dict[str, Any]

LOCK_S = 2.0
"""Longest wait for another Neovim that writes; then it has been stopped, and is not waited for."""


class OpLog:
    """The file.

    Args:
        path: of the file; it, its folder and the one around that are made when they are needed.
        version: of the operations; lines of a higher one are left alone.
        take: given each operation in its order; raises KeyError, TypeError or ValueError where it
            makes no sense.
        forget: called when the file turns out to be another one, which is then read from the start.
        complain: told that the file cannot be written; once for each time that it begins.
    """

    def __init__(
        self,
        path: Path,
        version: int,
        take: Callable[[Op], None],
        forget: Callable[[], None],
        complain: Callable[[LcursorError], None],
    ) -> None:
        self.path = path
        self.lock = threading.RLock()
        """Held by who reads what came of the operations."""
        self.damaged = 0
        """Lines that were skipped."""
        self._version, self._give, self._forget, self._complain = version, take, forget, complain
        self._unsaved: list[Op] = []
        self._file = (0, 0)
        """Device and number of the file that was read."""
        self._at = 0
        """How much of it was."""
        self._is_lost = False

    @property
    def size_bytes(self) -> int:
        """How much was read."""
        return self._at

    def add(self, op: Op, *, is_firm: bool = False) -> None:
        """Take an operation in, and write it down.

        Args:
            op: the operation.
            is_firm: where it cannot be written down, raise, and do not take it in.

        Raises:
            EditUnsaved: see there.
        """
        with self.lock, self._opened() as fd:
            if isinstance(fd, OSError):
                self._failed(fd, is_firm)
            else:
                self._catch_up(fd)
                try:
                    self._write(fd, op)
                except OSError as error:
                    self._failed(error, is_firm)
                else:
                    self._is_lost = False
                    return
            self._unsaved.append(op)
            self._take(op)

    def refresh(self) -> None:
        """Take in what other Neovims wrote."""
        try:
            found = os.stat(self.path)
        except OSError:
            return
        if (found.st_dev, found.st_ino) == self._file and found.st_size == self._at:
            return
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, fd)
            stack.enter_context(locked.held(fd, LOCK_S))
            self._catch_up(fd)

    def shorten(self, keep: Callable[[Sequence[tuple[Op, int]]], Sequence[Op]]) -> None:
        """Write the file anew with fewer operations.

        Args:
            keep: given all with the sizes of their lines, returns those that stay.

        Raises:
            OSError: it cannot be written; it stays as it is.
        """
        fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        part = self.path.with_suffix(f".{os.getpid()}.part")
        try:
            with locked.held(fd, LOCK_S):
                if not locked.is_same(self.path, fd):
                    return  # someone wrote it anew just now
                self._catch_up(fd)
                at, damaged = self._at, self.damaged
                self._at = 0
                known = [(op, len(_line(op))) for op in self._read(fd, at)]
                self._at, self.damaged = at, damaged
                data = b"".join(_line(op) for op in keep(known))
                new = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
                try:
                    _append(new, data)
                    os.fsync(new)
                finally:
                    os.close(new)
                os.replace(part, self.path)
        finally:
            with contextlib.suppress(OSError):
                part.unlink()
            os.close(fd)

    def _failed(self, error: OSError, is_firm: bool) -> None:
        failure = EditUnsaved(
            f"the record of edits cannot be written: {error.strerror or error} ({self.path})",
            "Make room or see who may write there; until then :LCursor undo works in this Neovim "
            "alone",
        )
        if is_firm:
            raise failure from error
        if not self._is_lost:
            self._is_lost = True
            self._complain(failure)

    def _write(self, fd: int, op: Op) -> None:
        """Add what waits and one more, all or none; take the last in.

        Raises:
            OSError: they cannot be written.
        """
        size = os.fstat(fd).st_size
        try:
            lines = b"".join(_line(each) for each in (*self._unsaved, op))
        except (TypeError, ValueError) as error:
            raise OSError(0, f"it is not to be written down: {error}") from error
        if size and os.pread(fd, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # a line that was cut off by whatever killed its writer
        try:
            _append(fd, lines)
            os.fsync(fd)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(fd, size)
            raise
        self._unsaved.clear()
        self._take(op)
        self._at = size + len(lines)

    def _take(self, op: Op) -> None:
        try:
            self._give(op)
        except (KeyError, TypeError, ValueError):
            self.damaged += 1

    def _catch_up(self, fd: int) -> None:
        """Take in what is in the file and was not read."""
        found = os.fstat(fd)
        name = (found.st_dev, found.st_ino)
        is_other = name != self._file or found.st_size < self._at
        if is_other:
            self._file, self._at, self.damaged = name, 0, 0
            self._forget()
        for op in self._read(fd, found.st_size):
            self._take(op)
        if is_other:
            for op in self._unsaved:
                self._take(op)

    def _read(self, fd: int, size: int) -> Iterator[Op]:
        """Yield the operations that were not read yet."""
        data = b""
        while self._at < size:
            more = os.pread(fd, size - self._at, self._at)
            if not more:
                break
            data += more
            self._at += len(more)
        for line in filter(None, data.split(b"\n")):
            try:
                op = json.loads(line)
            except ValueError:
                op = None
            version = op.get("v", 0) if isinstance(op, dict) else None
            if isinstance(version, int) and version <= self._version:
                yield op
            else:
                self.damaged += 1

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int | OSError]:
        """Give the locked file, made where there is none; or why there can be none."""
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
                        one.enter_context(locked.held(fd, LOCK_S))
                        if locked.is_same(self.path, fd):
                            stack.push(one.pop_all())
                            given = fd  # else someone wrote it anew just now
            yield given

    def _made(self) -> int:
        folders.own(self.path.parent.parent)
        folders.own(self.path.parent)
        how = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self.path, how, 0o600)


def _line(op: Op) -> bytes:
    return json.dumps(op, separators=(",", ":")).encode() + b"\n"


def _append(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
