"""SQLite files that serve as caches: a damaged file is deleted, and its owner fills it again.

Used for the index of a project and for the vectors of all projects. Only this module distinguishes
damage from other errors and replaces files; others use a `DatabaseConnection`, which detects it.

Texts and paths are stored as bytes (see `pack`), since a path need not be UTF-8.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lcursor.errors import IndexFailed, IndexFull

Row = Sequence[Any]
PAGES_KIB = 16_384
"""Page cache of a connection."""
WAL_PAGES = 4_000
WAL_BYTES = 64 << 20
BUSY_S = 10.0

ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises; the latter if the message about damage has parts of the damaged file."""
NO_DAMAGE = (
    "locked", "busy", "locking protocol", "full", "I/O", "unable to open", "readonly",
)  # fmt: skip
"""Words in errors caused by the disk, permissions or another process."""


class Database:
    """A database file with the shared state of its connections. Any thread.

    Args:
        tables: SQL that creates the tables in an empty file.
        version: version of the content; a file with another version is replaced by an empty one.
        on_rebuild: called after a damaged file was replaced, on the thread that found the damage.
    """

    def __init__(
        self,
        path: Path,
        tables: str,
        version: int,
        name: str,
        on_rebuild: Callable[[], None] = lambda: None,
    ) -> None:
        self.path, self.name = path, name
        self.on_rebuild = on_rebuild
        self.epoch = 0
        """Incremented when the file is replaced."""
        self.remarks: list[str] = []
        """Messages for the user about repaired damage."""
        self._tables, self._version = tables, version
        self._lock = threading.RLock()
        """Held while the file is replaced and while a connection opens: SQLite opens the file and
        its -wal and -shm one after another, and all three must belong together."""

    def connect(self, *, is_reader: bool, busy_s: float) -> tuple[sqlite3.Connection, int]:
        """Return a new connection and the epoch of its file.

        A writer replaces a damaged file first, since it can fill the new one.
        """
        with self._lock:
            try:
                return self._connect(is_reader, busy_s), self.epoch
            except ERRORS as error:
                if is_reader or not is_damage(error):
                    raise
                self.rebuild(self.epoch, error)
                return self._connect(is_reader, busy_s), self.epoch

    def rebuild(self, epoch: int, error: Exception) -> None:
        """Replace the damaged file of an epoch by an empty one, unless already done."""
        with self._lock:
            if epoch != self.epoch:
                return
            self._remove()
            self.remarks.append(f"{self.name} was damaged and is being rebuilt ({error})")
            self._connect(False, BUSY_S).close()
        self.on_rebuild()

    def failure(self, error: Exception) -> IndexFailed:
        """Return an error for the user."""
        text, folder = str(error), self.path.parent
        if is_damage(error):  # details are in the remarks
            return IndexFailed(
                f"{self.name} was damaged and is being rebuilt", "Try again in a moment"
            )
        if "full" in text or ("I/O" in text and _is_full(folder)):
            return IndexFull(
                f"{self.name} does not fit on the disk ({self.path})",
                f"Free disk space: df -h {folder}; indexed files stay searchable",
            )
        if is_busy(error):
            return IndexFailed(
                f"{self.name} is locked by another process ({self.path})",
                f"Stop it, or wait: fuser {self.path}",
            )
        return IndexFailed(
            f"{self.name} cannot be used ({self.path}: {text})",
            f"Check the folder: ls -l {folder}; df -h {folder}",
        )

    def _connect(self, is_reader: bool, busy_s: float) -> sqlite3.Connection:
        if not is_reader:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        uri = f"{self.path.absolute().as_uri()}?mode={'ro' if is_reader else 'rwc'}"
        base = sqlite3.connect(
            uri, uri=True, timeout=busy_s, isolation_level=None, check_same_thread=False
        )
        try:
            base.execute(f"PRAGMA cache_size = -{PAGES_KIB}")
            base.execute("PRAGMA temp_store = MEMORY")
            if is_reader or self._prepare(base):
                return base
        except ERRORS:
            base.close()
            raise
        base.close()
        self._remove()
        return self._connect(is_reader, busy_s)

    def _prepare(self, base: sqlite3.Connection) -> bool:
        """Set up a connection for writing; return False if the file has another version."""
        base.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
            f"PRAGMA wal_autocheckpoint = {WAL_PAGES}; PRAGMA journal_size_limit = {WAL_BYTES};"
            "PRAGMA secure_delete = OFF"  # Debian's default writes every page twice
        )
        version, tables = base.execute(
            "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
        ).fetchone()
        if not version and not tables:
            base.executescript(
                f"BEGIN IMMEDIATE; {self._tables}; PRAGMA user_version = {self._version}; COMMIT;"
            )
            return True
        return bool(version == self._version)

    def _remove(self) -> None:
        """Delete the file with its -wal and -shm.

        Connections to it stay usable, because SQLite detects that the name has a new file.
        """
        for end in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + end).unlink(missing_ok=True)
        self.epoch += 1


