"""Damage of the index that a question meets before the writer does: what it is told, what comes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor.errors import IndexFailed
from lcursor.index.project import Project
from lcursor.index.store import Store
from tests.unit.index.test_store_failures import filled, whole

AGAIN = "Try again in a moment"


def settled(store: Store) -> None:
    """Have everything in the file, and nothing beside it."""
    base = sqlite3.connect(store.path)
    base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    base.close()


def cut(store: Store) -> None:
    settled(store)
    os.truncate(store.path, 5000)


def no_database(store: Store) -> None:
    settled(store)
    with store.path.open("r+b") as file:
        file.write(b"not what it was ")


@pytest.mark.parametrize("damage", [cut, no_database], ids=lambda one: one.__name__)
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


@pytest.mark.parametrize(
    ("error", "said", "hint"),
    [
        (sqlite3.OperationalError("database disk image is malformed"), "being rebuilt", AGAIN),
        (sqlite3.DatabaseError("file is not a database"), "being rebuilt", AGAIN),
        (sqlite3.OperationalError("no such table: main.chunks"), "being rebuilt", AGAIN),
        (sqlite3.DataError("string or blob too big"), "being rebuilt", AGAIN),
        (sqlite3.OperationalError("database is locked"), "locked by another process", "fuser"),
        (sqlite3.OperationalError("locking protocol"), "locked by another process", "fuser"),
        (sqlite3.OperationalError("disk I/O error"), "cannot be used", "df -h"),
        (sqlite3.OperationalError("readonly database"), "cannot be used", "ls -l"),
        (sqlite3.OperationalError("unable to open database file"), "cannot be used", "ls -l"),
    ],
    ids=str,
)
def test_damage_is_distinguished_from_other_errors(
    store: Store, error: sqlite3.Error, said: str, hint: str
) -> None:
    failure = store.database.failure(error)
    assert said in failure.message
    assert hint in failure.hint


def test_a_query_during_a_rebuild_is_asked_to_wait(
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
