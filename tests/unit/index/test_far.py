"""Files in great number, read by a real process of their own, also when that ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.index import bulk
from lcursor.index.far import GROUP_FILES, MOST_DEATHS, Far
from lcursor.index.filler import Batch, Filler
from lcursor.index.store import Store
from lcursor.llm import lease
from tests.waiting import wait_for

pytestmark = pytest.mark.process
COUNT = GROUP_FILES * 5 + 3
DEADLINE_S = 30.0
FATAL = """
import os, sys
sys.path.insert(0, {package!r})
from lcursor.index import bulk_main, taking
take = taking.take
def deadly(root, path, known):
    if path == "n7.py":
        os.abort()
    return take(root, path, known)
taking.take = deadly
bulk_main.main()
"""


class Desk:
    """A project of some files, and what reads it."""

    def __init__(self, root: Path, store: Store) -> None:
        self.root, self.store = root, store
        self.remarks: list[str] = []
        self.filler = Filler(root, store)
        self.filler.load()
        self.far = Far(root, self.filler, self.remarks.append)
        self.names = [f"n{number}.py" for number in range(COUNT)]
        for name in self.names:
            (root / name).write_text(f"def in_{name[:-3]}():\n    return 1\n")

    def ready(self) -> None:
        """Wait for the process."""
        self.far.start()
        wait_for(lambda: self.far._bulks and all(each.is_ready for each in self.far._bulks))

    def all(self, waiting: deque[str]) -> int:
        """Read what waits; return how many files were read in this process."""
        here = 0
        deadline_s = time.monotonic() + DEADLINE_S
        while waiting or self.far.is_busy:
            assert time.monotonic() < deadline_s
            batch = Batch()
            if not self.far.take(waiting, batch) and waiting:
                self.filler.take(waiting.popleft(), batch)
                here += 1
            self.filler.write(batch)
        return here

    def found(self) -> list[str]:
        return sorted(
            one.symbol.name for one in self.store.reader().symbols("in_", 999, prefix=True)
        )

    def wanted(self, *less: str) -> list[str]:
        return sorted(f"in_{name[:-3]}" for name in self.names if name not in less)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    root = tmp_path / "project"
    root.mkdir()
    store = Store(tmp_path / "index")
    desk = Desk(root, store)
    yield desk
    desk.far.close()
    store.close()


def test_all_files_are_read_elsewhere(desk: Desk) -> None:
    desk.ready()
    assert desk.all(deque(desk.names)) == 0
    assert desk.found() == desk.wanted()


def test_what_is_known_is_not_read_anew(desk: Desk) -> None:
    desk.ready()
    desk.all(deque(desk.names))
    generation = desk.store.generation
    (desk.root / "n3.py").write_text("def in_other():\n    return 2\n")
    os.utime(desk.root / "n4.py", ns=(1, 1))
    desk.all(deque(desk.names))
    assert "in_other" in desk.found()
    assert desk.filler.known["n4.py"].mtime_ns == 1
    assert desk.store.generation > generation


def test_without_a_process_all_goes_on_here(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    desk.far.start()
    assert desk.all(deque(desk.names)) == COUNT
    assert desk.found() == desk.wanted()


def test_a_process_that_is_killed_loses_nothing(desk: Desk) -> None:
    desk.ready()
    waiting = deque(desk.names)
    desk.far.take(waiting, Batch())  # what was read of the first group is lost with this batch
    os.kill(desk.far._bulks[0].pid, signal.SIGKILL)
    desk.all(waiting)
    desk.all(deque(name for name in desk.names if name not in desk.filler.known))
    assert desk.found() == desk.wanted()
    assert not desk.remarks


def test_a_file_that_ends_the_process_is_named_and_left(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = tmp_path / "deadly.py"
    entry.write_text(FATAL.format(package=str(Path(bulk.__file__).parents[2])))
    monkeypatch.setattr(bulk, "ENTRY", entry)
    desk.ready()
    waiting = deque(desk.names)
    deadline_s = time.monotonic() + DEADLINE_S
    while waiting or desk.far.is_busy:
        assert time.monotonic() < deadline_s
        batch = Batch()
        if not desk.far.take(waiting, batch):
            time.sleep(0.01)  # the next process starts
        desk.filler.write(batch)
    assert desk.found() == desk.wanted("n7.py")
    assert len(desk.remarks) == 1
    assert "n7.py" in desk.remarks[0]
    assert "n7.py" in desk.filler.known  # so that it is not tried again and again


def test_a_process_that_never_lives_is_not_started_for_ever(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = tmp_path / "dead.py"
    entry.write_text("")
    monkeypatch.setattr(bulk, "ENTRY", entry)
    desk.far.start()
    desk.all(deque(desk.names))
    assert desk.far._deaths <= MOST_DEATHS
    assert desk.found() == desk.wanted()
    assert not desk.remarks


def test_a_file_that_changed_since_is_read_again(desk: Desk) -> None:
    desk.ready()
    waiting = deque(desk.names[:GROUP_FILES])
    one = desk.far._bulks[0]
    desk.far._feed(one, waiting)
    stdout = one._process.stdout
    assert stdout is not None
    assert select.select([stdout], [], [], DEADLINE_S)[0], "it has answered"
    (desk.root / "n2.py").write_text("def in_later():\n    return 3\n")
    desk.all(waiting)
    assert "in_later" in desk.found()
    assert "in_n2" not in desk.found()


def test_the_process_ends_with_the_one_that_asks(tmp_path: Path) -> None:
    script = (
        "import sys, os; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from lcursor.index.bulk import Bulk\n"
        "print(Bulk(Path('.')).pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    package = str(Path(bulk.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script, package], capture_output=True, text=True, check=False
    )
    pid = int(done.stdout)
    wait_for(lambda: lease.ticks(pid) == 0, what="it ends")
