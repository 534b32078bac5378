"""Damage of the index that a question meets before the writer does: what it is told, what comes."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lcursor.errors import IndexFailed
from lcursor.index.project import Project
from lcursor.index.reader import Reader
from lcursor.index.store import Store
from tests.unit.index.pieces import entry
from tests.unit.index.test_store_failures import filled, whole

AGAIN = "Ask again in a moment"
NAMED_ERRORS = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="before, no I/O error can be told from another"
)


def settled(store: Store) -> None:
    """Have everything in the file, and nothing beside it."""
    base = sqlite3.connect(store.path)
    base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    base.close()


def cut(store: Store) -> None:
    settled(store)
    os.truncate(store.path, 5000)


def no_schema(store: Store) -> None:
    settled(store)
    os.truncate(store.path, 512)


def no_database(store: Store) -> None:
    settled(store)
    with store.path.open("r+b") as file:
        file.write(b"not what it was ")


def no_log(store: Store) -> None:
    """What is written and not in the file yet is lost: SQLite calls it an I/O error."""
    log = store.path.with_name(f"{store.path.name}-wal")
    assert log.stat().st_size > 4096
    os.truncate(log, 4096)


@pytest.mark.parametrize(
    "damage",
    [cut, no_schema, no_database, pytest.param(no_log, marks=NAMED_ERRORS)],
    ids=lambda one: one.__name__,
)
def test_a_query_that_meets_damage_has_the_index_rebuilt(
    store: Store, damage: Callable[[Store], None]
) -> None:
    filled(store)
    woken: list[int] = []
    store.database.on_rebuild = lambda: woken.append(1)
    damage(store)
    reader = store.reader()
    with pytest.raises(IndexFailed, match="damaged and is being rebuilt") as told:
        reader.files()
    assert told.value.hint == AGAIN
    assert woken == [1]
    assert reader.files() == store.files() == {}
    [said] = store.remarks
    assert "is being rebuilt" in said
    filled(store, 3)
    assert len(reader.files()) == 3, "the same reader"
    assert len(store.remarks) == 1
    assert woken == [1]
    whole(store)
    reader.close()


class Broken:
    """A connection that says the same of every question."""

    def __init__(self, error: sqlite3.Error) -> None:
        self._error = error

    def execute(self, *_: object) -> Any:
        raise self._error

    def close(self) -> None:
        pass


@contextmanager
def saying(reader: Reader, error: sqlite3.Error) -> Iterator[None]:
    """Have SQLite say something of the file that a reader has open."""
    assert reader.revision
    connection = reader._connection
    base, connection._base = connection._base, Broken(error)  # type: ignore[assignment]
    assert base is not None
    base.close()
    yield


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.OperationalError("database disk image is malformed"),
        sqlite3.DatabaseError("file is not a database"),
        sqlite3.OperationalError("malformed database schema (chunks)"),
        sqlite3.OperationalError("no such table: main.chunks"),
        sqlite3.DataError("string or blob too big"),
    ],
    ids=str,
)
def test_damage_is_recognized_in_any_class_of_error(store: Store, error: sqlite3.Error) -> None:
    reader = store.reader()
    with saying(reader, error), pytest.raises(IndexFailed, match="being rebuilt") as told:
        reader.files()
    assert told.value.hint == AGAIN
    assert len(store.remarks) == 1
    assert reader.files() == store.files() == {}
    reader.close()


@pytest.mark.parametrize(
    ("error", "said", "hint"),
    [
        (sqlite3.OperationalError("database is locked"), "held by another process", "fuser"),
        (sqlite3.OperationalError("locking protocol"), "held by another process", "fuser"),
        (sqlite3.OperationalError("disk I/O error"), "cannot be used", "df -h"),
        (
            sqlite3.OperationalError("attempt to write a readonly database"),
            "cannot be used",
            "ls -l",
        ),
        (sqlite3.OperationalError("unable to open database file"), "cannot be used", "ls -l"),
    ],
    ids=str,
)
def test_other_errors_do_not_rebuild_the_index(
    store: Store, error: sqlite3.Error, said: str, hint: str
) -> None:
    filled(store, 3)
    reader = store.reader()
    with saying(reader, error), pytest.raises(IndexFailed, match=said) as told:
        reader.files()
    assert hint in told.value.hint
    assert len(reader.files()) == 3, "it is asked anew"
    assert len(store.files()) == 3
    assert store.remarks == []
    reader.close()


class Failing:
    """A connection that fails amid a transaction, and so ends it."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base, self.close = base, base.close

    def execute(self, statement: str, *more: Any) -> sqlite3.Cursor:
        if "FROM terms" in statement:
            self._base.execute("ROLLBACK")
            raise sqlite3.OperationalError("disk I/O error")
        return self._base.execute(statement, *more)


def test_the_first_error_is_reported(store: Store) -> None:
    """SQLite ends the transaction of the words by itself when a disk fails."""
    filled(store, 3)
    reader = store.reader()
    assert reader.revision
    connection = reader._connection
    assert connection._base is not None
    connection._base = Failing(connection._base)  # type: ignore[assignment]
    with pytest.raises(IndexFailed, match="disk I/O error"):
        reader.lexical(["alpha"], 5)
    assert len(reader.lexical(["alpha"], 5)) == 3
    reader.close()


def test_no_reader_connects_while_the_file_is_replaced(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite opens the file at once and its -wal and -shm later, by name: both must be of one."""
    filled(store)
    settled(store)
    reader = store.reader()
    is_open, is_replaced = threading.Event(), threading.Event()
    real = sqlite3.connect

    def slowly(name: str | Path, **more: Any) -> sqlite3.Connection:
        base: sqlite3.Connection = real(name, **more)
        if "mode=ro" in str(name) and not is_open.is_set():
            is_open.set()
            is_replaced.wait(0.5)  # the rebuild must wait for us, so this is long enough
        return base

    monkeypatch.setattr(sqlite3, "connect", slowly)
    told: list[str] = []

    def ask() -> None:
        try:
            reader.files()
            told.append("")
        except IndexFailed as error:
            told.append(error.message)

    thread = threading.Thread(target=ask)
    thread.start()
    assert is_open.wait(20)
    store.database.rebuild(store.database.epoch, sqlite3.DatabaseError("a broken page"))
    assert store.files() == {}
    is_replaced.set()
    thread.join(20)
    assert told == [""], "it had the old file whole"
    filled(store)
    assert len(reader.files()) == 40
    store.put(*entry("a.py", "one"))
    assert len(reader.files()) == 41
    assert len(store.remarks) == 1
    reader.close()
    whole(store)


def test_a_query_during_a_rebuild_is_told_to_wait(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(root, "none")
    project.begin()
    start, told = project._start, []

    def ask_and_start() -> None:
        with pytest.raises(IndexFailed) as error:
            project.search("needle7", 5, "hybrid")
        told.append(error.value)
        start()

    monkeypatch.setattr(project, "_start", ask_and_start)
    with pytest.raises(IndexFailed) as error, project._query() as there:
        project.begin(rebuild=True)
        there.reader.files()  # of what was closed meanwhile
    told.append(error.value)
    assert ["being rebuilt" in each.message for each in told] == [True, True]
    assert [each.hint for each in told] == [AGAIN, AGAIN]
    assert project.search("needle7", 5, "hybrid")["phase"] != "failed"
    project.close()
