"""Many files parsed in separate processes, also when one of those dies."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lcursor.index import parse
from lcursor.index.parse import GROUP_FILES, MAX_CRASHES, ParsePool, ParseResult, parse_file
from tests.waiting import is_running, wait_for

pytestmark = pytest.mark.process
COUNT = GROUP_FILES * 5 + 3
DEADLINE_S = 60.0


def crash_on_n7(root: Path, group: Sequence[parse.Wanted]) -> list[ParseResult]:
    """Stand for a grammar with a defect."""
    if any(path == "n7.py" for path, _ in group):
        os.abort()
    return [parse_file(root, path, known) for path, known in group]


def crash_always(*_: object) -> list[ParseResult]:
    os.abort()


def return_much(root: Path, group: Sequence[parse.Wanted]) -> list[ParseResult]:
    """Return more than fits into a pipe, so that sending it takes a while."""
    return [ParseResult(path + "x" * 500_000) for path, _ in group]


class Project:
    """Some files, and what parses them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.digests: dict[str, bytes] = {}
        self.pool = ParsePool(root, self.digests.get)
        self.results: dict[str, ParseResult] = {}
        self.names = [f"n{number}.py" for number in range(COUNT)]
        for name in self.names:
            (root / name).write_text(f"def in_{name[:-3]}():\n    return 1\n")

    def start(self) -> None:
        self.pool.start()
        wait_for(self.pool._is_ready, timeout_s=DEADLINE_S)

    def parse_all(self, names: Sequence[str]) -> None:
        waiting = deque(names)
        deadline_s = time.monotonic() + DEADLINE_S
        while waiting or self.pool.is_busy:
            assert time.monotonic() < deadline_s
            self.results.update((one.path, one) for one in self.pool.next(waiting))

    def symbols(self) -> list[str]:
        parsed = [one.parsed for one in self.results.values() if one.parsed]
        return sorted(symbol.name for each in parsed for symbol in each.symbols)

    def wanted(self, *less: str) -> list[str]:
        return sorted(f"in_{name[:-3]}" for name in self.names if name not in less)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path)
    yield project
    project.pool.close()


def test_all_files_are_parsed_elsewhere_and_known_ones_are_not_parsed(project: Project) -> None:
    state = parse_file(project.root, "n3.py", None).state
    assert state
    project.digests["n3.py"] = state.digest
    project.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parse, "parse_file", None)  # not in this process
        project.parse_all(project.names)
    assert project.symbols() == project.wanted("n3.py")
    assert project.results["n3.py"] == ParseResult("n3.py", state)


def test_without_processes_files_are_parsed_here(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no process can be started")

    monkeypatch.setattr(parse, "ProcessPoolExecutor", fail)
    project.pool.start()
    project.parse_all(project.names)
    assert project.symbols() == project.wanted()


def test_processes_that_die_at_their_start_are_not_started_for_ever(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse, "_initialize", crash_always)
    project.pool.start()
    project.parse_all(project.names)
    assert project.symbols() == project.wanted()
    assert project.pool._crashes <= MAX_CRASHES


def test_a_killed_process_loses_nothing(project: Project) -> None:
    project.start()
    waiting = deque(project.names)
    results = project.pool.next(waiting)
    project.results.update((one.path, one) for one in results)
    for process in multiprocessing.active_children():
        process.kill()
    project.parse_all(waiting)
    assert project.symbols() == project.wanted()
    assert not any(one.is_fatal for one in project.results.values())


def test_a_file_that_crashes_the_parser_is_found(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse, "parse_group", crash_on_n7)
    project.start()
    project.parse_all(project.names)
    assert project.symbols() == project.wanted("n7.py")
    [fatal] = [one for one in project.results.values() if one.is_fatal]
    assert (fatal.path, fatal.parsed) == ("n7.py", parse.NOTHING)
    assert fatal.state


def test_a_file_that_changed_since_is_parsed_again(project: Project) -> None:
    project.start()
    waiting = deque(project.names[:GROUP_FILES])
    project.pool._submit(waiting)
    project.pool._groups[0][0].result()
    (project.root / "n2.py").write_text("def in_later():\n    return 3\n")
    project.parse_all(waiting)
    assert project.symbols() == sorted(
        ["in_later", *(f"in_n{number}" for number in range(GROUP_FILES) if number != 2)]
    )


def test_closing_while_results_are_sent_leaves_no_thread_behind(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse, "parse_group", return_much)
    project.start()
    before = threading.active_count()
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(10.0)
    try:
        project.pool._submit(deque(project.names))
        time.sleep(0.05)  # the groups go out
        end_s = time.monotonic() + 0.5
        while time.monotonic() < end_s:  # nobody reads, so the processes wait in the middle
            pass
        project.pool.close()
    finally:
        sys.setswitchinterval(interval_s)
    wait_for(lambda: threading.active_count() < before, what="the thread that reads ends")
    wait_for(lambda: not multiprocessing.active_children(), what="the processes end")


def test_the_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    script = (
        "import sys, os; sys.path.insert(0, sys.argv[1])\n"
        "import multiprocessing\n"
        "from pathlib import Path\n"
        "from lcursor.index.parse import ParsePool\n"
        "pool = ParsePool(Path('.'), lambda path: None)\n"
        "pool.start()\n"
        "while not pool._is_ready(): pass\n"
        "print(*[one.pid for one in multiprocessing.active_children()], flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    package = str(Path(parse.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script, package], capture_output=True, text=True, check=False
    )
    pids = [int(pid) for pid in done.stdout.split()]
    assert pids
    wait_for(lambda: not any(is_running(pid) for pid in pids), what="they end")
