"""A log of operations, one JSON line each, that several Neovims append to and read.

`log_file.py` has the file. Damaged lines are skipped and counted. If the file cannot be written,
that is reported once, and the operations are written next time. Any thread.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lcursor.errors import EditUnsaved, LcursorError
from lcursor.storage.log_file import LogFile

Op = dict[str, Any]


class OpLog:
    """The file.

    Args:
        path: of the file; it and two folders above are created when needed.
        version: of the operations; lines of a higher version are kept, but not read.
        apply: called with each operation, in order; raises KeyError, TypeError or ValueError if it
            is invalid.
        reset: called if the file was replaced; the new one is then read from the start.
        on_error: called when the file cannot be written, once until it can be.
    """

    def __init__(
        self,
        path: Path,
        version: int,
        apply: Callable[[Op], None],
        reset: Callable[[], None],
        on_error: Callable[[LcursorError], None],
    ) -> None:
        self.path = path
        self.lock = threading.RLock()
        """Hold it to read what the operations have changed."""
        self.damaged = 0
        """Number of skipped lines."""
        self._version, self._apply, self._reset, self._on_error = version, apply, reset, on_error
        self._unsaved: list[Op] = []
        self._file = LogFile(path, is_guarded=True)
        self._is_lost = False

    @property
    def size_bytes(self) -> int:
        """How much was read."""
        return self._file.read_bytes

    def add(self, op: Op, *, fsync: bool = False) -> None:
        """Write an operation and apply it.

        Without `fsync` it is applied even if it cannot be written.

        Raises:
            EditUnsaved: it cannot be written, with `fsync`.
        """
        with self.lock, self._file.lock_for_writing() as fd:
            error = fd if isinstance(fd, OSError) else self._write(fd, op)
            if error is None:
                self._is_lost = False
                return
            failure = EditUnsaved(
                f"the record of edits cannot be written: {error.strerror or error} ({self.path})",
                "Make room or see who may write there; until then :LCursor undo works in this "
                "Neovim alone",
            )
            if fsync:
                raise failure from error
            if not self._is_lost:
                self._is_lost = True
                self._on_error(failure)
            self._unsaved.append(op)
            self._take(op)

    def refresh(self) -> None:
        """Apply what other Neovims have written."""
        if self._file.has_changed():
            with contextlib.suppress(OSError), self._file.lock_for_reading() as fd:
                self._catch_up(fd)

    def shorten(self, keep: Callable[[Sequence[tuple[Op, int]]], Sequence[Op]]) -> None:
        """Rewrite the file with fewer operations; it is then read from the start.

        Args:
            keep: called with all operations, those of higher versions too, and the sizes of their
                lines; returns those to keep.

        Raises:
            OSError: it cannot be written; it stays as it is.
        """
        with self._file.lock_for_writing() as fd:
            if isinstance(fd, OSError):
                raise fd
            self._catch_up(fd)
            parsed = map(_parsed, self._file.read_again(fd))
            known = [(op, len(_line(op))) for op in parsed if op is not None]
            self._file.replace(fd, b"".join(_line(op) for op in keep(known)))
            self._file.reset()

    def _write(self, fd: int, op: Op) -> OSError | None:
        """Write the unsaved operations and one more, all or none; return what failed."""
        try:
            self._catch_up(fd)
            lines = [_line(each) for each in (*self._unsaved, op)]
        except OSError as error:
            return error
        except (TypeError, ValueError) as error:
            return OSError(0, f"it cannot be serialized: {error}")
        count, failed = self._file.append(fd, lines)
        if count < len(lines):
            del self._unsaved[:count]
            return failed
        self._unsaved.clear()
        self._take(op)
        return None

    def _catch_up(self, fd: int) -> None:
        """Apply what is in the file and was not read."""
        lines, is_fresh = self._file.read_new(fd)
        if is_fresh:
            self.damaged = 0
            self._reset()
        for op in self._ops(lines):
            if op is None:
                self.damaged += 1
            else:
                self._take(op)
        if is_fresh:
            for op in self._unsaved:
                self._take(op)

    def _take(self, op: Op) -> None:
        try:
            self._apply(op)
        except (KeyError, TypeError, ValueError):
            self.damaged += 1

    def _ops(self, lines: Iterable[bytes]) -> Iterator[Op | None]:
        """Yield the operations of lines, None for a damaged one or one of a higher version."""
        for op in map(_parsed, lines):
            yield op if op is not None and op.get("v", 0) <= self._version else None


def _parsed(line: bytes) -> Op | None:
    """Return the operation of a line, of any version; None for a damaged line."""
    try:
        op = json.loads(line)
    except ValueError:
        return None
    return op if isinstance(op, dict) and isinstance(op.get("v", 0), int) else None


def _line(op: Op) -> bytes:
    return json.dumps(op, separators=(",", ":")).encode() + b"\n"
