"""Write the index of a project: files, chunks, symbols and terms in one SQLite file.

A file's rows change in one transaction, so that readers see a file as it was or as it is. There is
one writer for a project, the worker. Any thread may write; they wait for each other.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from lcursor.index import database, words
from lcursor.index.database import Database, pack, plain, unpack
from lcursor.index.postings import Postings, term_vector
from lcursor.index.reader import Reader
from lcursor.index.records import Chunk, FileState, Parsed, Symbol

Entry = tuple[str, FileState, Parsed]
TextOf = Callable[[str, Chunk], str]
"""Returns the terms of a chunk in a file, separated by blanks."""

BATCH_FILES = 64
"""Files that `put_many` writes in one transaction."""
KEPT_REMOVED = 50_000
"""Removed chunks that are remembered for `Postings`, which else reads everything again."""


class Store:
    """A project's index, open for writing.

    Args:
        folder: of the index; made when missing.
        text_of: returns the terms of a chunk, separated by blanks.
        revision: what the rows are made by; an index of another revision is deleted.

    Raises:
        IndexFailed: the folder cannot be used; from every method too. When the database turns out
            to be damaged it is empty afterwards: `identity` has changed, and every file must be put
            again.
        IndexFull: the disk is full; from every method that writes. The index stays as it was.
    """

    def __init__(
        self, folder: Path, text_of: TextOf | None = None, revision: str | None = None
    ) -> None:
        self.folder, self.path = folder, folder / database.FILE
        self.between: Callable[[], object] = lambda: None
        """Called between two files of a transaction: the caller may let others go first."""
        self.remarks: list[str] = []
        """Damage that was repaired, in sentences for the user."""
        self.database = Database(self.path)
        self._text_of = text_of or words.index_text
        self._revision = database.REVISION if revision is None else revision
        self._lock = threading.RLock()
        self._is_closed = False
        self._base: sqlite3.Connection | None = None
        self._postings = Postings()
        try:
            self._base = self._connect()
        except (sqlite3.Error, OSError) as error:
            if not database.is_damage(error):
                raise database.failure(error, self.path) from error
            self._rebuild(error)

    # Reading

    @property
    def generation(self) -> int:
        """A number that grows with each change."""
        return int(self.meta("generation"))

    @property
    def identity(self) -> str:
        """A text that is another one once the database was rebuilt."""
        return self.meta("identity")

    def reader(self) -> Reader:
        """Return a reader with a connection of its own."""
        return Reader(self.database, self._postings)

    def files(self) -> dict[str, FileState]:
        """Return all files and their states when they were read."""
        with self._open() as base:
            found = base.execute("SELECT path, size_bytes, mtime_ns, digest FROM files").fetchall()
        return {unpack(row[0]): FileState(*row[1:]) for row in found}

    def meta(self, key: str) -> str:
        """Return the value of a key, or ""."""
        with self._open() as base:
            row = base.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else ""

    # Writing

    def put(self, path: str, state: FileState, parsed: Parsed) -> None:
        """Replace a file; chunks that did not change keep their ids."""
        self.put_many([(path, state, parsed)])

    def put_many(self, entries: Iterable[Entry]) -> None:
        """Replace files, many in one transaction.

        Each batch is written before the next is asked for, so a slow generator blocks nobody.
        """
        waiting = iter(entries)
        while batch := list(islice(waiting, BATCH_FILES)):
            with self._write() as base:
                for entry in batch:
                    _put(base, entry, self._text_of)
                    self.between()

    def touch(self, states: Iterable[tuple[str, FileState]]) -> None:
        """Update the states of files whose content is the same."""
        with self._write() as base:
            base.executemany(
                "UPDATE files SET size_bytes = ?, mtime_ns = ?, digest = ? WHERE path = ?",
                [
                    (state.size_bytes, state.mtime_ns, state.digest, pack(path))
                    for path, state in states
                ],
            )

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files; unknown ones are ignored."""
        waiting = iter(paths)
        while batch := list(islice(waiting, BATCH_FILES)):
            with self._write() as base:
                for path in batch:
                    _remove(base, path)

    def tidy(self) -> None:
        """Forget chunks that were removed long ago, and shorten the log; for idle time."""
        with self._open() as base:
            base.execute(
                "DELETE FROM removed WHERE seq < (SELECT max(seq) FROM removed) - ?",
                (KEPT_REMOVED,),
            )
            base.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Write everything and close the file."""
        with self._lock:
            self._is_closed = True
            self._disconnect()

    # The connection

    def _connect(self) -> sqlite3.Connection:
        """Open the database; one of another revision is deleted."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for _ in range(2):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            base = database.connect(self.path)
            try:
                if database.prepare(base, self._revision):
                    return base
            except sqlite3.Error:
                base.close()
                raise
            base.close()
            database.remove(self.path)
        raise OSError("it cannot be created")

    def _rebuild(self, error: Exception) -> None:
        """Delete the damaged database and open an empty one."""
        with self.database.replacing:
            self._disconnect()
            try:
                database.remove(self.path)
                self._base = self._connect()
            except (sqlite3.Error, OSError) as again:
                raise database.failure(again, self.path) from again
            self.remarks.append(
                f"the index of the project was damaged and is being rebuilt ({error})"
            )
            self.database.damage = None
            self.database.epoch += 1

    def _disconnect(self) -> None:
        if self._base:
            with contextlib.suppress(sqlite3.Error):
                self._base.close()
            self._base = None

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Give the connection; turn errors into ours, and rebuild what is damaged."""
        with self._lock:
            try:
                if self._is_closed:
                    raise sqlite3.ProgrammingError("it is closed")
                if self.database.damage:
                    raise self.database.damage
                if self._base is None:  # rebuilding failed then
                    self._base = self._connect()
                yield self._base
            except (sqlite3.Error, OSError) as error:
                if database.is_damage(error):
                    self._rebuild(error)
                    raise database.rebuilding() from error
                raise database.failure(error, self.path) from error

    @contextlib.contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Give the connection in a transaction; the generation grows with it."""
        with self._open() as base, database.transaction(base):
            yield base
            base.execute(
                "UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'generation'"
            )


