"""Keep the vector of each text on disk, for all projects, clones and worktrees of the user.

One SQLite file for each embedder, keyed by the digest of the text: after a switch of branches, a
move or a second clone nothing is embedded again. Several processes share it. It is a cache: a
damaged file is deleted, and without a usable one everything else works. `remarks` says so once. Any
thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lcursor.index import database
from lcursor.storage import folders

T = TypeVar("T")

VERSION = 1
TABLES = """
CREATE TABLE IF NOT EXISTS vectors (
    digest BLOB PRIMARY KEY, day INTEGER NOT NULL, vector BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS vectors_by_day ON vectors (day);
"""
"""`day` is the day of the last use, counted from 1970."""

MAX_BYTES = 1 << 30
DROPPED_SHARE = 0.25
"""Share of the vectors that is deleted when the file is too large."""
CHECK_EVERY = 1_000
"""Vectors written between two looks at the size."""
BATCH = 500
BUSY_MS = 3_000


class VectorStore:
    """All vectors that one embedder made.

    Args:
        folder: made when missing; the user's by default.
        embedder: its name; each has a file of its own.
        max_bytes: size from which on the least recently used vectors are deleted.
    """

    def __init__(self, folder: Path | None, embedder: str, *, max_bytes: int = MAX_BYTES) -> None:
        name = re.sub(r"[^\w.-]", "_", embedder)
        self.path = (folder or folders.vectors_home()) / f"{name}.sqlite3"
        self.remarks: list[str] = []
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._base: sqlite3.Connection | None = None
        self._is_closed = False
        self._is_full = False
        self._unchecked = CHECK_EVERY

    def get(self, digests: Iterable[bytes]) -> dict[bytes, NDArray[np.float16]]:
        """Return the known vectors of some texts."""
        wanted = list(dict.fromkeys(digests))
        found: dict[bytes, NDArray[np.float16]] = {}
        nothing: dict[bytes, NDArray[np.float16]] = {}
        for at in range(0, len(wanted), BATCH):
            part = wanted[at : at + BATCH]
            found.update(self._run(partial(self._get, part), nothing))
        return found

    def put(self, pairs: Iterable[tuple[bytes, NDArray[np.float16]]]) -> None:
        """Keep vectors by the digests of their texts; known ones stay as they are."""
        today = _today()
        rows = [
            (digest, today, np.ascontiguousarray(one, np.float16).tobytes())
            for digest, one in pairs
        ]
        if rows and not self._is_full:
            self._run(partial(self._put, rows), None)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._is_closed = True
            self._disconnect()

    def _get(
        self, digests: list[bytes], base: sqlite3.Connection
    ) -> dict[bytes, NDArray[np.float16]]:
        marks = ",".join("?" * len(digests))
        rows = base.execute(
            f"SELECT digest, day, vector FROM vectors WHERE digest IN ({marks})",  # noqa: S608
            digests,
        ).fetchall()
        today = _today()
        old = [(today, digest) for digest, day, _ in rows if day != today]
        if old and not self._is_full:
            with database.transaction(base):
                base.executemany("UPDATE vectors SET day = ? WHERE digest = ?", old)
        return {
            digest: np.frombuffer(data, np.float16)
            for digest, _, data in rows
            if len(data) % 2 == 0
        }

    def _put(self, rows: list[tuple[bytes, int, bytes]], base: sqlite3.Connection) -> None:
        with database.transaction(base):
            base.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)
            self._unchecked += len(rows)
            if self._unchecked >= CHECK_EVERY:
                self._unchecked = 0
                self._drop_oldest(base)

    def _drop_oldest(self, base: sqlite3.Connection) -> None:
        pages, free, size = (
            base.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        if (pages - free) * size > self._max_bytes:
            (count,) = base.execute("SELECT count(*) FROM vectors").fetchone()
            base.execute(
                "DELETE FROM vectors WHERE rowid IN "
                "(SELECT rowid FROM vectors ORDER BY day, rowid LIMIT ?)",
                (int(count * DROPPED_SHARE) + 1,),
            )

    # The connection

    def _run(self, action: Callable[[sqlite3.Connection], T], default: T) -> T:
        """Return what an action on the database returns, or a default where that failed."""
        with self._lock:
            if self._is_closed:
                return default
            try:
                if self._base and not self.path.exists():
                    self._disconnect()  # the user deleted the cache
                self._base = self._base or self._connect()
                return action(self._base)
            except (sqlite3.Error, OSError) as error:
                self._on_error(error)
                return default

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        base = database.connect(self.path)
        try:
            base.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            (version,) = base.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise sqlite3.DatabaseError(f"it is of version {version}, not {VERSION}")
            if version == 0:
                base.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
        except sqlite3.Error:
            base.close()
            raise
        return base

    def _on_error(self, error: Exception) -> None:
        """Rebuild a damaged file; stop using one that cannot be used."""
        if "locked" in str(error):
            return  # by another process for long; the next call tries again
        self._disconnect()
        if isinstance(error, sqlite3.Error) and database.is_damage(error):
            with contextlib.suppress(OSError):
                database.remove(self.path)
                self.remarks.append(f"the cache of vectors was damaged ({error}) and is rebuilt")
                return
        if "full" in str(error) or "I/O" in str(error):
            if not self._is_full:
                self._is_full = True  # what it has is still returned
                self.remarks.append(f"no disk space for more vectors ({self.path}: {error})")
            return
        self._is_closed = True
        self.remarks.append(f"the cache of vectors cannot be used ({self.path}: {error})")

    def _disconnect(self) -> None:
        if self._base:
            with contextlib.suppress(sqlite3.Error):
                self._base.close()
            self._base = None


def _today() -> int:
    return int(time.time() // 86_400)
