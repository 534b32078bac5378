"""The record of accepts: a real SQLite file, also a broken, a locked and a shared one."""

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
Open = Callable[..., "Book"]


class Book:
    """A journal and what it said."""

    def __init__(self, path: Path) -> None:
        self.errors: list[LcursorError] = []
        self.learned: list[Rows] = []
        self.journal = OutcomeStore(self.errors.append, self.learned.append, path)

    def rows(self) -> Rows:
        return self._ask(self.journal.read)

    def reset(self) -> Rows:
        return self._ask(self.journal.reset)

    def _ask(self, ask: Callable[[Callable[[Rows], None]], None]) -> Rows:
        answer: list[Rows] = []
        done = threading.Event()

        def then(rows: Rows) -> None:
            answer.append(rows)
            done.set()

        ask(then)
        assert done.wait(10)
        return answer[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "lcursor" / "outcomes.sqlite3"


@pytest.fixture
def book(path: Path) -> Iterator[Open]:
    books: list[Book] = []

    def start(at: Path = path) -> Book:
        books.append(Book(at))
        return books[-1]

    yield start
    for each in books:
        each.journal.close()


def now(**more: Any) -> Row:
    """Return a row of this moment."""
    return replace(ROW, at_s=time.time(), **more)


def test_what_is_added_is_read_again(book: Open, path: Path) -> None:
    rows = [now(), now(confidence=-1.0)]
    one = book()
    for row in rows:
        one.journal.add(row)
    assert one.rows() == rows
    one.journal.close()
    assert book().rows() == rows
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_closing_writes_what_waits(book: Open) -> None:
    one = book()
    one.journal.add(now())
    assert len(one.rows()) == 1  # a write was a moment ago: the next one would wait
    one.journal.add(now())
    one.journal.close()
    assert len(book().rows()) == 2


def test_reading_makes_no_file(book: Open, path: Path) -> None:
    one = book()
    one.journal.refresh()
    assert one.rows() == []
    assert one.learned == [[]]
    assert not path.exists()


def test_each_write_is_told(book: Open) -> None:
    one = book()
    one.journal.add(now())
    assert len(one.rows()) == 1
    assert [len(rows) for rows in one.learned] == [1]


def test_two_neovims_write_one_file(book: Open) -> None:
    one, other = book(), book()
    for _ in range(20):
        one.journal.add(now())
        other.journal.add(now(confidence=0.1))
    one.rows()
    other.rows()
    rows = one.rows()
    assert len(rows) == 40
    assert len([row for row in rows if row.confidence == 0.1]) == 20
    assert not one.errors + other.errors


def test_a_locked_file_is_waited_for(
    book: Open, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda name, timeout: connect(name, timeout=0.01))
    one = book()
    one.journal.add(now())
    one.rows()
    other = connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    one.journal.add(now())
    assert len(one.rows()) == 1
    other.execute("COMMIT")
    other.close()
    assert len(one.rows()) == 2
    assert not one.errors


def spoil(path: Path) -> None:
    path.write_bytes(b"this is no database, " * 100)


def replace_by_folder(path: Path) -> None:
    path.mkdir()


def make_newer(path: Path) -> None:
    base = sqlite3.connect(path)
    base.execute("PRAGMA user_version = 99")
    base.close()


def change_the_table(path: Path) -> None:
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE outcome (at_s REAL)")
    base.commit()
    base.close()


@pytest.mark.parametrize("harm", [spoil, replace_by_folder, make_newer, change_the_table])
def test_a_bad_file_is_told_once_and_left_alone(
    book: Open, path: Path, harm: Callable[[Path], None]
) -> None:
    path.parent.mkdir(parents=True)
    harm(path)
    before = path.read_bytes() if path.is_file() else b""
    one = book()
    for _ in range(3):
        one.journal.add(now())
        assert one.rows() == []
    assert [type(error) for error in one.errors] == [JournalFailed]
    assert str(path) in one.journal.problem
    assert "stats reset" in one.errors[0].hint
    if harm is not change_the_table:
        assert (path.read_bytes() if path.is_file() else b"") == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_is_told_once(book: Open, path: Path) -> None:
    first = book()
    first.journal.add(now())
    first.rows()
    first.journal.close()
    path.chmod(0o400)
    one = book()
    one.journal.add(now())
    one.rows()
    assert [error.code for error in one.errors] == ["journal_failed"]


def test_a_folder_that_cannot_be_made_is_told_once(book: Open, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    one = book(tmp_path / "file" / "lcursor" / "outcomes.sqlite3")
    one.journal.add(now())
    one.journal.add(now())
    assert one.rows() == []
    assert len(one.errors) == 1


def test_a_file_that_breaks_while_in_use(book: Open, path: Path) -> None:
    one = book()
    one.journal.add(now())
    one.rows()
    other = sqlite3.connect(path)
    other.execute("DROP TABLE outcome")
    other.close()
    one.journal.add(now())
    one.rows()
    assert [error.code for error in one.errors] == ["journal_failed"]
    one.reset()
    one.journal.add(now())
    assert len(one.rows()) == 1


def test_reset_forgets_what_all_wrote(book: Open) -> None:
    one, other = book(), book()
    other.journal.add(now())
    other.rows()
    one.journal.add(now())
    assert one.reset() == []
    assert other.rows() == []
    assert one.learned[-1] == []
    other.journal.add(now())
    assert len(one.rows() or other.rows()) == 1


def test_reset_replaces_a_bad_file(book: Open, path: Path) -> None:
    path.parent.mkdir(parents=True)
    spoil(path)
    one = book()
    assert one.reset() == []
    one.journal.add(now())
    assert len(one.rows()) == 1
    assert one.journal.problem == ""


def test_a_deleted_file_begins_anew(book: Open, path: Path) -> None:
    one = book()
    one.journal.add(now())
    one.rows()
    path.unlink()
    assert one.rows() == []
    one.journal.add(now())
    assert len(one.rows()) == 1
    assert path.exists()


def test_it_stays_small(book: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "KEEP_ROWS", 50)
    monkeypatch.setattr(outcomes, "PRUNE_EVERY", 20)
    one = book()
    one.journal.add(replace(ROW, at_s=time.time() - outcomes.KEEP_S - 5))
    one.rows()
    for number in range(100):
        one.journal.add(now(shown_chars=number))
        if number % 10 == 9:
            one.rows()
    rows = one.rows()
    assert [row.shown_chars for row in rows] == list(range(50, 100))
    assert one.reset() == []


def test_old_rows_go(book: Open, path: Path) -> None:
    one = book()
    one.journal.add(replace(ROW, at_s=time.time() - outcomes.KEEP_S - 5))
    one.journal.add(now())
    assert len(one.rows()) == 1


def test_a_listener_that_breaks_is_no_end(path: Path) -> None:
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


def test_the_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert outcomes.default_path() == tmp_path / "lcursor/outcomes.sqlite3"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert outcomes.default_path() == tmp_path / ".local/state/lcursor/outcomes.sqlite3"
