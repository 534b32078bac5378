"""From the files of a project to a filled store."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from lcursor.errors import IndexFailed, ModelMissing
from lcursor.index import embed, pipeline
from lcursor.index.chunk_embedder import ChunkEmbedder
from lcursor.index.pipeline import Pipeline, Progress
from lcursor.index.reader import IndexReader
from lcursor.index.store import Store
from lcursor.index.throttle import Throttle
from lcursor.index.watch import Watcher
from lcursor.project import listing
from lcursor.project.secrets import SecretGlobs
from tests.waiting import wait_for


class IndexedProject:
    """A pipeline with its store, and what it said."""

    def __init__(self, root: Path, folder: Path, throttle: Throttle | None = None) -> None:
        self.root = root
        self.store = Store(folder)
        self.reader: IndexReader = self.store.reader()
        self.throttle = throttle or Throttle()
        self.remarks: list[str] = []
        self.phases: list[str] = []
        self.embedder = ChunkEmbedder("none", self.reader)
        self.pipe = self.pipeline("watching")

    def pipeline(self, mode: str) -> Pipeline:
        """Return a pipeline with a watcher that is in a mode and reports nothing."""
        return Pipeline(
            self.root,
            self.store,
            self.throttle,
            self.embedder,
            cast(Watcher, FakeWatcher(mode)),
            SecretGlobs(self.root),
            self._told,
            self.remarks.append,
        )

    def _told(self) -> None:
        progress = self.pipe.progress
        phase = "paused" if progress.is_paused else progress.phase
        if self.phases[-1:] != [phase]:
            self.phases.append(phase)

    def paths(self) -> set[str]:
        return set(self.reader.files())

    def text(self, path: str) -> str:
        return "\n".join(one.text for one in self.reader.chunks_of(path))

    def wait(self, what: Callable[[], object]) -> None:
        wait_for(what)

    def ready(self) -> None:
        self.wait(lambda: self.pipe.progress.phase == "ready" and not self.pipe._has_work())

    def fill(self) -> None:
        self.pipe.begin()
        self.ready()

    def close(self) -> None:
        assert self.pipe.stop(timeout_s=30)
        self.reader.close()
        self.store.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
def project(root: Path, tmp_path: Path) -> Iterator[IndexedProject]:
    project = IndexedProject(root, tmp_path / "index")
    yield project
    project.close()


def write(root: Path, name: str, text: str | bytes = "") -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


class Embedder:
    """Returns any vectors."""

    name, dim, on_gpu = "any", 8, False

    def __init__(self, spec: object) -> None: ...

    def texts(self, texts: Sequence[str], threads: int = 1) -> NDArray[np.float32]:
        return np.ones((len(texts), self.dim), np.float32)


def test_an_embedder_that_is_downloaded_later_is_used_from_the_next_change_on(
    root: Path, project: IndexedProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(spec: object) -> None:
        raise ModelMissing("it is not on this machine", "pull it")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(embed, "Embedder", missing)
    monkeypatch.setattr(embed, "find", lambda name: None)
    write(root, "a.py", "def alpha():\n    return 1\n")
    project.embedder = ChunkEmbedder("", project.store.reader())
    project.pipe = project.pipeline("watching")
    project.fill()
    assert "pull it" in project.embedder.note
    monkeypatch.setattr(embed, "Embedder", Embedder)
    write(root, "a.py", "def beta():\n    return 2\n")
    project.pipe.changed(["a.py"])
    wait_for(lambda: project.embedder.vectors is not None and project.embedder.left == 0)
    assert project.embedder.note == ""


def test_progress_counts_the_whole_and_continues_after_a_survey(
    root: Path, project: IndexedProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(embed, "Embedder", Embedder)
    monkeypatch.setattr(embed, "find", lambda name: None)
    monkeypatch.setattr(pipeline, "MAX_BATCH_FILES", 5)
    for number in range(40):
        write(root, f"f{number}.py", f"def alpha{number}():\n    return {number}\n")
    project.embedder = ChunkEmbedder("", project.store.reader())
    project.pipe = project.pipeline("watching")
    seen: list[tuple[str, int, int]] = []
    surveyed = {"reading": 20, "embedding": 60}
    """What was done in each phase before another survey."""

    def look() -> None:
        progress = project.pipe.progress
        if progress.total:
            seen.append((progress.phase, progress.done, progress.total))
            if progress.done >= surveyed.get(progress.phase, 10**6):
                del surveyed[progress.phase]
                project.pipe.survey()

    monkeypatch.setattr(project.pipe, "_on_change", look)
    project.fill()
    for number in range(40, 80):
        write(root, f"f{number}.py", f"def alpha{number}():\n    return {number}\n")
    project.fill()
    assert surveyed == {}
    for phase, totals in (("reading", {40, 80}), ("embedding", {40, 80})):
        found = [(done, total) for name, done, total in seen if name == phase]
        assert {total for _, total in found} == totals
        assert [done for done, _ in found] == sorted(done for done, _ in found)
        assert found[-1] == (80, 80)


def test_the_time_left_follows_from_what_was_done_since_the_start() -> None:
    def left(done: int) -> float:
        since_s = time.monotonic() - 10
        return Progress("embedding", done, 400, begun=200, since_s=since_s).seconds_left

    assert left(200) == left(207) == -1
    assert left(300) == pytest.approx(10, abs=1)


def test_all_files_are_found_and_nothing_else(root: Path, project: IndexedProject) -> None:
    write(root, "a.py", "def alpha():\n    pass\n")
    write(root, "sub/ü b\n.lua", "local beta = 1\n")
    write(root, os.fsdecode(b"odd\xff.txt"), b"latin \xe9t\xe9 gamma\n")
    write(root, ".env", "SECRET=hunter2\n")
    write(root, "key.txt", "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n")
    write(root, "binary.dat", b"\0\1\2hunter2" * 100)
    write(root, "node_modules/x/index.js", "hunter2()\n")
    write(root, "empty.py")
    (root / "loop").symlink_to(".")
    project.fill()
    chunks = {path: project.text(path) for path in project.paths()}
    assert not any("hunter2" in text for text in chunks.values())
    assert "alpha" in chunks["a.py"]
    assert "beta" in chunks["sub/ü b\n.lua"]
    assert "été gamma" in chunks[os.fsdecode(b"odd\xff.txt")]
    assert project.phases[-1] == "ready"
    assert not project.remarks


def test_a_second_start_reads_nothing(root: Path, tmp_path: Path) -> None:
    for number in range(20):
        write(root, f"f{number}.py", f"value = {number}\n")
    write(root, "binary.dat", b"\0" * 100)
    first = IndexedProject(root, tmp_path / "index")
    first.fill()
    generation = first.store.revision
    first.close()
    second = IndexedProject(root, tmp_path / "index")
    second.fill()
    assert second.store.revision == generation
    assert "reading" not in second.phases
    second.close()


def test_changes_are_followed_one_by_one(root: Path, project: IndexedProject) -> None:
    write(root, "a.py", "alpha = 1\n")
    write(root, "sub/b.py", "beta = 1\n")
    project.fill()
    write(root, "a.py", "gamma = 1\n")
    project.pipe.changed(["a.py"])
    project.wait(lambda: "gamma" in project.text("a.py"))
    write(root, "sub/new.py", "delta = 1\n")
    project.pipe.changed(["sub/new.py"])
    project.wait(lambda: "delta" in project.text("sub/new.py"))
    (root / "a.py").unlink()
    project.pipe.changed(["a.py"])
    project.wait(lambda: "a.py" not in project.paths())
    os.rename(root / "sub", root / "moved")
    project.pipe.changed(["sub"], is_accepted=True)
    project.wait(lambda: not project.paths())
    project.pipe.survey()
    project.wait(lambda: project.paths() == {"moved/b.py", "moved/new.py"})


def test_a_client_cannot_have_anything_read_that_is_left_out(
    root: Path, project: IndexedProject
) -> None:
    write(root, "a.py", "alpha = 1\n")
    write(root, ".lcursorignore", "private/\n")
    write(root, "private/x.py", "hunter2 = 1\n")
    write(root, "../outside.py", "hunter2 = 1\n")
    (root / "link").symlink_to(root.parent)
    project.fill()
    odd = ["private/x.py", "../outside.py", "link/outside.py", str(root / "../outside.py"), ".env"]
    project.pipe.recent(odd)
    project.pipe.changed([*odd, "a.py"])
    project.ready()
    assert "a.py" in project.paths()
    assert not project.paths() & set(odd)


def test_touched_files_keep_their_chunks(root: Path, project: IndexedProject) -> None:
    write(root, "a.py", "alpha = 1\n")
    project.fill()
    before = [one.id for one in project.reader.chunks_of("a.py")]
    os.utime(root / "a.py", (1, 1))
    project.pipe.begin()
    project.wait(lambda: project.store.files()["a.py"].mtime_ns == 10**9)
    assert [one.id for one in project.reader.chunks_of("a.py")] == before


def test_typing_pauses_bulk_work_but_not_saved_files(root: Path, tmp_path: Path) -> None:
    for number in range(50):
        write(root, f"f{number}.py", f"value = {number}\n")
    project = IndexedProject(root, tmp_path / "index", Throttle(typing_s=60))
    project.throttle.typing()
    project.pipe.begin()
    project.pipe.changed(["f7.py"])
    project.wait(lambda: "f7.py" in project.paths())
    project.wait(lambda: project.phases[-1:] == ["paused"])
    assert project.paths() == {"f7.py"}
    write(root, "f7.py", "saved = 1\n")
    project.pipe.changed(["f7.py"])
    project.wait(lambda: "saved" in project.text("f7.py"))
    assert project.paths() == {"f7.py"}
    project.throttle._until_s = 0.0  # a minute later
    project.pipe.begin()
    project.ready()
    assert len(project.paths()) == 50
    project.close()


def test_open_files_are_read_first(
    root: Path, project: IndexedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        write(root, f"f{number}.py", f"value = {number}\n")
    surveyed: list[set[str]] = []
    real = listing.survey

    def survey(*args: object, **more: object) -> listing.Survey:
        surveyed.append(project.paths())
        return real(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(listing, "survey", survey)
    project.pipe.recent(["f9.py", "missing.py", "f3.py"])
    project.fill()
    assert surveyed[0] == {"f9.py", "f3.py"}
    assert len(project.paths()) == 30


@pytest.mark.process
def test_indexing_that_was_stopped_at_any_moment_can_be_continued(
    root: Path, tmp_path: Path
) -> None:
    for number in range(300):
        write(root, f"f{number}.py", f"def f{number}():\n    return {number}\n" * 10)
    for count in (0, 1, 20, 100, 200):
        project = IndexedProject(root, tmp_path / "index")
        project.pipe.begin()
        project.wait(lambda: len(project.paths()) >= count)  # noqa: B023 - called here
        project.close()
    project = IndexedProject(root, tmp_path / "index")
    project.fill()
    assert len(project.paths()) == 300
    texts = [one.text for path in project.paths() for one in project.reader.chunks_of(path)]
    assert project.reader.counts().chunks == len(texts)
    assert sum(text.count("def ") for text in texts) == 3000
    project.close()


def test_a_root_that_went_away_is_not_an_empty_project(root: Path, project: IndexedProject) -> None:
    write(root, "a.py", "alpha = 1\n")
    project.fill()
    os.rename(root, root.with_name("unmounted"))
    project.pipe.begin()
    project.wait(lambda: project.pipe.progress.phase == "failed")
    assert project.paths() == {"a.py"}
    assert "there is no directory" in project.remarks[0]
    os.rename(root.with_name("unmounted"), root)
    project.pipe.changed(["a.py"])  # something happens: it looks again
    project.ready()
    assert project.paths() == {"a.py"}
    assert len(project.remarks) == 1


def test_a_full_disk_is_reported_once_and_retried(
    root: Path, project: IndexedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "RETRY_S", 0.05)
    for number in range(100):
        write(root, f"f{number}.py", "".join(f"v{number}_{n} = '{n * 7919}'\n" for n in range(200)))
    base = project.store._connection._base
    assert base is not None
    (pages,) = base.execute("PRAGMA page_count").fetchone()
    base.execute(f"PRAGMA max_page_count = {pages + 40}")  # what SQLite takes for a full disk
    project.pipe.begin()
    project.wait(lambda: project.pipe.progress.phase == "failed")
    there = project.paths()
    assert len(there) < 100
    project.wait(lambda: project.phases.count("failed") > 2)
    assert len(project.remarks) == 1
    assert "full" in project.remarks[0]
    base.execute("PRAGMA max_page_count = 1000000")
    project.ready()
    assert len(project.paths()) == 100


def test_a_damaged_store_is_filled_again(
    root: Path, project: IndexedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "RETRY_S", 0.05)
    for number in range(20):
        write(root, f"f{number}.py", f"value = {number}\n")
    project.fill()
    identity = project.store.revision.identity
    project.store.database.rebuild(
        project.store.database.epoch, sqlite3.DatabaseError("a broken page")
    )
    write(root, "f1.py", "changed = 1\n")
    project.pipe.changed(["f1.py"])

    def is_filled() -> bool:
        with suppress(IndexFailed):  # between the old database and the new one
            return "changed" in project.text("f1.py") and len(project.paths()) == 20
        return False

    project.wait(is_filled)
    project.ready()
    assert project.store.revision.identity != identity
    assert len(project.paths()) == 20


def test_a_file_that_is_written_all_the_time_is_stored_as_of_one_moment(
    root: Path, project: IndexedProject
) -> None:
    write(root, "calm.py", "x = 1\n")
    write(root, "busy.py", "version_0 = 0\n" * 3_000)
    is_over = threading.Event()

    def keep_writing() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            (root / "busy.py").write_bytes(b"version_%d = 0\n" % number * 3_000)
            project.pipe.changed(["busy.py"])
            time.sleep(0.002)
        (root / "busy.py").write_bytes(b"version_end = 0\n" * 3_000)

    thread = threading.Thread(target=keep_writing)
    thread.start()
    try:
        project.pipe.begin()
        project.wait(lambda: "calm.py" in project.paths())
        for _ in range(15):
            versions = set(project.text("busy.py").split("\n")) - {""}
            assert len(versions) <= 1, versions
            time.sleep(0.01)
    finally:
        is_over.set()
        thread.join()
    project.pipe.changed(["busy.py"])
    project.wait(lambda: set(project.text("busy.py").split("\n")) - {""} == {"version_end = 0"})
    assert project.remarks == []


class Clock:
    """Stands in for the module `time` of the pipeline."""

    def __init__(self) -> None:
        self.now_s = float(int(time.monotonic()))

    def monotonic(self) -> float:
        return self.now_s


class FakeWatcher:
    """Watches nothing."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def use(self, survey: listing.Survey) -> None:
        """Do nothing."""


