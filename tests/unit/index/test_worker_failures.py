"""The worker when things fail: damage and odd files, as a client sees it."""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from lcursor.errors import IndexFailed
from lcursor.index import store
from lcursor.index.client import Client
from lcursor.project.root import data_folder
from tests.unit.index.workers import FILES, connect, filled, paths
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.process,
    pytest.mark.timeout(300),  # many processes one after the other, on a busy machine
    pytest.mark.usefixtures("home"),
]


class Asker:
    """A client that asks all the time, and remembers what it was told."""

    def __init__(self, root: Path) -> None:
        self.client = connect(root)
        self.errors: list[str] = []
        self.hints: set[str] = set()
        self.counts: list[int] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Asker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(20)
        self.client.close()

    def _ask(self) -> None:
        while not self._is_over.is_set():
            try:
                self.counts.append(len(self.client.search("needle7 needle8 needle9")))
            except IndexFailed as error:
                self.errors.append(error.message)
                self.hints.add(error.hint)


def connect_settled(path: Path) -> sqlite3.Connection:
    """Open the database with an empty log, from which SQLite would restore what is missing."""
    base = sqlite3.connect(path)
    wait_for(lambda: base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)
    return base


def spoil(path: Path) -> None:
    """Overwrite pages that every question needs."""
    base = connect_settled(path)
    pages = [row[0] for row in base.execute("SELECT rootpage FROM sqlite_master WHERE rootpage")]
    base.close()
    with path.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * 4096 + (100 if page == 1 else 0))
            file.write(b"\xff" * 3900)


def test_damage_during_queries_is_repaired_and_reported_once(root: Path) -> None:
    numbers = itertools.count()
    with connect(root) as client:
        client.call("begin")
        pid = filled(client)["pid"]
        with Asker(root) as asker:
            wait_for(lambda: asker.counts)
            spoil(data_folder(root) / store.FILE)

            def change() -> None:
                (root / "f3.py").write_text(f"fresh_words = {next(numbers)}\n")
                client.notify("changed", paths=["f3.py"])

            def is_noticed() -> bool:
                """Change the index, so that the asker reads the damaged file; ask for remarks.

                One change after the other: changes without a pause are waited out as a storm.
                """
                state = client.call("status")
                if state["phase"] == "ready":
                    change()
                    time.sleep(0.2)
                return bool(state["remarks"])

            wait_for(is_noticed, timeout_s=120, what="the damage is found")
            filled(client)
            change()
            wait_for(lambda: "fresh_words" in _texts(client, "fresh_words"))
            asked = len(asker.counts)
            wait_for(lambda: len(asker.counts) > asked + 3)
        state = client.call("status")
        assert state["pid"] == pid, "the process lives on"
        [said] = state["remarks"]
        assert "damaged" in said
        assert "is being rebuilt" in said
        assert asker.counts[-1] >= 3
        assert not [error for error in asker.errors if "no such table" in error]
        assert all("being rebuilt" in error for error in asker.errors), set(asker.errors)
        assert asker.hints <= {"Try again in a moment"}


def _texts(client: Client, words: str) -> str:
    try:
        return " ".join(hit.text for hit in client.search(words))
    except IndexFailed:
        return ""


NAMES = [b"a b.py", b"new\nline.py", b"latin\xe9.py", "ünïcode.py".encode(), b"-rf.py", b"'q\".py"]


def test_odd_names_and_contents_are_indexed(root: Path) -> None:
    for number, name in enumerate(NAMES):
        with open(os.path.join(os.fsencode(root), name), "wb") as file:
            file.write(b"# \xff\xfe\nx = 'oddity%d caf\xe9'\n" % number)
    with connect(root) as client:
        client.call("begin")
        wait_for(lambda: client.call("status")["files"] == FILES + len(NAMES))
        for number, name in enumerate(NAMES):
            path = os.fsdecode(name)
            [hit] = client.search(f"oddity{number}", limit=1)
            assert hit.path == path
            assert "café" in hit.text
            assert (root / hit.path).exists()
            assert client.call("why", path=path)["is_indexed"]
            client.call("buffer", path=path, text=f"unsaved{number} = 1\n")
            assert paths(client, f"unsaved{number}")[0] == path
            client.notify("recent", paths=[path])
        os.rename(root / os.fsdecode(NAMES[2]), root / os.fsdecode(b"\xfe\xff.py"))
        client.call("buffer", path=os.fsdecode(NAMES[2]), text=None)
        wait_for(lambda: paths(client, "oddity2")[:1] == [os.fsdecode(b"\xfe\xff.py")])
        assert client.call("status")["remarks"] == []
