"""Write the index of a project: files, chunks, symbols and terms in one SQLite file.

A file's rows change in one transaction, so that readers see either the old or the new file. A
project has one writer, the worker. The terms of each chunk are a row of `terms`; `postings` loads
and searches them in memory.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from lcursor.index import words
from lcursor.index.database import Database, pack, plain
from lcursor.index.postings import Postings, term_vector
from lcursor.index.reader import IndexReader
from lcursor.index.records import FileState, Parsed

Entry = tuple[str, FileState, Parsed]

FILE = "index.sqlite3"
NAME = "the index of the project"
BATCH_FILES = 64
"""Files that `put_many` writes in one transaction."""
MAX_REMOVED = 50_000
"""Removed chunks recorded for `Postings`, which otherwise must reload everything."""
TABLES = """
CREATE TABLE revision (identity TEXT NOT NULL, generation INTEGER NOT NULL);
INSERT INTO revision VALUES (lower(hex(randomblob(16))), 0);
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, language TEXT NOT NULL,
    size_bytes INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL, first_row INTEGER NOT NULL,
    end_row INTEGER NOT NULL, kind TEXT NOT NULL, digest BLOB NOT NULL, scope BLOB NOT NULL
);
CREATE INDEX chunks_of ON chunks (file, first_row);
CREATE TABLE texts (id INTEGER PRIMARY KEY, text BLOB NOT NULL);
CREATE TABLE terms (id INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE removed (seq INTEGER PRIMARY KEY AUTOINCREMENT, chunk INTEGER NOT NULL);
CREATE TABLE symbols (
    file INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, first_row INTEGER NOT NULL,
    end_row INTEGER NOT NULL, scope BLOB NOT NULL
);
CREATE INDEX symbols_named ON symbols (name COLLATE NOCASE);
CREATE INDEX symbols_of ON symbols (file, first_row, kind)
"""
SOURCES = (
    "index/store.py", "index/postings.py", "index/words.py", "index/chunk.py",
    "code/languages.py", "code/grammars.py", "code/structure.py",
    "code/outline.py", "code/line_definitions.py", "code/queries/*.scm", "project/filetypes.py",
    "project/secrets.py",
)  # fmt: skip
"""Source files that determine the content of an index; it is rebuilt when one changes."""


def source_version() -> int:
    """Return the version of the content, a digest of the source files."""
    package, crc = Path(__file__).parents[1], 0
    for path in sorted(path for pattern in SOURCES for path in package.glob(pattern)):
        with contextlib.suppress(OSError):
            crc = zlib.crc32(path.read_bytes(), crc)
    return crc >> 1 or 1


VERSION = source_version()
"""Version of the running code: a worker may outlive an update of the files."""


class Store(IndexReader):
    """A project's index, open for writing. Any thread.

    Args:
        version: version of the content; an index with another version is deleted.

    Raises:
        IndexFailed: the folder cannot be used; see `IndexReader` for the other methods.
        IndexFull: the disk is full; from every method that writes. The index is unchanged.
    """

    def __init__(self, folder: Path, version: int = VERSION) -> None:
        database = Database(folder / FILE, TABLES, version, NAME)
        super().__init__(database, Postings(), is_reader=False)
        self.folder, self.path = folder, database.path
        self.remarks = self.database.remarks
        with self._open():
            pass

    def reader(self) -> IndexReader:
        """Return a reader with its own connection."""
        return IndexReader(self.database, self._postings)

    def put(self, path: str, state: FileState, parsed: Parsed) -> None:
        """Replace a file."""
        self.put_many([(path, state, parsed)])

    def put_many(
        self, entries: Iterable[Entry], between: Callable[[], object] = lambda: None
    ) -> None:
        """Replace files, many in one transaction; unchanged chunks keep their ids.

        Each batch is written before the next is read, so a slow generator holds no lock. `between`
        is called after each file, to give way to others.
        """
        waiting = iter(entries)
        while batch := list(islice(waiting, BATCH_FILES)):
            with self._write() as base:
                for entry in batch:
                    _put(base, entry)
                    between()

    def touch(self, states: Iterable[tuple[str, FileState]]) -> None:
        """Update the states of files with unchanged content."""
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
        """Delete old records of removed chunks, and shorten the log; for idle time."""
        with self._open() as base:
            base.execute(
                "DELETE FROM removed WHERE seq < (SELECT max(seq) FROM removed) - ?",
                (MAX_REMOVED,),
            )
            base.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @contextlib.contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction, which increments the generation."""
        with self._connection.transaction() as base:
            yield base
            base.execute("UPDATE revision SET generation = generation + 1")


# Rows, on a connection in a transaction


def _put(base: sqlite3.Connection, entry: Entry) -> None:
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
    unchanged, new = [], []
    for chunk in parsed.chunks:
        same = old.get(chunk.digest)
        if same:
            unchanged.append((chunk.first_row, chunk.end_row, chunk.kind, same.pop()))
        else:
            new.append(chunk)
    _remove_chunks(base, [chunk for chunks in old.values() for chunk in chunks])
    base.executemany(
        "UPDATE chunks SET first_row = ?, end_row = ?, kind = ? WHERE id = ?", unchanged
    )
    for chunk in new:
        text = plain(words.index_text(path, chunk))
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
    base.execute("DELETE FROM symbols WHERE file = ?", (number,))
    base.executemany(
        "INSERT INTO symbols VALUES (?, ?, ?, ?, ?, ?)",
        [
            (number, plain(one.name), one.kind, one.first_row, one.end_row, pack(one.scope))
            for one in parsed.symbols
        ],
    )


def _remove(base: sqlite3.Connection, path: str) -> None:
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
