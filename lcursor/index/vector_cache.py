"""What each text became as a vector, for all projects, clones and worktrees of the user.

Owns one SQLite file an embedder, keyed by the digest of the text: another branch, a moved file or
a second clone embeds nothing again. Several processes share it. It is a cache: when it cannot be
used, everything goes on without it, and `remarks` says so once. Any thread may ask.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lcursor import folders
from lcursor.index import schema

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = 1
TABLE = """
CREATE TABLE IF NOT EXISTS vectors (
    digest BLOB PRIMARY KEY, day INTEGER NOT NULL, vector BLOB NOT NULL
)
"""
INDEX = "CREATE INDEX IF NOT EXISTS vectors_by_day ON vectors (day)"
"""`day` is that of the last use, since 1970."""

MOST_BYTES = 1 << 30
DROP = 0.25
"""Share of the vectors that goes at once when there are too many."""
LOOK_EVERY = 1_000
"""Vectors put between two looks at the size."""
AT_ONCE = 500
BUSY_MS = 3_000


def default_folder() -> Path:
    """Return `$XDG_CACHE_HOME/lcursor/vectors`, with the usual default for the first."""
    return folders.cache_home() / "vectors"


class VectorCache:
    """The vectors that one embedder ever made.

    Args:
        folder: made when missing.
        embedder: its name; other names have other files.
        most_bytes: when the file holds more, what was not used for longest goes.
    """

    def __init__(self, folder: Path | None, embedder: str, *, most_bytes: int = MOST_BYTES) -> None:
        name = re.sub(r"[^\w.-]", "_", embedder)
        self.path = (folder or default_folder()) / f"{name}.sqlite3"
        self.remarks: list[str] = []
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._base: sqlite3.Connection | None = None
        self._is_useless = False
        self._is_full = False
        self._unlooked = LOOK_EVERY

    def get(self, digests: Iterable[bytes]) -> dict[bytes, NDArray[np.float16]]:
        """Return the vectors of the texts that are known."""
        import numpy as np

        wanted = list(dict.fromkeys(digests))
        found: dict[bytes, NDArray[np.float16]] = {}
        today = int(time.time() // 86_400)
        old: list[tuple[int, bytes]] = []
        with self._open() as base:
            if base is None:
                return {}
            for at in range(0, len(wanted), AT_ONCE):
                part = wanted[at : at + AT_ONCE]
                marks = ",".join("?" * len(part))
                for digest, day, data in base.execute(
                    f"SELECT digest, day, vector FROM vectors WHERE digest IN ({marks})",  # noqa: S608
                    part,
                ):
                    if len(data) % 2 == 0 and data:
                        found[digest] = np.frombuffer(data, np.float16)
                        if day != today:
                            old.append((today, digest))
            if old:
                with schema.transaction(base):
                    base.executemany("UPDATE vectors SET day = ? WHERE digest = ?", old)
        # A broken disk makes numbers of its own; one that is none would spoil every search.
        return {digest: one for digest, one in found.items() if np.isfinite(one).all()}

    def put(self, pairs: Iterable[tuple[bytes, NDArray[np.float16]]]) -> None:
        """Remember vectors; those that are known stay as they are."""
        import numpy as np

        today = int(time.time() // 86_400)
        rows = [
            (digest, today, np.ascontiguousarray(one, np.float16).tobytes())
            for digest, one in pairs
        ]
        if not rows or self._is_full:
            return
        with self._open() as base:
            if base is None:
                return
            with schema.transaction(base):
                base.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", rows)
                self._unlooked += len(rows)
                if self._unlooked >= LOOK_EVERY:
                    self._unlooked = 0
                    self._drop(base)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._is_useless = True
            self._close()

    def _drop(self, base: sqlite3.Connection) -> None:
        """Forget what was not used for longest, when there is too much."""
        sizes = [
            base.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        ]
        if (sizes[0] - sizes[1]) * sizes[2] <= self._most_bytes:
            return
        (count,) = base.execute("SELECT count(*) FROM vectors").fetchone()
        base.execute(
            "DELETE FROM vectors WHERE rowid IN "
            "(SELECT rowid FROM vectors ORDER BY day, rowid LIMIT ?)",
            (int(count * DROP) + 1,),
        )

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection | None]:
        """Give the connection, or None where there is none; trouble becomes a remark."""
        with self._lock:
            if self._is_useless:
                yield None
                return
            try:
                if self._base and not self.path.exists():
                    self._close()  # someone emptied the cache
                self._base = self._base or self._begin()
            except (sqlite3.Error, OSError) as error:
                if "locked" not in str(error):
                    self._give_up(error)
                yield None
                return
            try:
                yield self._base
            except sqlite3.Error as error:
                if "locked" not in str(error):
                    self._give_up(error)

    def _begin(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            if not schema.is_damage(error):
                raise
            self.remarks.append(f"the cache of vectors was damaged ({error}) and is begun anew")
            schema.remove(self.path)
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        base = schema.connect(self.path)
        try:
            base.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            (version,) = base.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise sqlite3.DatabaseError(f"it is of version {version}, not {VERSION}")
            if version == 0:
                with schema.transaction(base):
                    base.execute(TABLE)
                    base.execute(INDEX)
                    base.execute(f"PRAGMA user_version = {VERSION}")
            base.execute("SELECT digest FROM vectors LIMIT 1").fetchone()
        except sqlite3.Error:
            base.close()
            raise
        return base

    def _give_up(self, error: Exception) -> None:
        self._close()
        if "full" in str(error) or "I/O" in str(error):
            if not self._is_full:
                self._is_full = True
                self.remarks.append(
                    f"there is no room for more vectors ({self.path}: {error}); all else goes on"
                )
            return
        if isinstance(error, sqlite3.Error) and schema.is_damage(error):
            self.remarks.append(f"the cache of vectors was damaged ({error}) and is begun anew")
            with contextlib.suppress(OSError):
                schema.remove(self.path)
                return
        self._is_useless = True
        self.remarks.append(
            f"the cache of vectors cannot be used ({self.path}: {error}); all else goes on"
        )

    def _close(self) -> None:
        if self._base:
            with contextlib.suppress(sqlite3.Error):
                self._base.close()
            self._base = None
