"""The outcomes of suggestions that were shown: a small SQLite file that never leaves the machine.

Owns the file and the one thread (`lcursor-outcomes`) that accesses it. It holds numbers, filetypes
and outcomes; no text of a buffer, no file names. A file that cannot be used is reported once, and
everything else works without it. Several Neovims share one file.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lcursor.errors import JournalFailed, LcursorError
from lcursor.executor import SerialExecutor

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

KEEP_ROWS = 20_000
KEEP_S = 180 * 24 * 3600
NEWEST_ROWS = 2000
"""Rows that are learned from."""
PRUNE_EVERY = 500
"""Rows written between two deletions of old ones."""
WAITING_ROWS = 1000
"""Most rows that wait while another process has locked the file."""
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
    """One suggestion that was shown. The fields are the table's columns, in their order.

    Attributes:
        at_s: when it disappeared, in seconds since 1970.
        outcome: a `protocol.fim.Outcome`.
        source: a `protocol.fim.TextSource`.
        through_keys: typed keys that matched it, so that no request was sent for them.
        latency_ms: from the key to the ghost text; -1 if it waited for something besides the model.
        confidence: -1 if the suggestion disappeared before the model had finished.
    """

    at_s: float
    filetype: str
    outcome: str
    source: str
    shown_chars: int
    kept_chars: int
    through_keys: int
    shown_ms: float
    latency_ms: float
    confidence: float


Rows = list[Row]
INSERT = "INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
NEWEST = "SELECT * FROM outcome ORDER BY at_s DESC, rowid DESC LIMIT ?"


def default_path() -> Path:
    """Return `$XDG_STATE_HOME/lcursor/outcomes.sqlite3`; it defaults to `~/.local/state`."""
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser() / "lcursor" / "outcomes.sqlite3"


class OutcomeStore:
    """The file, behind a thread of its own; every method but `close` returns at once.

    Args:
        report: called on the store's thread with what is wrong with the file; at most once.
        changed: called with the newest rows, oldest first, on the store's thread, after each write
            and after `refresh`.
        path: the file; it and its folder are created with the first row.

    Attributes:
        problem: what is wrong with the file, "" if nothing.
    """

    def __init__(
        self,
        report: Callable[[LcursorError], None],
        changed: Callable[[Rows], None] = lambda rows: None,
        path: Path | None = None,
    ) -> None:
        self.path = path or default_path()
        self.problem = ""
        self._report, self._changed = report, changed
        self._executor = SerialExecutor(
            "lcursor-outcomes", lambda error, _: self._give_up(repr(error))
        )
        self._waiting: deque[Row] = deque(maxlen=WAITING_ROWS)
        self._is_closed = False
        self._is_useless = False
        self._unpruned = PRUNE_EVERY
        self._base: sqlite3.Connection | None = None

    def add(self, row: Row) -> None:
        """Write a row, in the background."""
        self._waiting.append(row)
        self._do(lambda: None)

    def read(self, then: Callable[[Rows], None]) -> None:
        """Call `then` with all rows, oldest first, on the store's thread; none from a bad file."""
        self._do(lambda: then(self._rows(KEEP_ROWS)))

    def refresh(self) -> None:
        """Call `changed` with the newest rows."""
        self._do(lambda: self._changed(self._rows(NEWEST_ROWS)))

    def reset(self, then: Callable[[Rows], None]) -> None:
        """Delete everything, also what other Neovims wrote; call `then` with what is left."""
        self._do(lambda: self._delete_all(then))

    def close(self, timeout_s: float = 0.5) -> None:
        """Write the rows that wait, and end the thread."""
        if self._executor.is_started:
            self._is_closed = True
            self._executor.submit(self._write)
            self._executor.submit(self._close)
            self._executor.close(timeout_s)

    def _do(self, work: Callable[[], None]) -> None:
        """Write the rows that wait, then call `work`, on the store's thread."""
        if not self._is_closed:
            self._executor.submit(self._write)
            self._executor.submit(work)

    def _write(self) -> None:
        if self._flush() and not self._is_closed:
            self._changed(self._rows(NEWEST_ROWS))

    def _flush(self) -> bool:
        """Write the rows that wait; return whether the file has changed."""
        rows = [self._waiting.popleft() for _ in range(len(self._waiting))]
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
        if not self._is_useless:  # locked: these rows are the first of the next write
            self._waiting.extendleft(reversed(rows))
        return False

    def _rows(self, limit: int) -> Rows:
        if not self.path.exists():
            return []
        found = self._with(lambda base: [Row(*one) for one in base.execute(NEWEST, (limit,))])
        return (found or [])[::-1]

    def _delete_all(self, then: Callable[[Rows], None]) -> None:
        def empty(base: sqlite3.Connection) -> bool:
            base.execute("DELETE FROM outcome")
            return True

        if not self._with(empty) and self._is_useless:  # then no other process can use it
            for end in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    self.path.with_name(self.path.name + end).unlink()
            self._is_useless, self.problem = False, ""
        rows = self._rows(KEEP_ROWS)
        self._changed(rows)
        then(rows)

    def _with(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Call `work` in one transaction; return None if the file cannot be used."""
        import sqlite3  # 5 ms that the start of the host need not pay

        if self._is_useless:
            return None
        try:
            if not self.path.exists():
                self._close()  # it was deleted: create it again
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
        self._report(
            JournalFailed(
                f"{self.problem}; what you accept is not remembered",
                "Run :LCursor stats reset, or see who may write there",
            )
        )

    def _close(self) -> None:
        if self._base:
            self._base.close()
            self._base = None
