"""What the index gives to completion: paths as the model sees them, and never a wait."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from lcursor.fim.context_ring import Chunk, Query
from lcursor.host import indexing
from lcursor.host import project as host_project
from lcursor.host.indexing import Indexing
from lcursor.host.retriever import IndexRetriever, chunks
from tests.unit.host.test_indexing import HIT, Client

PLACE = {"prefix": "def f():\n    thing(", "suffix": "\n"}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have one project, whose index was begun."""
    (tmp_path / ".git").mkdir()
    for module in (indexing, host_project):
        monkeypatch.setattr(module, "is_begun", lambda root: True)


class Service:
    """An indexing, and who asks it."""

    def __init__(self, root: Path) -> None:
        self.worker = Client(root)
        self.worker.answers["around"] = {"hits": [HIT]}
        open_client = cast(Any, lambda root, embedder: self.worker)
        self.indexing = Indexing(lambda method, params: None, open_client)
        self.retriever = IndexRetriever(self.indexing)
        self.answers: list[Sequence[Chunk]] = []
        self.has_answer = threading.Event()
        self.root = f"{root}/"

    def wake(self) -> None:
        self.indexing.enter({"path": self.root + "b.py"})

    def ask(self, path: str = "b.py", **more: Any) -> None:
        self.retriever.ask(Query(path, **{**PLACE, **more}, root=self.root), self._found)

    def asked(self) -> list[dict[str, Any]]:
        return [params for do, params in self.worker.said if do == "around"]

    def _found(self, found: Sequence[Chunk]) -> None:
        self.answers.append(found)
        self.has_answer.set()


def test_hits_come_as_pieces_of_files(tmp_path: Path) -> None:
    service = Service(tmp_path)
    service.wake()
    service.ask()
    assert service.has_answer.wait(10)
    (piece,) = service.answers[0]
    assert (piece.path, piece.first_row, piece.kind) == ("pkg/a.py", 3, "retrieved")
    assert service.asked() == [
        {"path": "b.py", "before": PLACE["prefix"], "after": PLACE["suffix"]}
    ]


def test_nothing_is_started_for_it(tmp_path: Path) -> None:
    service = Service(tmp_path)
    service.ask()  # nobody entered a buffer of the project
    service.wake()
    service.ask()
    assert service.has_answer.wait(10)
    assert len(service.asked()) == 1


def test_a_long_file_is_not_sent_whole(tmp_path: Path) -> None:
    service = Service(tmp_path)
    service.wake()
    service.ask(prefix="x" * 100_000, suffix="y" * 100_000)
    assert service.has_answer.wait(10)
    assert all(len(service.asked()[0][side]) < 10_000 for side in ("before", "after"))


def test_only_the_newest_of_many_positions_is_asked_about(tmp_path: Path) -> None:
    service = Service(tmp_path)
    service.wake()
    service.worker.hold.clear()
    for number in range(20):
        service.ask(prefix="\n" * number)
    service.worker.hold.set()
    assert service.has_answer.wait(10)
    service.has_answer.clear()
    service.ask(prefix="last")
    assert service.has_answer.wait(10)
    assert len(service.asked()) < 5


def test_a_place_without_a_file_is_not_asked_about(tmp_path: Path) -> None:
    service = Service(tmp_path)
    service.wake()
    service.retriever.ask(Query("", "x", ""), service._found)
    service.ask()
    assert service.has_answer.wait(10)
    assert len(service.asked()) == 1


def test_paths_are_those_that_the_model_sees(tmp_path: Path) -> None:
    part = tmp_path / "pkg"
    part.mkdir()
    hits = [HIT, {**HIT, "path": "other/z.py"}]
    assert [one.path for one in chunks(f"{tmp_path}/", tmp_path, hits)] == [
        "pkg/a.py",
        "other/z.py",
    ]
    assert [one.path for one in chunks(f"{part}/", tmp_path, hits)] == ["a.py"]
    assert [one.path for one in chunks(f"{tmp_path}/", part, hits)] == [
        "pkg/pkg/a.py",
        "pkg/other/z.py",
    ]
