"""Write the rows of a file into the tables of the index, and delete them.

Functions of a connection in a transaction, which `store.Store` opens.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence

from lcursor.index import schema, segment
from lcursor.index.records import Chunk, FileState, Parsed, Symbol

Entry = tuple[str, FileState, Parsed]
TextOf = Callable[[str, Chunk], str]
"""Returns the terms of a chunk in a file, separated by blanks."""


def set_meta(base: sqlite3.Connection, key: str, value: str) -> None:
    """Keep a short text under a key."""
    base.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def put(base: sqlite3.Connection, entry: Entry, text_of: TextOf) -> None:
    """Replace a file's rows; a chunk with the same digest keeps its id."""
    path, state, parsed = entry
    row = base.execute("SELECT id FROM files WHERE path = ?", (schema.pack(path),)).fetchone()
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
            (*seen, schema.pack(path)),
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
        text = schema.plain(text_of(path, chunk))
        name = base.execute(
            "INSERT INTO chunks (file, first_row, end_row, kind, digest, scope) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                number, chunk.first_row, chunk.end_row, chunk.kind, chunk.digest,
                schema.pack(chunk.scope),
            ),
        ).lastrowid  # fmt: skip
        base.execute("INSERT INTO texts VALUES (?, ?)", (name, schema.pack(chunk.text)))
        base.execute("INSERT INTO bags VALUES (?, ?)", (name, segment.bag(text)))
    _put_symbols(base, number, parsed.symbols)


def _put_symbols(base: sqlite3.Connection, file: int, symbols: Sequence[Symbol]) -> None:
    """Replace a file's symbols; unchanged ones stay, since most are."""
    wanted = Counter(
        (
            schema.plain(one.name),
            one.kind,
            one.first_row,
            one.end_row,
            schema.pack(one.scope),
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


def remove(base: sqlite3.Connection, path: str) -> None:
    """Delete a file's rows."""
    row = base.execute("SELECT id FROM files WHERE path = ?", (schema.pack(path),)).fetchone()
    if not row:
        return
    chunks = [one for (one,) in base.execute("SELECT id FROM chunks WHERE file = ?", row)]
    _remove_chunks(base, chunks)
    base.execute("DELETE FROM symbols WHERE file = ?", row)
    base.execute("DELETE FROM files WHERE id = ?", row)


def _remove_chunks(base: sqlite3.Connection, chunks: Sequence[int]) -> None:
    ids = [(number,) for number in chunks]
    for table in ("chunks", "texts", "bags"):
        base.executemany(f"DELETE FROM {table} WHERE id = ?", ids)  # noqa: S608
    base.executemany("INSERT INTO gone (chunk) VALUES (?)", ids)
