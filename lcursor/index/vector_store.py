"""Store the vector of each text on disk, for all projects, clones and worktrees of the user.

One SQLite file per embedder, keyed by the digest of the text, so that nothing is embedded again
after a branch switch, a move or a second clone. Several processes share it. It is optional: if the
file is unusable, `remarks` reports it once. Any thread.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lcursor.errors import IndexFailed
from lcursor.index import database
from lcursor.storage import folders

NAME = "the cache of vectors"
VERSION = 1
TABLES = """
CREATE TABLE IF NOT EXISTS vectors (
    digest BLOB PRIMARY KEY, day INTEGER NOT NULL, vector BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS vectors_by_day ON vectors (day)
"""
"""`day` is the day of creation, counted from 1970."""

MAX_BYTES = 1 << 30
DROPPED_SHARE = 0.25
"""Share of the vectors to delete when the file is too large."""
CHECK_EVERY = 1_000
"""Number of vectors written between two checks of the size."""
BATCH = 500
BUSY_S = 3.0


class VectorStore:
    """The vectors of one embedder.

    Args:
        max_bytes: size above which the oldest vectors are deleted.
    """

    def __init__(self, folder: Path | None, embedder: str, *, max_bytes: int = MAX_BYTES) -> None:
        name = re.sub(r"[^\w.-]", "_", embedder)
        self.path = (folder or folders.vectors_home()) / f"{name}.sqlite3"
        self._max_bytes = max_bytes
        self._database = database.Database(self.path, TABLES, VERSION, NAME)
        self._connection = database.DatabaseConnection(self._database, busy_s=BUSY_S)
        self._failures: list[str] = []
        self._unchecked = CHECK_EVERY

    @property
    def remarks(self) -> list[str]:
        """Problems, each once."""
        return [*self._database.remarks, *self._failures]

    def get(self, digests: Iterable[bytes]) -> dict[bytes, NDArray[np.float16]]:
        """Return the known vectors of some texts."""
        wanted = list(dict.fromkeys(digests))
        found: dict[bytes, NDArray[np.float16]] = {}
        for at in range(0, len(wanted), BATCH):
            part = wanted[at : at + BATCH]
            marks = ",".join("?" * len(part))
            statement = f"SELECT digest, vector FROM vectors WHERE digest IN ({marks})"  # noqa: S608
            with self._reporting(), self._connection.open() as base:
                for digest, data in base.execute(statement, part).fetchall():
                    if isinstance(data, bytes) and len(data) % 2 == 0:
                        found[digest] = np.frombuffer(data, np.float16)
        return found

    def put(self, pairs: Iterable[tuple[bytes, NDArray[np.float16]]]) -> None:
        """Store vectors by the digests of their texts; known ones are unchanged."""
        today = int(time.time() // 86_400)
        rows = [
            (digest, today, np.ascontiguousarray(one, np.float16).tobytes())
            for digest, one in pairs
        ]
        if not rows:
            return
        with self._reporting(), self._connection.transaction() as base:
            base.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)
            self._unchecked += len(rows)
            if self._unchecked >= CHECK_EVERY:
                self._unchecked = 0
                self._drop_oldest(base)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

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

    @contextlib.contextmanager
    def _reporting(self) -> Iterator[None]:
        """Report errors of this block, which uses the file, instead of raising them."""
        known = len(self._database.remarks)
        try:
            yield
        except IndexFailed as error:
            is_reported = len(self._database.remarks) > known or error.message in self._failures
            # A file that another process locks for long is tried again with the next call.
            if not is_reported and not database.is_busy(error.__cause__):
                self._failures.append(error.message)
