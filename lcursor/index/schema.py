"""The tables of a project's index.

Texts and paths are bytes (any string goes through `pack`), since a path need not be UTF-8. The
terms of each chunk are a row of `bags`; `postings` keeps those in memory and searches them.
"""

from __future__ import annotations

import contextlib
import zlib
from pathlib import Path

FILE = "index.sqlite3"
VERSION = 1
MAKERS = (
    "index/schema.py", "index/rows.py", "index/segment.py", "index/words.py", "index/chunk.py",
    "index/split.py", "code/languages.py", "code/grammars.py", "code/structure.py",
    "code/outline.py", "code/line_definitions.py", "code/queries/*.scm", "project/filetypes.py",
    "project/secrets.py",
)  # fmt: skip
"""Our files that decide what a file becomes in the index; it is rebuilt when one changes."""

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
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
CREATE TABLE bags (id INTEGER PRIMARY KEY, bag BLOB NOT NULL);
CREATE TABLE gone (seq INTEGER PRIMARY KEY AUTOINCREMENT, chunk INTEGER NOT NULL);
CREATE TABLE symbols (
    file INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, first_row INTEGER NOT NULL,
    end_row INTEGER NOT NULL, scope BLOB NOT NULL
);
CREATE INDEX symbols_named ON symbols (name COLLATE NOCASE);
CREATE INDEX symbols_of ON symbols (file, first_row, kind)"""


def pack(text: str) -> bytes:
    """Return any string as bytes, surrogates too."""
    return text.encode("utf-8", "surrogatepass")


def unpack(data: bytes) -> str:
    """Undo `pack`; other bytes become replacement characters."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def plain(text: str) -> str:
    """Return a string that SQLite takes as text: without surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def revision() -> str:
    """Return what an index must have been made by, to be used."""
    package, crc = Path(__file__).parents[1], 0
    for path in sorted(path for pattern in MAKERS for path in package.glob(pattern)):
        with contextlib.suppress(OSError):
            crc = zlib.crc32(path.read_bytes(), crc)
    return f"{VERSION}.{crc:08x}"


REVISION = revision()
"""Of the code that runs: a worker may outlive an update of the files."""
