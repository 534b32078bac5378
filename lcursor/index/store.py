"""The one writer of a project's index: files, chunks, names and words in one SQLite file.

A file's rows change in one transaction, so that whoever reads sees a file as it was or as it is.
What cannot be read is moved aside and begun anew. Any thread may write; they wait for each other.
The project's own files are never touched.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from lcursor.errors import IndexFailed
from lcursor.index import rows, schema
from lcursor.index.postings import Postings
from lcursor.index.reader import Reader
from lcursor.index.records import FileState, Parsed
from lcursor.index.rows import Entry as Entry
from lcursor.index.rows import TextOf

FILES_AT_ONCE = 64
"""Files that `put_many` writes in one transaction."""
LOCK = "store.lock"
MERGE_PAGES = 500
"""Of the full-text index that `tidy` joins in one step."""
KEPT_GONE = 50_000
"""Chunks that are gone which are remembered, for who follows; others read all anew."""


class Store:
    """A project's index, open for writing.

    Args:
        folder: where it is; made when missing.
        text_of: the terms of a chunk, with blanks between.
        revision: what the pieces are made by; an index that others made is begun anew.

    Raises:
        IndexFailed: another process writes it, or the folder cannot be used; from every method
            too. After damage that was found late the index is empty: `identity` has changed, and
            every file is to be put again.
        IndexFull: the disk is full; from every method that writes. What was there stays.
    """

    def __init__(
        self, folder: Path, text_of: TextOf | None = None, revision: str | None = None
    ) -> None:
        if text_of is None:
            from lcursor.index.words import index_text

            text_of = index_text
        self.folder, self.path = folder, folder / schema.FILE
        self.between: Callable[[], object] = lambda: None
        """Called between two files of a transaction: who writes may let others go first."""
        self.remarks: list[str] = []
        """What went wrong and was mended, for a person; each thing once."""
        self._text_of = text_of
        self._revision = schema.REVISION if revision is None else revision
        self._lock = threading.RLock()
        self._replacing = threading.RLock()
        """Held while the file is replaced: no reader connects meanwhile."""
        self.on_damage: Callable[[], None] = lambda: None
        """Called when a reader found damage: the next who writes mends it. Thread: any."""
        self._damaged = -1
        """Number of the file that a reader found broken."""
        self._is_closed = False
        self._inode = (0, 0)
        self._base: sqlite3.Connection | None = None
        self._held = -1
        self._postings = Postings()
        try:
            self._base = self._begin()
        except BaseException:
            self._let_go()
            raise

    # What there is

    @property
    def generation(self) -> int:
        """A number that grows with each change."""
        return int(self.meta("generation"))

    @property
    def identity(self) -> str:
        """What tells this index from one that was begun anew in its place."""
        return self.meta("identity")

    def reader(self) -> Reader:
        """Return a reader with a connection of its own."""
        return Reader(self.path, self._note_damage, self._postings, self._replacing)

    def files(self) -> dict[str, FileState]:
        """Return all files and what they looked like when they were read."""
        with self._open() as base:
            found = base.execute("SELECT path, size_bytes, mtime_ns, digest FROM files").fetchall()
        return {schema.unpack(row[0]): FileState(*row[1:]) for row in found}

    def meta(self, key: str) -> str:
        """Return what was kept under a name, or ""."""
        with self._open() as base:
            row = base.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else ""

    # What is put into it

    def put(self, path: str, state: FileState, parsed: Parsed) -> None:
        """Replace what is known of a file; chunks that are as they were keep their numbers."""
        self.put_many([(path, state, parsed)])

    def put_many(self, entries: Iterable[Entry]) -> None:
        """Replace what is known of files, many in one transaction.

        Each batch is whole before the next is asked for: what a generator reads slowly does not
        hold others up, and after an end at any moment the batches before are there.
        """
        waiting = iter(entries)
        while batch := list(islice(waiting, FILES_AT_ONCE)):
            with self._write() as base:
                for entry in batch:
                    rows.put(base, entry, self._text_of)
                    self.between()

    def touch(self, states: Iterable[tuple[str, FileState]]) -> None:
        """Remember that files look otherwise though their content is the same."""
        with self._write() as base:
            base.executemany(
                "UPDATE files SET size_bytes = ?, mtime_ns = ?, digest = ? WHERE path = ?",
                [
                    (state.size_bytes, state.mtime_ns, state.digest, schema.pack(path))
                    for path, state in states
                ],
            )

    def remove(self, paths: Iterable[str]) -> None:
        """Forget files; those that are unknown are none."""
        waiting = iter(paths)
        while batch := list(islice(waiting, FILES_AT_ONCE)):
            with self._write() as base:
                for path in batch:
                    rows.remove(base, path, self._text_of)

    def set_meta(self, key: str, value: str) -> None:
        """Keep a short text under a name."""
        with self._write() as base:
            rows.set_meta(base, key, value)

    # Its health

    def check(self) -> bool:
        """Read all of it; when something is broken, begin anew and return False.

        Cost: about 1 s for 100 MB; for idle time.
        """
        before = len(self.remarks)
        try:
            with self._open() as base:
                (said,) = base.execute("PRAGMA quick_check(1)").fetchone()
                if said != "ok":
                    raise sqlite3.DatabaseError(said)
                base.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        except IndexFailed:
            if len(self.remarks) == before:
                raise
            return False
        return True

    def tidy(self) -> bool:
        """Join pieces of the full-text index; return whether more is left.

        Cost: some 50 ms a call; for idle time, until it returns False.
        """
        with self._open() as base:
            before = base.total_changes
            base.execute("INSERT INTO words (words, rank) VALUES ('merge', ?)", (MERGE_PAGES,))
            is_more = base.total_changes - before >= 2
            if not is_more:
                base.execute(
                    "DELETE FROM gone WHERE seq < (SELECT max(seq) FROM gone) - ?", (KEPT_GONE,)
                )
                base.execute("PRAGMA wal_checkpoint(PASSIVE)")
        return is_more

    def close(self) -> None:
        """Write all that waits, and let go."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._end()
                self._let_go()

    # The connection

    def _hold(self) -> int:
        """Take the lock of the one writer; the system gives it back when the process ends."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            held = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise schema.failure(error, self.path) from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(held)
            raise schema.failure(sqlite3.OperationalError("locked"), self.path) from error
        return held

    def _let_go(self) -> None:
        if self._held >= 0:
            os.close(self._held)
        self._held = -1

    def _begin(self) -> sqlite3.Connection:
        """Open the database, or a new one in place of one that cannot be used."""
        with self._replacing:
            return self._begun()

    def _begun(self) -> sqlite3.Connection:
        if self._held < 0:
            self._held = self._hold()
        for _ in range(2):
            base: sqlite3.Connection | None = None
            try:
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
                base = schema.connect(self.path)
                if schema.prepare(base, self._revision):
                    base.execute("SELECT rank FROM words WHERE words MATCH 'a' LIMIT 1").fetchone()
                    self._inode = _inode(self.path)
                    return base
                base.close()
                schema.remove(self.path)  # another version of lcursor made it
            except (sqlite3.Error, OSError) as error:
                if base:
                    base.close()
                if not (isinstance(error, sqlite3.Error) and schema.is_damage(error)):
                    raise schema.failure(error, self.path) from error
                self._move_aside(error)
        raise schema.failure(sqlite3.DatabaseError("it cannot be begun anew"), self.path)

    def _move_aside(self, error: Exception) -> None:
        try:
            aside = schema.move_aside(self.path)
        except OSError as trouble:
            raise schema.failure(trouble, self.path) from trouble
        self.remarks.append(
            f"the index of the project was damaged ({error}): it is at {aside} now, and all is "
            "indexed anew"
        )

    def _note_damage(self, inode: int) -> None:
        """Thread: the reader's; the file may have been replaced since."""
        if self._damaged != inode:
            self._damaged = inode
            self.on_damage()

    def _renew(self, error: Exception) -> None:
        """Begin anew; the next who writes finds an empty index."""
        self._end()
        if _inode(self.folder / LOCK) != _inode(self._held):  # someone emptied the folder
            self._let_go()
        with self._replacing:
            if self.path.exists():
                self._move_aside(error)
            self._base = self._begin()
        self._damaged = -1

    def _end(self) -> None:
        if self._base:
            with contextlib.suppress(sqlite3.Error):
                self._base.close()
            self._base = None

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Give the connection, and turn what SQLite says into what a person understands."""
        with self._lock:
            try:
                if self._is_closed:
                    raise sqlite3.ProgrammingError("it is closed")
                if self._base is None:  # beginning anew did not succeed then
                    self._base = self._begin()
                if self._damaged == self._inode[1]:
                    raise sqlite3.DatabaseError("a reader found a broken page")
                if _inode(self.path) != self._inode:
                    raise sqlite3.DatabaseError("its file was taken away")
                yield self._base
            except (sqlite3.Error, OSError) as error:
                if isinstance(error, sqlite3.Error) and schema.is_damage(error):
                    self._renew(error)
                    raise schema.anew(self.path, str(error)) from error
                raise schema.failure(error, self.path) from error

    @contextlib.contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Give the connection in a transaction; the generation grows with it."""
        with self._open() as base, schema.transaction(base):
            yield base
            base.execute(
                "UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'generation'"
            )


def _inode(file: Path | int) -> tuple[int, int]:
    """Return what tells one file from another; zeros where there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
