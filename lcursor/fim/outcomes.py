"""What became of each suggestion that was shown: a small SQLite file that never leaves the machine.

Owns the file and the one thread (`lcursor-journal`) that touches it. Holds numbers, filetypes and
outcomes; no text of a buffer, no names of files. A file that cannot be used is told once, and all
goes on without it. Several Neovims share one file.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lcursor.errors import JournalFailed, LcursorError

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

KEEP_ROWS = 20_000
KEEP_S = 180 * 24 * 3600
NEWEST_ROWS = 2000
"""Rows from which something is learned."""
PAUSE_S = 1.0
"""Least time between two writes."""
PRUNE_EVERY = 500
"""Rows written between two looks at how many there are."""
WAITING_ROWS = 1000
"""Most rows that wait for a file that others have locked."""
VERSION = 1
TABLE = """
CREATE TABLE IF NOT EXISTS outcome (
    at_s REAL NOT NULL, filetype TEXT NOT NULL, outcome TEXT NOT NULL, source TEXT NOT NULL,
    shown_chars INTEGER NOT NULL, kept_chars INTEGER NOT NULL, through_keys INTEGER NOT NULL,
    shown_ms REAL NOT NULL, latency_ms REAL NOT NULL, confidence REAL NOT NULL
)
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One suggestion that was shown. The fields are the table's columns, in their order."""

    at_s: float
    """When it went, in seconds since 1970."""
    filetype: str
    outcome: str
    """Of `protocol.Outcome`."""
    source: str
    """Of `protocol.TextSource`."""
    shown_chars: int
    kept_chars: int
    through_keys: int
    """Keys that it followed because they said what it says: nobody was asked for them."""
    shown_ms: float
    latency_ms: float
    """From the key to the ghost; -1 where another thing than the model was waited for."""
    confidence: float
    """-1 where the suggestion went before the model had ended."""


Rows = list[Row]
INSERT = "INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
NEWEST = "SELECT * FROM outcome ORDER BY at_s DESC, rowid DESC LIMIT ?"


def default_path() -> Path:
    """Return `$XDG_STATE_HOME/lcursor/outcomes.sqlite3`, with the usual default for the first."""
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser() / "lcursor" / "outcomes.sqlite3"


