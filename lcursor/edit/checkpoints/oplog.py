"""Operations, one a line of JSON in a file that several Neovims add to and read.

Owns which lines are operations; `log_file.py` has the file. Lines that make no sense are skipped
and counted. Where the file cannot be written that is told once; what was to be written waits for
the next time. Any thread.
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
        path: of the file; it, its folder and the one around that are made when they are needed.
        version: of the operations; lines of a higher one are left alone.
        take: given each operation in its order; raises KeyError, TypeError or ValueError where it
            makes no sense.
        forget: called when the file turns out to be another one, which is then read from the start.
        on_error: told that the file cannot be written; once for each time that it begins.
    """

    def __init__(
        self,
        path: Path,
        version: int,
        take: Callable[[Op], None],
        forget: Callable[[], None],
        on_error: Callable[[LcursorError], None],
    ) -> None:
        self.path = path
        self.lock = threading.RLock()
        """Held by who reads what came of the operations."""
        self.damaged = 0
        """Lines that were skipped."""
        self._version, self._give, self._forget, self._on_error = version, take, forget, on_error
        self._unsaved: list[Op] = []
        self._file = LogFile(path, is_guarded=True)
        self._is_lost = False

    @property
    def size_bytes(self) -> int:
        """How much was read."""
        return self._file.read_bytes

    def add(self, op: Op, *, is_firm: bool = False) -> None:
        """Take an operation in, and write it down.

        Args:
            op: the operation.
            is_firm: where it cannot be written down, raise, and do not take it in.

        Raises:
            EditUnsaved: see there.
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
            if is_firm:
                raise failure from error
            if not self._is_lost:
                self._is_lost = True
                self._on_error(failure)
            self._unsaved.append(op)
            self._take(op)

    def refresh(self) -> None:
        """Take in what other Neovims wrote."""
        if self._file.has_changed():
            with contextlib.suppress(OSError), self._file.lock_for_reading() as fd:
                self._catch_up(fd)

    def shorten(self, keep: Callable[[Sequence[tuple[Op, int]]], Sequence[Op]]) -> None:
        """Write the file anew with fewer operations; the next look reads it from the start.

        Args:
            keep: given all with the sizes of their lines, those of higher versions too; returns
                those that stay.

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
        """Add what waits and one more, all or none, and take the last in; return what failed."""
        try:
            self._catch_up(fd)
            lines = [_line(each) for each in (*self._unsaved, op)]
        except OSError as error:
            return error
        except (TypeError, ValueError) as error:
            return OSError(0, f"it is not to be written down: {error}")
        count, failed = self._file.append(fd, lines)
        if count < len(lines):
            del self._unsaved[:count]
            return failed
        self._unsaved.clear()
        self._take(op)
        return None

    def _catch_up(self, fd: int) -> None:
        """Take in what is in the file and was not read."""
        lines, is_fresh = self._file.read_new(fd)
        if is_fresh:
            self.damaged = 0
            self._forget()
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
            self._give(op)
        except (KeyError, TypeError, ValueError):
            self.damaged += 1

    def _ops(self, lines: Iterable[bytes]) -> Iterator[Op | None]:
        """Yield the operations of lines; None for a line that is none that we understand."""
        for op in map(_parsed, lines):
            yield op if op is not None and op.get("v", 0) <= self._version else None


def _parsed(line: bytes) -> Op | None:
    """Return the operation of a line, of whatever version; None for a damaged line."""
    try:
        op = json.loads(line)
    except ValueError:
        return None
    return op if isinstance(op, dict) and isinstance(op.get("v", 0), int) else None


def _line(op: Op) -> bytes:
    return json.dumps(op, separators=(",", ":")).encode() + b"\n"
