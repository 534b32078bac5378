"""The SQLite file of an index: its tables, opening it, and telling damage from other errors.

Texts and paths are bytes (see `pack`), since a path need not be UTF-8. The terms of each chunk are
a row of `terms`; `postings` keeps those in memory and searches them.

The index is a cache of the project's files: a damaged database is deleted and filled again. The
writer (`Store`) does that; readers report the damage they find and connect to the new file.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from lcursor.errors import IndexFailed, IndexFull

FILE = "index.sqlite3"
VERSION = 2
SOURCES = (
    "index/database.py", "index/store.py", "index/postings.py", "index/words.py", "index/chunk.py",
    "code/languages.py", "code/grammars.py", "code/structure.py",
    "code/outline.py", "code/line_definitions.py", "code/queries/*.scm", "project/filetypes.py",
    "project/secrets.py",
)  # fmt: skip
"""Files of ours that decide about the content of an index; it is rebuilt when one changes."""

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
CREATE TABLE terms (id INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE removed (seq INTEGER PRIMARY KEY AUTOINCREMENT, chunk INTEGER NOT NULL);
CREATE TABLE symbols (
    file INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, first_row INTEGER NOT NULL,
    end_row INTEGER NOT NULL, scope BLOB NOT NULL
);
CREATE INDEX symbols_named ON symbols (name COLLATE NOCASE);
CREATE INDEX symbols_of ON symbols (file, first_row, kind)"""

PAGES_KIB = 16_384
"""Page cache of a connection."""
WAL_PAGES = 4_000
WAL_BYTES = 64 << 20
BUSY_MS = 10_000

NO_DAMAGE = (
    "locked", "busy", "locking protocol", "full", "I/O", "unable to open", "readonly",
)  # fmt: skip
"""Words in errors that are about the disk, the permissions or another process."""
TRUNCATED = ("SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_CORRUPTFS")
"""I/O errors (named from Python 3.11 on) that mean a file which ends too soon."""


class Database:
    """What the writer and the readers of one index share about its file.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.epoch = 0
        """Grows when the file is replaced by an empty one."""
        self.replacing = threading.RLock()
        """Held while the file is replaced and while a reader connects: SQLite opens the file and
        its -wal and -shm one after the other, and all three must belong together."""
        self.on_damage: Callable[[], None] = lambda: None
        """Called once when a reader found damage, on its thread."""
        self.damage: sqlite3.Error | None = None
        """What a reader found in the present file."""

    def report(self, epoch: int, error: sqlite3.Error) -> None:
        """Note damage that a reader found in the file of an epoch. Any thread."""
        with self.replacing:
            is_new = epoch == self.epoch and self.damage is None
            if is_new:
                self.damage = error
        if is_new:
            self.on_damage()


def connect(path: Path, *, is_reader: bool = False) -> sqlite3.Connection:
    """Open a database; a reader cannot write, and a writer creates the file."""
    base = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'ro' if is_reader else 'rwc'}",
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
    """Create the tables in an empty database; return whether they are of the wanted revision."""
    if base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        row = base.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()
        return bool(row) and row[0] == wanted
    with transaction(base):
        for statement in TABLES.split(";\n"):
            base.execute(statement)
        base.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [("revision", wanted), ("identity", uuid.uuid4().hex), ("generation", "0")],
        )
    return True


@contextlib.contextmanager
def transaction(base: sqlite3.Connection) -> Iterator[None]:
    """Do all of it or nothing."""
    base.execute("BEGIN IMMEDIATE")
    try:
        yield
        base.execute("COMMIT")
    except BaseException:
        if base.in_transaction:  # SQLite may have rolled back by itself
            with contextlib.suppress(sqlite3.Error):
                base.execute("ROLLBACK")
        raise


def remove(path: Path) -> None:
    """Delete a database with its -wal and -shm."""
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def is_damage(error: Exception) -> bool:
    """Return whether an error means that the database must be rebuilt."""
    if getattr(error, "sqlite_errorname", "") in TRUNCATED:
        return True
    return (
        isinstance(error, sqlite3.DatabaseError)
        and not isinstance(error, sqlite3.ProgrammingError)
        and not any(word in str(error) for word in NO_DAMAGE)
    )


def rebuilding() -> IndexFailed:
    """Return the error for a query that met damage; what was damaged is in the log."""
    return IndexFailed(
        "the index of the project was damaged and is being rebuilt", "Ask again in a moment"
    )


def failure(error: Exception, path: Path) -> IndexFailed:
    """Return an error for the user that says what failed and what to do."""
    text = str(error)
    if "full" in text or ("I/O" in text and _is_full(path.parent)):
        return IndexFull(
            f"the index of the project does not fit on the disk ({path})",
            f"Make room there: df -h {path.parent}; what was indexed before stays searchable",
        )
    if "locked" in text or "busy" in text or "locking protocol" in text:
        return IndexFailed(
            f"the index of the project is held by another process ({path})",
            f"End it, or wait: fuser {path}",
        )
    return IndexFailed(
        f"the index of the project cannot be used ({path}: {text})",
        f"See what is there: ls -l {path.parent}; df -h {path.parent}",
    )


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < 1 << 20
    except OSError:
        return False


def pack(text: str) -> bytes:
    """Return any string as bytes, surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def unpack(data: bytes) -> str:
    """Undo `pack`; other bytes become replacement characters."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def plain(text: str) -> str:
    """Return a string as SQLite accepts it: without surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def revision() -> str:
    """Return the revision of this code; an index of another one is rebuilt."""
    package, crc = Path(__file__).parents[1], 0
    for path in sorted(path for pattern in SOURCES for path in package.glob(pattern)):
        with contextlib.suppress(OSError):
            crc = zlib.crc32(path.read_bytes(), crc)
    return f"{VERSION}.{crc:08x}"


REVISION = revision()
"""Of the running code: a worker may outlive an update of the files."""
