"""The file of outcomes: a real SQLite file, also a broken, a locked and a shared one."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lcursor.errors import JournalFailed, LcursorError
from lcursor.fim import outcomes
from lcursor.fim.outcomes import OutcomeStore, Row, Rows

ROW = Row(
    at_s=1_000.0,
    filetype="python",
    outcome="accepted",
    source="model",
    shown_chars=12,
    kept_chars=12,
    through_keys=2,
    shown_ms=800.0,
    latency_ms=40.5,
    confidence=0.75,
)
Open = Callable[..., "Opened"]
PATIENCE_S = 50.0
"""Disks of test machines may be slow."""


class Opened:
    """A store, the errors that it reported and the rows that it passed on."""

    def __init__(self, path: Path) -> None:
        self.errors: list[LcursorError] = []
        self.learned: list[Rows] = []
        self.store = OutcomeStore(self.errors.append, self.learned.append, path)

    def rows(self) -> Rows:
        return self._ask(self.store.read)

    def reset(self) -> Rows:
        return self._ask(self.store.reset)

    def _ask(self, ask: Callable[[Callable[[Rows], None]], None]) -> Rows:
        answer: list[Rows] = []
        done = threading.Event()

        def then(rows: Rows) -> None:
            answer.append(rows)
            done.set()

        ask(then)
        assert done.wait(PATIENCE_S)
        return answer[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "lcursor" / "outcomes.sqlite3"


@pytest.fixture
def open_store(path: Path) -> Iterator[Open]:
    stores: list[Opened] = []

    def start(at: Path = path) -> Opened:
        stores.append(Opened(at))
        return stores[-1]

    yield start
    for each in stores:
        each.store.close()


def now(**more: Any) -> Row:
    """Return a row of this moment."""
    return replace(ROW, at_s=time.time(), **more)


def test_added_rows_are_read_again(open_store: Open, path: Path) -> None:
    rows = [now(), now(confidence=-1.0)]
    one = open_store()
    for row in rows:
        one.store.add(row)
    assert one.rows() == rows
    one.store.close()
    assert open_store().rows() == rows
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_reading_makes_no_file(open_store: Open, path: Path) -> None:
    one = open_store()
    one.store.refresh()
    assert one.rows() == []
    assert one.learned == [[]]
    assert not path.exists()


def test_each_write_is_reported_to_the_listener(open_store: Open) -> None:
    one = open_store()
    one.store.add(now())
    assert len(one.rows()) == 1
    assert [len(rows) for rows in one.learned] == [1]


def test_two_neovims_write_one_file(open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "LOCKED_S", PATIENCE_S)
    one, other = open_store(), open_store()
    for _ in range(20):
        one.store.add(now())
        other.store.add(now(confidence=0.1))
    one.rows()
    other.rows()
    rows = one.rows()
    assert len(rows) == 40
    assert len([row for row in rows if row.confidence == 0.1]) == 20
    assert not one.errors + other.errors


def test_a_file_that_stays_locked_loses_a_row_and_nothing_else(
    open_store: Open, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "LOCKED_S", 0.01)
    one = open_store()
    one.store.add(now())
    one.rows()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    one.store.add(now())
    assert len(one.rows()) == 1
    other.execute("COMMIT")
    other.close()
    one.store.add(now())
    assert len(one.rows()) == 2
    assert not one.errors


def spoil(path: Path) -> None:
    path.write_bytes(b"this is no database, " * 100)


def replace_by_folder(path: Path) -> None:
    path.mkdir()


def block_folder(path: Path) -> None:
    path.parent.rmdir()
    path.parent.write_text("")


def make_newer(path: Path) -> None:
    base = sqlite3.connect(path)
    base.execute("PRAGMA user_version = 99")
    base.close()


def change_the_table(path: Path) -> None:
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE outcome (at_s REAL)")
    base.commit()
    base.close()


@pytest.mark.parametrize(
    "harm", [spoil, replace_by_folder, block_folder, make_newer, change_the_table]
)
def test_an_unusable_file_is_reported_once_and_left_alone(
    open_store: Open, path: Path, harm: Callable[[Path], None]
) -> None:
    path.parent.mkdir(parents=True)
    harm(path)
    before = path.read_bytes() if path.is_file() else b""
    one = open_store()
    for _ in range(3):
        one.store.add(now())
        assert one.rows() == []
    assert [type(error) for error in one.errors] == [JournalFailed]
    assert str(path) in one.store.problem
    assert "stats reset" in one.errors[0].hint
    if harm is not change_the_table:
        assert (path.read_bytes() if path.is_file() else b"") == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_is_reported_once(open_store: Open, path: Path) -> None:
    first = open_store()
    first.store.add(now())
    first.rows()
    first.store.close()
    path.chmod(0o400)
    one = open_store()
    one.store.add(now())
    one.rows()
    assert [error.code for error in one.errors] == ["journal_failed"]


def test_a_file_that_breaks_while_in_use(open_store: Open, path: Path) -> None:
    one = open_store()
    one.store.add(now())
    one.rows()
    other = sqlite3.connect(path)
    other.execute("DROP TABLE outcome")
    other.close()
    one.store.add(now())
    one.rows()
    assert [error.code for error in one.errors] == ["journal_failed"]
    one.reset()
    one.store.add(now())
    assert len(one.rows()) == 1


def test_reset_deletes_the_rows_of_all_editors(open_store: Open) -> None:
    one, other = open_store(), open_store()
    other.store.add(now())
    other.rows()
    one.store.add(now())
    assert one.reset() == []
    assert other.rows() == []
    assert one.learned[-1] == []
    other.store.add(now())
    assert len(one.rows() or other.rows()) == 1


def test_reset_replaces_a_bad_file(open_store: Open, path: Path) -> None:
    path.parent.mkdir(parents=True)
    spoil(path)
    one = open_store()
    assert one.reset() == []
    one.store.add(now())
    assert len(one.rows()) == 1
    assert one.store.problem == ""


def test_a_deleted_file_starts_again(open_store: Open, path: Path) -> None:
    one = open_store()
    one.store.add(now())
    one.rows()
    path.unlink()
    assert one.rows() == []
    one.store.add(now())
    assert len(one.rows()) == 1
    assert path.exists()


def test_old_rows_are_deleted_at_the_next_start(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "KEEP_ROWS", 50)
    one = open_store()
    one.store.add(replace(ROW, at_s=time.time() - outcomes.KEEP_S - 5))
    for number in range(49):
        one.store.add(now(shown_chars=number))
    one.store.close(PATIENCE_S)
    one = open_store()
    assert [row.shown_chars for row in one.rows()] == list(range(49))
    for number in range(49, 60):
        one.store.add(now(shown_chars=number))
    one.store.close(PATIENCE_S)
    assert [row.shown_chars for row in open_store().rows()] == list(range(10, 60))


def test_a_listener_that_raises_does_not_stop_the_store(path: Path) -> None:
    errors: list[LcursorError] = []

    def broken(rows: Rows) -> None:
        raise ValueError("broken")

    one = OutcomeStore(errors.append, broken, path)
    one.refresh()
    done = threading.Event()
    one.read(lambda rows: done.set())
    assert done.wait(10)
    one.close()
    assert len(errors) == 1


def test_the_default_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert outcomes.default_path() == tmp_path / "lcursor/outcomes.sqlite3"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert outcomes.default_path() == tmp_path / ".local/state/lcursor/outcomes.sqlite3"
