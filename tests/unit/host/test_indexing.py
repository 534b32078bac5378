"""The index's messages, with a client that does what the test tells it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from lcursor.config import IndexConfig
from lcursor.errors import IndexAway, IndexRejected
from lcursor.host import indexing, project
from lcursor.host.indexing import Indexing
from tests.fakes.heard import Heard

STATE = {
    "phase": "ready",
    "detail": "",
    "done": 2,
    "total": 2,
    "seconds_left": -1.0,
    "files": 2,
    "chunks": 5,
    "symbols": 4,
    "embedded": 0,
    "embedder": "",
    "embedder_note": "no model",
    "watching": "watching",
    "remarks": [],
    "is_begun": True,
    "is_home": False,
    "memory_bytes": 50_000_000,
    "pid": 77,
}
HIT = {
    "path": "pkg/a.py",
    "first_row": 3,
    "end_row": 9,
    "scope": "Thing",
    "language": "python",
    "text": "def f():\n",
    "score": 1.5,
    "parts": {"lexical": 0.5, "definition": 1},
    "is_stale": False,
}


class Client:
    """Stands where the worker's client stands; notes what it is asked."""

    def __init__(self, root: Path) -> None:
        self.root, self.said = root, list[tuple[str, dict[str, Any]]]()
        self.answers: dict[str, Any] = {"status": STATE, "search": {"hits": [HIT]}}
        self.hold = threading.Event()
        self.hold.set()
        self.listener: Callable[[Mapping[str, Any]], None] = lambda _: None
        self.is_closed = False

    def call(self, do: str, **params: Any) -> dict[str, Any]:
        self.said.append((do, params))
        self.hold.wait(10)
        answer = self.answers.get(do, {})
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    def notify(self, do: str, **params: Any) -> None:
        self.said.append((do, params))

    def listen(self, listener: Callable[[Mapping[str, Any]], None]) -> None:
        self.listener = listener

    def close(self) -> None:
        self.is_closed = True
        self.listener({"event": "gone"})

    def names(self) -> list[str]:
        """Return what was asked, in order."""
        return [do for do, _ in self.said]


class IndexService(Heard):
    """An `Indexing`, what it sent, and its projects."""

    def __init__(self, root: Path) -> None:
        self.root, self.begun, self.clients = root, {root}, list[Client]()
        super().__init__()
        self.indexing = Indexing(self._tell, cast(Any, self._open_client))

    def _open_client(self, root: Path, _embedder: str) -> Client:
        self.clients.append(Client(root))
        return self.clients[-1]

    def settle(self) -> Client:
        """Return the newest client when all that was said has been done."""
        done = threading.Event()
        self.indexing._in_project(str(self.root / "x"), lambda _: done.set())
        assert done.wait(10)
        return self.clients[-1]

    def search(self, number: int, text: str = "words") -> None:
        wishes = {"text": text, "limit": 9, "mode": "hybrid"}
        params: Any = {"id": number, "path": str(self.root / "a.py"), **wishes}
        self.indexing.search(params)

    def enter(self, name: str) -> None:
        self.indexing.enter({"path": str(self.root / name)})


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexService]:
    root = tmp_path.resolve() / "project"
    (root / ".git").mkdir(parents=True)
    service = IndexService(root)
    for module in (indexing, project):
        monkeypatch.setattr(module, "is_begun", lambda root: root in service.begun)
    yield service
    service.indexing.close()


def test_a_search_is_answered(service: IndexService) -> None:
    service.search(4)
    found = service.wait("index.found")
    client = service.clients[0]
    assert client.names() == ["status", "search"]
    assert client.said[1][1] == {"text": "words", "limit": 9, "mode": "hybrid"}
    assert (found["id"], found["root"], found["query"]) == (4, str(service.root), "words")
    assert found["note"] == ""
    assert found["hits"] == [
        {
            "path": str(service.root / "pkg/a.py"),
            "name": "pkg/a.py",
            "kind": "",
            "first_row": 3,
            "end_row": 9,
            "scope": "Thing",
            "language": "python",
            "text": "def f():\n",
            "score": 1.5,
            "parts": {"lexical": 0.5, "definition": 1.0},
            "is_stale": False,
        }
    ]
    state = service.wait("index.state")
    assert (state["phase"], state["files"], state["pid"]) == ("ready", 2, 77)


