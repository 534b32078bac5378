"""Read the index of a project: terms, symbols, chunks, files and counts.

Each reader has its own connection, so that it never waits for the writer. Any thread; a lock
serializes the users of a reader.
"""

# ruff: noqa: S608 - only constants are put into statements

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lcursor.index.database import Database, DatabaseConnection, pack, plain, typed, unpack
from lcursor.index.postings import NO_REVISION, Postings, Revision, read_revision
from lcursor.index.records import FileState, Filters, Origin, StoredChunk, StoredSymbol
from lcursor.project.globs import path_test as path_test

CHUNK = """
SELECT c.first_row, c.end_row, t.text, c.scope, c.kind, c.digest, c.id, f.path, f.language
FROM chunks c JOIN files f ON f.id = c.file JOIN texts t ON t.id = c.id
"""
ORIGIN = """
SELECT c.id, f.path, c.scope, c.kind, EXISTS (SELECT 1 FROM symbols s
  WHERE s.file = c.file AND s.first_row >= c.first_row AND s.first_row < c.end_row)
FROM chunks c JOIN files f ON f.id = c.file
"""
SYMBOL = """
SELECT s.name, s.kind, s.first_row, s.end_row, s.scope, f.path, f.language
FROM symbols s JOIN files f ON f.id = s.file
"""
STATE = "SELECT path, size_bytes, mtime_ns, digest FROM files"
CHUNK_TYPES = (int, int, bytes, bytes, str, bytes, int, bytes, str)
ORIGIN_TYPES = (int, bytes, bytes, str, int)
SYMBOL_TYPES = (str, str, int, int, bytes, bytes, str)
STATE_TYPES = (bytes, int, int, bytes)
LISTED = "(SELECT value FROM json_each(?))"
MAX_NAMES = 1_000
"""Maximum names with a prefix to compare, in alphabetical order, which includes short ones."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of the index."""

    files: int
    chunks: int
    symbols: int
    by_language: dict[str, int] = field(default_factory=dict)
    """Number of files by language."""