class DatabaseConnection:
    """A connection to the current file of a database, opened on first use.

    Any thread; a lock serializes the users of a connection.

    Args:
        is_reader: read-only; never waits for a writer.
        busy_s: time limit for the lock of another process.
    """

    def __init__(
        self, database: Database, *, is_reader: bool = False, busy_s: float = BUSY_S
    ) -> None:
        self._database, self._is_reader, self._busy_s = database, is_reader, busy_s
        self._lock = threading.RLock()
        self._base: sqlite3.Connection | None = None
        self._epoch = -1
        self._is_closed = False

    @contextlib.contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """Yield the SQLite connection.

        Raises:
            IndexFailed: it cannot be used, or was damaged and is now empty.
            IndexFull: the disk is full; the old content stays.
        """
        with self._lock:
            try:
                if self._is_closed:
                    raise sqlite3.ProgrammingError("it is closed")
                if self._base is None or self._epoch != self._database.epoch:
                    self.disconnect()
                    self._epoch = self._database.epoch
                    self._base, self._epoch = self._database.connect(
                        is_reader=self._is_reader, busy_s=self._busy_s
                    )
                yield self._base
            except (*ERRORS, OSError) as error:
                failure = self._database.failure(error)
                if not isinstance(failure, IndexFull):
                    self.disconnect()
                if is_damage(error):
                    try:
                        self._database.rebuild(self._epoch, error)
                    except (*ERRORS, OSError) as again:
                        failure = self._database.failure(again)
                raise failure from error

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the SQLite connection in a transaction."""
        with self.open() as base, base:
            base.execute("BEGIN IMMEDIATE")
            yield base

    def disconnect(self) -> None:
        """Reconnect on the next use."""
        if self._base:
            with contextlib.suppress(sqlite3.Error):
                self._base.close()
            self._base = None

    def close(self) -> None:
        """Write everything and close the file."""
        with self._lock:
            self._is_closed = True
            self.disconnect()


def is_damage(error: Exception) -> bool:
    """Return whether an error means that the database must be rebuilt."""
    return isinstance(error, UnicodeDecodeError) or (
        isinstance(error, sqlite3.DatabaseError)
        and not isinstance(error, sqlite3.ProgrammingError)
        and not any(word in str(error) for word in NO_DAMAGE)
    )


def typed(rows: Sequence[Row], *types: type) -> Sequence[Row]:
    """Check the types of the values of rows: SQLite does not detect each damaged value.

    Raises:
        sqlite3.DatabaseError: one has another type.
    """
    if any(tuple(map(type, row)) != types for row in rows):
        raise sqlite3.DatabaseError("a value has another type")
    return rows


def is_busy(error: BaseException | None) -> bool:
    """Return whether an error means that another process locks the database."""
    return any(word in str(error) for word in ("locked", "busy", "locking protocol"))


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < 1 << 20
    except OSError:
        return False


def pack(text: str) -> bytes:
    """Return any string as bytes, surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def unpack(data: bytes) -> str:
    """Undo `pack`; other bytes become replacement characters."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def plain(text: str) -> str:
    """Return a string without surrogates, which SQLite does not accept."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