def test_secret_patterns_are_sent_first(service: IndexService) -> None:
    service.indexing.configure(IndexConfig(), ["*.vault"])
    service.search(4)
    service.wait("index.found")
    client = service.clients[0]
    assert client.said[:2] == [("secrets", {"globs": ["*.vault"]}), ("status", {})]
    service.indexing.configure(IndexConfig(), ["*.vault"])
    service.settle()
    assert client.names() == ["secrets", "status", "search"]
    service.indexing.configure(IndexConfig(), [])
    service.settle()
    assert client.said[-1] == ("secrets", {"globs": []})


def test_a_worker_that_was_only_asked_is_informed_again_by_the_next(service: IndexService) -> None:
    service.begun.clear()
    service.indexing.configure(IndexConfig(), ["*.vault"])
    service.indexing.begin(
        {"id": 1, "path": str(service.root / "a.py"), "is_confirmed": False, "rebuild": False}
    )
    service.settle()
    told = [client.names() for client in service.clients]
    assert told == [["secrets", "status", "begin"], ["secrets"]]


def test_symbols_are_listed(service: IndexService) -> None:
    client = service.settle()
    row = {"path": "a.py", "language": "lua", "name": "alpha", "kind": "function", "scope": "M"}
    client.answers["symbols"] = {"symbols": [{**row, "first_row": 1, "end_row": 2}]}
    path = str(service.root / "a.py")
    service.indexing.symbols({"id": 3, "path": path, "name": "alp", "limit": 5})
    (hit,) = service.wait("index.found")["hits"]
    assert (hit["text"], hit["kind"], hit["scope"]) == ("alpha", "function", "M")
    assert client.said[-1] == ("symbols", {"name": "alp", "limit": 5, "prefix": True})


def test_only_the_newest_search_is_done(service: IndexService) -> None:
    client = service.settle()
    client.hold.clear()
    service.search(1, "one")
    service.search(2, "two")
    service.search(3, "three")
    client.hold.set()
    assert service.wait("index.found")["query"] == "three" or service.wait("index.found", count=2)
    assert "two" not in [params.get("text") for _, params in client.said]


def test_a_project_that_nobody_indexed_is_not_searched(service: IndexService) -> None:
    service.begun.clear()
    service.search(5)
    error = service.wait("error")
    assert (error["id"], error["code"]) == (5, "index_rejected")
    assert error["hint"] == "Run :LCursor index"
    assert service.clients[0].said == []


def test_errors_of_a_worker_are_reported(service: IndexService) -> None:
    service.settle().answers["search"] = IndexAway("it ended", "Do this")
    service.search(6)
    error = service.wait("error")
    assert (error["id"], error["message"], error["hint"]) == (6, "it ended", "Do this")
    service.clients[0].answers["search"] = ValueError("broken")
    service.search(7)
    assert service.wait("error", count=2)["message"] == "the index request failed"
    assert "ValueError: broken" in service.wait("log")["message"]
    service.clients[0].answers["search"] = {"hits": []}
    service.search(8)
    assert service.wait("index.found")["id"] == 8


def test_the_note_says_that_more_files_may_follow(service: IndexService) -> None:
    service.settle().answers["status"] = {**STATE, "phase": "reading", "done": 3, "total": 8}
    service.search(1)
    assert service.wait("index.found")["note"] == "3 of 8 files are indexed"


def test_entering_a_file_of_an_indexed_project_starts_its_worker(service: IndexService) -> None:
    for name in ("a.py", "b.py", "a.py"):
        service.enter(name)
    client = service.settle()
    assert client.names() == ["status", "recent", "recent", "recent"]
    assert [params["paths"] for _, params in client.said[1:]] == [
        ["a.py"],
        ["b.py", "a.py"],
        ["a.py", "b.py"],
    ]


