"""The worker when things fail: damage, a full disk, odd files, as a client sees it."""

from __future__ import annotations

import itertools
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.errors import IndexFailed
from lcursor.index import launch, store
from lcursor.index.client import Client
from lcursor.project.root import data_folder
from tests.unit.index.workers import (
    FILES,
    connect,
    end,
    filled,
    is_free,
    listens,
    make,
    paths,
)
from tests.unit.project.trees import modules
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


def cut(path: Path) -> None:
    """Truncate the database."""
    connect_settled(path).close()
    os.truncate(path, 5000)


def empty(path: Path) -> None:
    """Leave nothing but the name."""
    connect_settled(path).close()
    os.truncate(path, 0)


@pytest.mark.parametrize("damage", [spoil, cut, empty], ids=lambda one: one.__name__)
def test_damage_during_queries_is_repaired_and_reported_once(
    root: Path, damage: Callable[[Path], None]
) -> None:
    numbers = itertools.count()
    with connect(root) as client:
        client.call("begin")
        pid = filled(client)["pid"]
        with Asker(root) as asker:
            wait_for(lambda: asker.counts)
            damage(data_folder(root) / store.FILE)

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
        assert asker.hints <= {"Ask again in a moment"}


def _texts(client: Client, words: str) -> str:
    try:
        return " ".join(hit.text for hit in client.search(words))
    except IndexFailed:
        return ""


def test_damage_between_two_workers_is_reported_by_the_second(root: Path) -> None:
    with connect(root) as client:
        client.call("begin")
        filled(client)
        client.call("stop")
    wait_for(lambda: is_free(root))
    cut(data_folder(root) / store.FILE)
    with connect(root) as client:
        state = filled(client)
        assert paths(client, "needle7")[0] == "f7.py"
        [said] = state["remarks"]
        assert "damaged" in said
        client.call("stop")
    wait_for(lambda: is_free(root))
    with connect(root) as client:
        assert filled(client)["remarks"] == [], "said once"


def fat(root: Path) -> None:
    """Write files that an index of a megabyte cannot hold."""
    for number in range(FILES):
        text = f"def f{number}():\n    return 'needle{number}'\n\n\n"
        more = "".join(f"v{number}_{at} = {at * 7919}\n" for at in range(300))
        (root / f"f{number}.py").write_text(text + more)


def runs_into_a_full_disk(client: Client) -> dict[str, Any]:
    """Begin, wait for the failure, and return the state."""
    client.call("begin")
    wait_for(lambda: client.call("status")["phase"] == "failed")
    state: dict[str, Any] = client.call("status")
    assert "df -h" in state["detail"]
    assert 0 < state["files"] < FILES
    assert client.search("needle"), "what was read before is found"
    assert len(state["remarks"]) == 1
    return state


def goes_on(client: Client) -> None:
    """Begin again, now that there is room."""
    client.call("begin")
    assert len(filled(client)["remarks"]) == 1
    assert paths(client, "needle7")[0] == "f7.py"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lifts the limit of another process")
def test_a_file_that_may_not_grow_is_a_sentence_too(root: Path) -> None:
    fat(root)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))

    process = subprocess.Popen(
        [*launch.COMMAND, str(root), "--embedder", "none"],
        preexec_fn=limit,
    )
    try:
        wait_for(lambda: listens(root))
        with Client.connect(root, start=False) as client:
            runs_into_a_full_disk(client)
            limits = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)
            goes_on(client)
    finally:
        process.terminate()
        process.wait(20)


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


def test_links_in_circles_and_unreadable_files_are_no_obstacle(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "up").symlink_to("..")
    (root / "self.py").symlink_to("self.py")
    (root / "twice.py").symlink_to("f7.py")
    os.mkfifo(root / "pipe.py")
    with connect(root) as client:
        client.call("begin")
        filled(client)
        assert paths(client, "needle7").count("f7.py") == 1
        assert not [path for path in paths(client, "needle7") if path.startswith(("sub", "twice"))]
        for path in ("self.py", "sub/up/f7.py", "pipe.py"):
            assert client.call("why", path=path)["reason"], path


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one: a hundred thousand files take long on a disk."""
    shared = Path("/dev/shm")
    at = shared if os.access(shared, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=at) as name:
        yield Path(name)


def test_a_hundred_thousand_modules_are_not_watched_and_not_read(memory: Path, home: Path) -> None:
    root = memory / "project"
    make(root)
    modules(root, 100, 1_000)
    try:
        leaves_modules_alone(root)
    finally:
        end(root)


def leaves_modules_alone(root: Path) -> None:
    """Index a project, and look what is watched."""
    with connect(root) as client:
        client.call("begin")
        state = filled(client)
        assert state["watching"] == "watching"
        assert state["memory_bytes"] < 400 << 20
        folder = Path(f"/proc/{state['pid']}/fdinfo")
        watches = sum(
            line.startswith("inotify wd") for one in folder.iterdir() for line in _lines(one)
        )
        assert 0 < watches <= 3
        (root / "node_modules/p7/7.js").write_text("needleless = 1\n")
        (root / "f7.py").write_text("needleful = 1\n")
        wait_for(lambda: paths(client, "needleful") == ["f7.py"])
        assert paths(client, "needleless") == []
        assert "node_modules" in client.call("why", path="node_modules/p7/7.js")["reason"]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:  # a file that was closed meanwhile
        return []