def surveys_of(pipe: Pipeline) -> int:
    """Do all that is due; return how often all files were surveyed."""
    while pipe._step():
        pass
    return pipe._surveys


def test_all_files_are_looked_at_less_often_while_watching_misses_nothing(
    root: Path, project: IndexedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(pipeline, "time", clock)
    write(root, "a.py", "alpha = 1\n")
    write(root, "logo.png", b"\0")  # never read, so always new
    pipe = project.pipe

    def surveys() -> int:
        return surveys_of(pipe)

    def next_pause_s() -> float:
        """Return after how many minutes there is another survey, in seconds."""
        before, start_s = surveys(), clock.now_s
        while surveys() == before:
            clock.now_s += 60
        return clock.now_s - start_s - 60

    assert surveys() == 1
    pauses_s = [next_pause_s() for _ in range(6)]
    assert pauses_s == [300, 600, 1200, 2400, 3600, 3600]
    write(root, "missed.py", "beta = 1\n")  # nobody reports it
    assert next_pause_s() == 3600
    assert project.paths() == {"a.py", "missed.py"}
    assert next_pause_s() == 300


def test_all_files_are_compared_every_few_seconds_while_they_cannot_be_watched(
    root: Path, project: IndexedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(pipeline, "time", clock)
    monkeypatch.setattr(pipeline, "POLL_REST", 0)
    write(root, "a.py", "alpha = 1\n")
    project.pipe = project.pipeline("polling")
    assert surveys_of(project.pipe) == 1
    project.phases.clear()
    clock.now_s += 1.9
    assert surveys_of(project.pipe) == 1
    clock.now_s += 0.2
    assert surveys_of(project.pipe) == 2
    assert project.phases == [], "nothing changed, so nobody is told"
    write(root, "new.py", "beta = 1\n")
    (root / "a.py").unlink()
    clock.now_s += 2.1
    assert surveys_of(project.pipe) == 3
    assert project.paths() == {"new.py"}
    assert project.phases == ["reading", "ready"]