class IndexReader:
    """The index, for reading; see `Store.reader`.

    Raises:
        IndexFailed: from every method. A damaged database is replaced by an empty one with a new
            identity in `revision`, and every file must be written again.
    """

    def __init__(self, database: Database, postings: Postings, *, is_reader: bool = True) -> None:
        self.database = database
        self._postings = postings
        self._connection = DatabaseConnection(database, is_reader=is_reader)
        self._open = self._connection.open
        self._passing: tuple[Revision, dict[Filters, NDArray[np.int64]]] = (NO_REVISION, {})
        self._counts: tuple[Revision, Counts] = (NO_REVISION, Counts(0, 0, 0))

    def _rows(self, statement: str, types: Sequence[type], *values: object) -> Sequence[Any]:
        with self._open() as base:
            return typed(base.execute(statement, values).fetchall(), *types)

    @property
    def revision(self) -> Revision:
        """The revision of the current content."""
        with self._open() as base:
            return read_revision(base)

    # Terms

    def lexical(
        self, terms: Sequence[str], limit: int, filters: Filters | None = None
    ) -> list[tuple[int, float]]:
        """Return the chunks with some terms of `words.terms`, and their BM25, best first."""
        if not terms or limit <= 0:
            return []
        with self._open() as base:
            allowed = self.allowed(filters) if filters else None
            return self._postings.search(base, terms, limit, allowed)

    def frequencies(self, terms: Sequence[str]) -> tuple[dict[str, int], int]:
        """Return the number of chunks with each term, and of all chunks."""
        with self._open() as base:
            return self._postings.frequencies(base, terms)

    def warm(self) -> None:
        """Load the terms before the first query: 15 ms for 1,000 chunks."""
        self.frequencies(())

    # Symbols

    def symbols(self, name: str, limit: int, *, prefix: bool = False) -> list[StoredSymbol]:
        """Return the definitions of a name or a prefix; matches of the same case come first."""
        name = plain(name)
        where, values = "s.name = ? COLLATE NOCASE", [name]
        if prefix:
            where = "s.name >= ? COLLATE NOCASE AND s.name < ? COLLATE NOCASE"
            values.append(name + "\U0010ffff")
        rows = self._rows(
            f"{SYMBOL} WHERE s.rowid IN (SELECT number FROM "
            f"(SELECT rowid AS number, name FROM symbols s WHERE {where} LIMIT ?) "
            "ORDER BY substr(name, 1, ?) = ? DESC, length(name), number LIMIT ?) "
            "ORDER BY substr(s.name, 1, ?) = ? DESC, length(s.name), f.path, s.first_row",
            SYMBOL_TYPES,
            *(*values, MAX_NAMES, len(name), name, limit, len(name), name),
        )
        return [_symbol(row) for row in rows]

    def symbols_in(self, path: str) -> list[StoredSymbol]:
        """Return the definitions in a file, by row."""
        where = "WHERE f.path = ? ORDER BY s.first_row, s.end_row DESC"
        return [_symbol(row) for row in self._rows(f"{SYMBOL} {where}", SYMBOL_TYPES, pack(path))]

    # Chunks

    def chunks(self, ids: Iterable[int]) -> dict[int, StoredChunk]:
        """Return chunks by id, without removed ones."""
        rows = self._rows(f"{CHUNK} WHERE c.id IN {LISTED}", CHUNK_TYPES, _listed(ids))
        return {one.id: one for one in map(stored, rows)}

    def origins(self, ids: Iterable[int]) -> dict[int, Origin]:
        """Return the origins of chunks by id, without removed ones."""
        rows = self._rows(f"{ORIGIN} WHERE c.id IN {LISTED}", ORIGIN_TYPES, _listed(ids))
        return {
            number: Origin(unpack(path), unpack(scope), kind, bool(is_defining))
            for number, path, scope, kind, is_defining in rows
        }

    def chunks_at(self, path: str, row: int) -> list[StoredChunk]:
        """Return the chunks of a file that contain a row, the smallest first."""
        where = "f.path = ? AND c.first_row <= ? AND c.end_row > ?"
        order = "ORDER BY c.end_row - c.first_row, c.first_row"
        rows = self._rows(f"{CHUNK} WHERE {where} {order}", CHUNK_TYPES, pack(path), row, row)
        return [stored(row) for row in rows]

    def chunks_of(self, path: str) -> list[StoredChunk]:
        """Return the chunks of a file, by row."""
        statement = f"{CHUNK} WHERE f.path = ? ORDER BY c.first_row, c.id"
        return [stored(row) for row in self._rows(statement, CHUNK_TYPES, pack(path))]

    def texts_with(self, letters: str, limit: int) -> list[str]:
        """Return texts of chunks that contain some letters, in any case."""
        statement = "SELECT text FROM texts WHERE CAST(text AS TEXT) LIKE ? LIMIT ?"
        return [unpack(text) for (text,) in self._rows(statement, (bytes,), f"%{letters}%", limit)]

    def chunk_ids(self) -> NDArray[np.int64]:
        """Return the ids of all chunks, ascending."""
        return _ids(self._rows("SELECT id FROM chunks ORDER BY id", (int,)))

    def digests(self, ids: Iterable[int]) -> dict[int, bytes]:
        """Return the digests of chunks by id, ascending."""
        statement = f"SELECT id, digest FROM chunks WHERE id IN {LISTED} ORDER BY id"
        return dict(self._rows(statement, (int, bytes), _listed(ids)))

    def allowed(self, filters: Filters) -> NDArray[np.int64] | None:
        """Return the ids of the chunks that pass the filters, ascending; None if all do."""
        if filters == Filters():
            return None
        with self._open() as base:
            now = read_revision(base)
            if now != self._passing[0]:
                self._passing = (now, {})
            known = self._passing[1]
            if filters not in known:
                where, values = _where(base, filters)
                statement = f"SELECT c.id FROM chunks c WHERE {where} ORDER BY c.id"
                known[filters] = _ids(self._rows(statement, (int,), *values))
            return known[filters]

    # Files

    def state(self, path: str) -> FileState | None:
        """Return the stored state of a file; None for an unknown file."""
        rows = self._rows(f"{STATE} WHERE path = ?", STATE_TYPES, pack(path))
        return FileState(*rows[0][1:]) if rows else None

    def files(self) -> dict[str, FileState]:
        """Return all files with their stored states."""
        return {unpack(row[0]): FileState(*row[1:]) for row in self._rows(STATE, STATE_TYPES)}

    def counts(self) -> Counts:
        """Return the size of the index."""
        now = self.revision
        if self._counts[0] != now:
            statement = "SELECT language, count(*) FROM files GROUP BY 1 ORDER BY 2 DESC, 1"
            languages = dict(self._rows(statement, (str, int)))
            ((chunks,),) = self._rows("SELECT count(*) FROM chunks", (int,))
            ((symbols,),) = self._rows("SELECT count(*) FROM symbols", (int,))
            self._counts = (now, Counts(sum(languages.values()), chunks, symbols, languages))
        return self._counts[1]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _listed(ids: Iterable[int]) -> str:
    return json.dumps([int(one) for one in ids])


def _ids(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    return np.fromiter((row[0] for row in rows), np.int64, len(rows))


def _where(base: sqlite3.Connection, filters: Filters) -> tuple[str, list[str]]:
    where, values = ["1"], []
    if filters.paths or filters.languages:
        languages = {one.lower() for one in filters.languages}
        rows = base.execute("SELECT id, path, language FROM files").fetchall()
        paths = [unpack(path) for _, path, _ in typed(rows, int, bytes, str)]
        passes = path_test(filters.paths, paths)
        files = [
            number
            for (number, _, language), path in zip(rows, paths, strict=True)
            if (not languages or language in languages) and passes(path)
        ]
        where.append(f"c.file IN {LISTED}")
        values.append(json.dumps(files))
    if filters.kinds:
        where.append(
            "EXISTS (SELECT 1 FROM symbols s WHERE s.file = c.file AND s.first_row >= c.first_row "
            f"AND s.first_row < c.end_row AND s.kind IN {LISTED})"
        )
        values.append(json.dumps(filters.kinds))
    return " AND ".join(where), values


def stored(row: Sequence[Any]) -> StoredChunk:
    """Return the chunk in a row of `CHUNK`."""
    first, end, text, scope, kind, digest, number, path, language = row
    where = (number, unpack(path), language)
    return StoredChunk(first, end, unpack(text), unpack(scope), kind, digest, *where)


def _symbol(row: Sequence[Any]) -> StoredSymbol:
    name, kind, first, end, scope, path, language = row
    return StoredSymbol(name, kind, first, end, unpack(scope), unpack(path), language)