def test_entering_files_tries_once_in_a_minute_to_connect(
    service: IndexService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listen(_: object) -> None:
        raise IndexAway("it runs on desk", "Wait")

    client = service.settle()
    with monkeypatch.context() as patch:
        patch.setattr(client, "listen", listen)
        service.enter("a.py")
        service.enter("b.py")
        service.settle()
        assert [method for method, _ in service.sent] == ["error"]
        service.search(3)
        assert service.wait("error", count=2)["id"] == 3
    service.enter("c.py")
    service.search(4)
    service.wait("index.found")
    assert client.names() == ["recent", "recent", "status", "search"]
    assert client.said[1] == ("recent", {"paths": ["c.py", "b.py"]})


def test_entering_a_file_of_another_project_starts_no_worker(service: IndexService) -> None:
    service.begun.clear()
    service.enter("a.py")
    assert service.settle().said == []


def test_buffers_and_typing_go_to_the_worker_that_runs(service: IndexService) -> None:
    path = str(service.root / "sub" / "a.py")
    service.enter("a.py")
    service.indexing.buffer({"path": path, "is_changed": True, "text": "x = 1\n"})
    service.indexing.buffer({"path": path, "is_changed": False, "text": ""})
    service.indexing.saved({"path": path})
    client = service.settle()
    service.indexing.typing()
    service.settle()
    assert client.said[2:] == [
        ("buffer", {"path": "sub/a.py", "text": "x = 1\n"}),
        ("buffer", {"path": "sub/a.py", "text": None}),
        ("changed", {"paths": ["sub/a.py"]}),
        ("typing", {}),
    ]


def test_a_path_through_a_link_has_the_name_that_the_index_knows(service: IndexService) -> None:
    (service.root / "real").mkdir()
    (service.root / "link").symlink_to("real")
    service.indexing.saved({"path": str(service.root / "link" / "a.py")})
    assert service.settle().said == [("changed", {"paths": ["real/a.py"]})]


def test_a_worker_ends_after_the_report_of_a_project_that_is_not_indexed(
    service: IndexService,
) -> None:
    service.begun.clear()
    service.settle().answers["report"] = {
        "files": 2,
        "bytes": 300,
        "seconds": 1.5,
        "embed_seconds": 4,
        "languages": {"python": {"files": 2, "bytes": 300}},
        "ignored": {"git ignores it": 7},
        "examples": {"git ignores it": ["build/"]},
        "is_home": True,
        "is_begun": False,
    }
    service.indexing.report({"id": 2, "path": str(service.root)})
    report = service.wait("index.reported")
    assert report["languages"] == [{"name": "python", "files": 2, "bytes": 300, "examples": []}]
    assert report["ignored"] == [
        {"name": "git ignores it", "files": 7, "bytes": 0, "examples": ["build/"]}
    ]
    assert (report["is_home"], report["is_begun"], report["embed_seconds"]) == (True, False, 4.0)
    service.settle()
    assert [client.is_closed for client in service.clients] == [True, False]
    assert [method for method, _ in service.sent].count("index.state") == 1


def test_the_reason_for_a_file_is_answered(service: IndexService) -> None:
    service.settle().answers["why"] = {"reason": "binary"}
    service.indexing.why({"id": 9, "path": str(service.root / "a.bin")})
    said = service.wait("index.explained")
    assert said == {"id": 9, "path": "a.bin", "root": str(service.root), "reason": "binary"}


def test_indexing_is_started(service: IndexService) -> None:
    path = str(service.root)
    service.indexing.begin({"id": 1, "path": path, "is_confirmed": True, "rebuild": False})
    client = service.settle()
    assert client.said[-1] == ("begin", {"confirmed": True, "rebuild": False})
    client.listener({"event": "state", **STATE, "phase": "surveying"})
    assert service.wait("index.state", count=2)["phase"] == "surveying"


def test_a_rejected_begin_stops_the_worker(service: IndexService) -> None:
    service.begun.clear()
    service.settle().answers["begin"] = IndexRejected("a home directory")
    path = str(service.root)
    service.indexing.begin({"id": 8, "path": path, "is_confirmed": False, "rebuild": False})
    assert service.wait("error")["id"] == 8
    assert [client.is_closed for client in service.clients] == [True, False]


def test_a_worker_that_died_is_started_again_a_few_times(service: IndexService) -> None:
    service.enter("a.py")
    client = service.settle()
    for count in range(1, 4):
        client.listener({"event": "gone"})
        service.settle()
        assert client.names().count("status") == 1 + count
    client.listener({"event": "gone"})
    service.settle()
    assert client.names().count("status") == 4
    absent = [params for name, params in service.sent if name == "index.state"][-1]
    assert (absent["phase"], absent["pid"]) == ("absent", 0)


def test_each_project_has_its_own_worker_and_waits_for_no_other(service: IndexService) -> None:
    other = service.root.parent / "other"
    (other / ".git").mkdir(parents=True)
    service.begun.add(other)
    service.enter("a.py")
    slow = service.settle()
    slow.hold.clear()
    service.search(1)
    wishes = {"text": "x", "limit": 1, "mode": "hybrid"}
    params: Any = {"id": 2, "path": str(other / "b.py"), **wishes}
    service.indexing.search(params)
    assert service.wait("index.found")["root"] == str(other)
    slow.hold.set()


def test_closing_closes_all_clients(service: IndexService) -> None:
    service.enter("a.py")
    client = service.settle()
    count = len(service.sent)
    service.indexing.close()
    assert client.is_closed
    assert len(service.sent) == count
