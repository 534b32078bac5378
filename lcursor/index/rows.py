"""What a file becomes in the tables of the index, and how that goes again.

Functions of a connection that is in a transaction; `store.Store` opens it. Nothing else writes to
files, chunks, texts, bags, symbols and words.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Sequence

from lcursor.index import schema, segment
from lcursor.index.reader import CHUNK, stored
from lcursor.index.records import Chunk, FileState, Parsed, Symbol

Entry = tuple[str, FileState, Parsed]
TextOf = Callable[[str, Chunk], str]
"""The terms of a chunk in a file, with blanks between."""


def set_meta(base: sqlite3.Connection, key: str, value: str) -> None:
    """Keep a short text under a name."""
    base.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def put(base: sqlite3.Connection, entry: Entry, text_of: TextOf) -> None:
    """Replace a file's rows; what has the same digest keeps its number, and its words."""
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
    _forget(base, path, [chunk for chunks in old.values() for chunk in chunks], text_of)
    base.executemany("UPDATE chunks SET first_row = ?, end_row = ?, kind = ? WHERE id = ?", kept)
    for chunk in new:
        text = schema.plain(text_of(path, chunk))
        name = base.execute(
            "INSERT INTO chunks (file, first_row, end_row, kind, digest, crc, scope) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                number, chunk.first_row, chunk.end_row, chunk.kind, chunk.digest,
                zlib.crc32(text.encode()), schema.pack(chunk.scope),
            ),
        ).lastrowid  # fmt: skip
        base.execute("INSERT INTO texts VALUES (?, ?)", (name, schema.pack(chunk.text)))
        base.execute("INSERT INTO bags VALUES (?, ?)", (name, segment.bag(text)))
        base.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (name, text))
    _name(base, number, parsed.symbols)


def _name(base: sqlite3.Connection, file: int, symbols: Sequence[Symbol]) -> None:
    """Replace a file's definitions; those that are as they were stay, since most are."""
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


def remove(base: sqlite3.Connection, path: str, text_of: TextOf) -> None:
    """Delete a file's rows."""
    row = base.execute("SELECT id FROM files WHERE path = ?", (schema.pack(path),)).fetchone()
    if not row:
        return
    chunks = [one for (one,) in base.execute("SELECT id FROM chunks WHERE file = ?", row)]
    _forget(base, path, chunks, text_of)
    base.execute("DELETE FROM symbols WHERE file = ?", row)
    base.execute("DELETE FROM files WHERE id = ?", row)


def _forget(base: sqlite3.Connection, path: str, chunks: Sequence[int], text_of: TextOf) -> None:
    """Delete chunks and their words.

    The full-text index has no content: to take words out it must be told them. Only those that
    were surely put are told (their sum is known); else they stay, and lead to no chunk.
    """
    for number in chunks:
        row = base.execute(f"{CHUNK} WHERE c.id = ?", (number,)).fetchone()
        if row:
            text = schema.plain(text_of(path, stored(row).chunk))
            (crc,) = base.execute("SELECT crc FROM chunks WHERE id = ?", (number,)).fetchone()
            if zlib.crc32(text.encode()) == crc:
                base.execute(
                    "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
                    (number, text),
                )
        base.execute("DELETE FROM texts WHERE id = ?", (number,))
        base.execute("DELETE FROM bags WHERE id = ?", (number,))
        base.execute("INSERT INTO gone (chunk) VALUES (?)", (number,))
    base.executemany("DELETE FROM chunks WHERE id = ?", [(number,) for number in chunks])