# Rows, on a connection in a transaction


def _put(base: sqlite3.Connection, entry: Entry, text_of: TextOf) -> None:
    """Replace a file's rows; a chunk with the same digest keeps its id."""
    path, state, parsed = entry
    row = base.execute("SELECT id FROM files WHERE path = ?", (pack(path),)).fetchone()
    seen = (parsed.language, state.size_bytes, state.mtime_ns, state.digest)
    old: dict[bytes, list[int]] = {}
    if row:
        (number,) = row
        base.execute(
            "UPDATE files SET language = ?, size_bytes = ?, mtime_ns = ?, digest = ? WHERE id = ?",
            (*seen, number),
        )
        for chunk, digest in base.execute(
            "SELECT id, digest FROM chunks WHERE file = ? ORDER BY first_row DESC, id DESC",
            (number,),
        ):
            old.setdefault(digest, []).append(chunk)
    else:
        number = base.execute(
            "INSERT INTO files (language, size_bytes, mtime_ns, digest, path) "
            "VALUES (?, ?, ?, ?, ?)",
            (*seen, pack(path)),
        ).lastrowid
    kept, new = [], []
    for chunk in parsed.chunks:
        same = old.get(chunk.digest)
        if same:
            kept.append((chunk.first_row, chunk.end_row, chunk.kind, same.pop()))
        else:
            new.append(chunk)
    _remove_chunks(base, [chunk for chunks in old.values() for chunk in chunks])
    base.executemany("UPDATE chunks SET first_row = ?, end_row = ?, kind = ? WHERE id = ?", kept)
    for chunk in new:
        text = plain(text_of(path, chunk))
        name = base.execute(
            "INSERT INTO chunks (file, first_row, end_row, kind, digest, scope) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                number, chunk.first_row, chunk.end_row, chunk.kind, chunk.digest,
                pack(chunk.scope),
            ),
        ).lastrowid  # fmt: skip
        base.execute("INSERT INTO texts VALUES (?, ?)", (name, pack(chunk.text)))
        base.execute("INSERT INTO terms VALUES (?, ?)", (name, term_vector(text)))
    _put_symbols(base, number, parsed.symbols)


def _put_symbols(base: sqlite3.Connection, file: int, symbols: Sequence[Symbol]) -> None:
    """Replace a file's symbols; unchanged ones stay, since most are."""
    wanted = Counter(
        (
            plain(one.name),
            one.kind,
            one.first_row,
            one.end_row,
            pack(one.scope),
        )
        for one in symbols
    )
    gone = []
    for number, *row in base.execute(
        "SELECT rowid, name, kind, first_row, end_row, scope FROM symbols WHERE file = ?", (file,)
    ):
        if wanted[tuple(row)] > 0:
            wanted[tuple(row)] -= 1
        else:
            gone.append((number,))
    base.executemany("DELETE FROM symbols WHERE rowid = ?", gone)
    base.executemany(
        "INSERT INTO symbols VALUES (?, ?, ?, ?, ?, ?)",
        [(file, *row) for row in wanted.elements()],
    )


def _remove(base: sqlite3.Connection, path: str) -> None:
    """Delete a file's rows."""
    row = base.execute("SELECT id FROM files WHERE path = ?", (pack(path),)).fetchone()
    if not row:
        return
    chunks = [one for (one,) in base.execute("SELECT id FROM chunks WHERE file = ?", row)]
    _remove_chunks(base, chunks)
    base.execute("DELETE FROM symbols WHERE file = ?", row)
    base.execute("DELETE FROM files WHERE id = ?", row)


def _remove_chunks(base: sqlite3.Connection, chunks: Sequence[int]) -> None:
    ids = [(number,) for number in chunks]
    for table in ("chunks", "texts", "terms"):
        base.executemany(f"DELETE FROM {table} WHERE id = ?", ids)  # noqa: S608
    base.executemany("INSERT INTO removed (chunk) VALUES (?)", ids)
