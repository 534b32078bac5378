"""The tables of a project's index, and how its database is opened.

SQLite is the truth: what cannot be read is moved aside and read anew from the project's files.
Texts and paths are bytes (any string goes through `pack`), since a path need not be UTF-8. The
words are an FTS5 table without content, and once more as bags: `postings` follows those.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path

from lcursor.errors import IndexFailed, IndexFull

FILE = "index.sqlite3"
VERSION = 1
MAKERS = (
    "index/schema.py", "index/rows.py", "index/segment.py", "index/words.py", "index/chunk.py",
    "index/split.py", "code/languages.py", "code/grammars.py", "code/structure.py",
    "code/outline.py", "code/line_definitions.py", "code/queries/*.scm", "project/filetypes.py",
    "project/secrets.py",
)  # fmt: skip
"""Files of ours that decide what a file becomes; when one changes, all is read again."""

PAGES_KIB = 16_384
"""Memory that a connection may keep pages in."""
WAL_PAGES = 4_000
WAL_BYTES = 64 << 20
BUSY_MS = 10_000
HASH_BYTES = 16 << 20
"""Of words that a transaction gathers before it writes a piece of the full-text index."""

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, language TEXT NOT NULL,
    size_bytes INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL, first_row INTEGER NOT NULL,
    end_row INTEGER NOT NULL, kind TEXT NOT NULL, digest BLOB NOT NULL, crc INTEGER NOT NULL,
    scope BLOB NOT NULL
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
CREATE INDEX symbols_of ON symbols (file, first_row, kind);
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = "ascii tokenchars '_'");
"""
# `ascii` takes every letter beyond ASCII as part of a word, as it is: the words were split,
# lowered and freed of accents before they came here.


def pack(text: str) -> bytes:
    """Return any string as bytes, surrogates too."""
    return text.encode("utf-8", "surrogatepass")


def unpack(data: bytes) -> str:
    """Undo `pack`; what a broken disk made of it becomes question marks."""
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


def connect(path: Path, *, is_reader: bool = False) -> sqlite3.Connection:
    """Open the database; a reader cannot write, and a writer makes the file."""
    how = "ro" if is_reader else "rwc"
    base = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={how}",
        uri=True,
        timeout=BUSY_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        base.execute(f"PRAGMA cache_size = -{PAGES_KIB}")
        base.execute("PRAGMA temp_store = MEMORY")
        if not is_reader:
            base.execute("PRAGMA journal_mode = WAL")
            base.execute("PRAGMA synchronous = NORMAL")
            base.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
            base.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
            base.execute("PRAGMA secure_delete = OFF")  # Debian's default writes every page twice
    except sqlite3.Error:
        base.close()
        raise
    return base


def prepare(base: sqlite3.Connection, wanted: str) -> bool:
    """Make the tables where there are none; return whether they are of the wanted revision.

    Raises:
        sqlite3.DatabaseError: it is no database, or a broken one.
    """
    if base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        base.execute("BEGIN IMMEDIATE")
        for statement in TABLES.split(";\n"):
            if statement.strip():
                base.execute(statement)
        base.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [("revision", wanted), ("identity", uuid.uuid4().hex), ("generation", "0")],
        )
        base.execute("INSERT INTO words (words, rank) VALUES ('hashsize', ?)", (HASH_BYTES,))
        base.execute("COMMIT")
        return True
    try:
        row = base.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return False
        raise
    return bool(row) and row[0] == wanted


BROKEN = (
    "image is malformed", "malformed database", "not a database", "no such table",
    "no such fts5 table", "invalid fts5 file format", "vtable constructor", "Could not decode",
    "UNIQUE constraint", "too big",
)  # fmt: skip
"""In what SQLite says of errors whose class may also have other causes: names that were there, a
page that is gone, numbers that came twice, a row of no possible length."""
TORN = ("SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_CORRUPTFS")
"""Names of "disk I/O error" where no disk failed: the file ends too soon. From Python 3.11 on."""


def is_damage(error: sqlite3.Error) -> bool:
    """Tell whether an error means that the file is broken; not busy, full, or a bad question."""
    # Most are of this very class, but what SQLite says and its class do not always agree.
    return (
        type(error) is sqlite3.DatabaseError
        or getattr(error, "sqlite_errorname", "") in TORN
        or any(said in str(error) for said in BROKEN)
    )


def failure(error: Exception, path: Path) -> IndexFailed:
    """Return what SQLite says, for a person."""
    said = str(error)
    see = f"See what is there: ls -l {path.parent}; df -h {path.parent}"
    if "full" in said or ("I/O" in said and _is_full(path.parent)):
        return IndexFull(
            f"the index of the project does not fit on the disk ({path})",
            f"Make room there: df -h {path.parent}; what was indexed before stays searchable",
        )
    if "locked" in said or "busy" in said or "locking protocol" in said:
        return IndexFailed(
            f"the index of the project is held by another process ({path})",
            f"End it, or wait: fuser {path}",
        )
    return IndexFailed(f"the index of the project cannot be used ({path}: {said})", see)


def anew(path: Path, said: str) -> IndexFailed:
    """Return what is said of a database that is being replaced, whoever met the damage."""
    return IndexFailed(
        f"the index of the project is damaged, and is made anew ({path}: {said})",
        "Ask again in a moment",
    )


def is_made(base: sqlite3.Connection) -> bool:
    """Tell whether the tables are there; they come all at once, after the file."""
    found = base.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()
    return bool(found[0])


def move_aside(path: Path) -> Path:
    """Take a broken database away, with what belongs to it; return where it is now."""
    aside = path.with_name(path.name + ".damaged")
    # The database first: a reader that came in between would make a new -shm beside the old name,
    # and the next database would believe it.
    for end in ("", "-wal", "-shm"):
        file = path.with_name(path.name + end)
        with contextlib.suppress(FileNotFoundError):
            os.replace(file, aside.with_name(aside.name + end))
    return aside


def remove(path: Path) -> None:
    """Delete a database and what belongs to it."""
    for end in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + end).unlink()


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < 1 << 20
    except OSError:
        return False


@contextlib.contextmanager
def transaction(base: sqlite3.Connection) -> Iterator[None]:
    """Do all of it or nothing of it."""
    base.execute("BEGIN IMMEDIATE")
    try:
        yield
        base.execute("COMMIT")
    except BaseException:
        # After a full disk or a broken page SQLite may have rolled back on its own.
        if base.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                base.execute("ROLLBACK")
        raise