class OutcomeStore:
    """The file, behind a thread of its own; every method but `close` returns at once.

    Args:
        complain: told, on the journal's thread, what is wrong with the file; at most once.
        changed: given the newest rows, oldest first, on the journal's thread, after each write and
            after `refresh`.
        path: the file; it and its folder are made at the first row.
    """

    def __init__(
        self,
        complain: Callable[[LcursorError], None],
        changed: Callable[[Rows], None] = lambda rows: None,
        path: Path | None = None,
    ) -> None:
        self.path = path or default_path()
        self.problem = ""
        self._complain, self._changed = complain, changed
        self._wake = threading.Condition()
        self._waiting: deque[Row] = deque(maxlen=WAITING_ROWS)
        self._work: deque[Callable[[], None]] = deque()
        self._is_closed = False
        self._is_useless = False
        self._unpruned = PRUNE_EVERY
        self._base: sqlite3.Connection | None = None
        self._thread: threading.Thread | None = None

    def add(self, row: Row) -> None:
        """Keep an outcome; it is written within a second or so."""
        with self._wake:
            self._waiting.append(row)
        self._start()

    def read(self, then: Callable[[Rows], None]) -> None:
        """Give all rows, oldest first, to `then`, on the journal's thread; none from a bad file."""
        self._do(lambda: then(self._rows(KEEP_ROWS)))

    def refresh(self) -> None:
        """Tell `changed` again what there is."""
        self._do(lambda: self._changed(self._rows(NEWEST_ROWS)))

    def reset(self, then: Callable[[Rows], None]) -> None:
        """Forget everything, also what other Neovims wrote; then give `then` what is left."""
        self._do(lambda: self._forget(then))

    def close(self, timeout_s: float = 0.5) -> None:
        """Write what waits, and end."""
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        if self._thread:
            self._thread.join(timeout_s)

    def _do(self, work: Callable[[], None]) -> None:
        with self._wake:
            self._work.append(work)
        self._start()

    def _start(self) -> None:
        with self._wake:
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(
                    target=self._loop, name="lcursor-journal", daemon=True
                )
                self._thread.start()
            self._wake.notify()

    def _loop(self) -> None:
        written_s = 0.0
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting or self._work or self._is_closed)
                # A moment more, so that several outcomes are one write.
                self._wake.wait_for(
                    lambda: self._work or self._is_closed,
                    max(written_s + PAUSE_S - time.monotonic(), 0),
                )
                is_last = self._is_closed
                work, self._work = self._work, deque()
            for each in (self._write, *work):
                try:
                    each()
                except Exception as error:  # noqa: BLE001 - the root of a thread
                    self._give_up(repr(error))
            written_s = time.monotonic()
            if is_last:
                return self._close()

    def _write(self) -> None:
        if self._flush() and not self._is_closed:
            self._changed(self._rows(NEWEST_ROWS))

    def _flush(self) -> bool:
        """Write the waiting rows; return whether there is something new in the file."""
        with self._wake:
            rows = list(self._waiting)
            self._waiting.clear()
        if not rows or self._is_useless:
            return False

        def write(base: sqlite3.Connection) -> bool:
            base.executemany(INSERT, map(astuple, rows))
            self._unpruned += len(rows)
            if self._unpruned >= PRUNE_EVERY:
                base.execute("DELETE FROM outcome WHERE at_s < ?", (time.time() - KEEP_S,))
                base.execute(
                    "DELETE FROM outcome WHERE rowid NOT IN "
                    "(SELECT rowid FROM outcome ORDER BY at_s DESC, rowid DESC LIMIT ?)",
                    (KEEP_ROWS,),
                )
                self._unpruned = 0
            return True

        if self._with(write):
            return True
        with self._wake:
            if not self._is_useless:  # others hold it: these rows are first in line again
                self._waiting.extendleft(reversed(rows))
        return False

    def _rows(self, most: int) -> Rows:
        if not self.path.exists():
            return []
        found = self._with(lambda base: [Row(*one) for one in base.execute(NEWEST, (most,))])
        return (found or [])[::-1]

    def _forget(self, then: Callable[[Rows], None]) -> None:
        def empty(base: sqlite3.Connection) -> bool:
            base.execute("DELETE FROM outcome")
            return True

        if not self._with(empty) and self._is_useless:  # so nobody else can be using it either
            for end in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    self.path.with_name(self.path.name + end).unlink()
            self._is_useless, self.problem = False, ""
        rows = self._rows(KEEP_ROWS)
        self._changed(rows)
        then(rows)

    def _with(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do something in one transaction; None when the file cannot be used."""
        import sqlite3  # 5 ms, which the host's start need not pay

        if self._is_useless:
            return None
        try:
            if not self.path.exists():
                self._close()  # someone deleted it: it begins anew
            self._base = self._base or self._open()
            with self._base:
                return work(self._base)
        except (sqlite3.Error, OSError) as error:
            if "locked" not in str(error):  # another Neovim is writing
                self._give_up(str(error))
            return None

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        base = sqlite3.connect(self.path, timeout=2.0)
        try:
            (version,) = base.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise sqlite3.DatabaseError(f"it is of version {version}, not {VERSION}")
            base.execute("PRAGMA journal_mode = WAL")
            base.execute("PRAGMA synchronous = NORMAL")
            with base:
                base.execute(TABLE)
                base.execute(f"PRAGMA user_version = {VERSION}")
        except sqlite3.Error:
            base.close()
            raise
        return base

    def _give_up(self, reason: str) -> None:
        self._close()
        if self._is_useless:
            return
        self._is_useless = True
        self.problem = f"{self.path} cannot be used ({reason})"
        self._complain(
            JournalFailed(
                f"{self.problem}; what you accept is not remembered",
                "Run :LCursor stats reset, or see who may write there",
            )
        )

    def _close(self) -> None:
        if self._base:
            self._base.close()
            self._base = None
