"""The index as what knows the codebase, and what there is without it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from lcursor.context.codebase import GrepSearch, IndexSearch
from lcursor.context.gather import gather
from lcursor.errors import Cancelled, IndexAway, IndexRejected, LcursorError
from lcursor.index import launch
from tests.unit.index import workers
from tests.unit.project.trees import write
from tests.waiting import wait_for

HIT = {
    "path": "src/a.py",
    "first_row": 3,
    "end_row": 5,
    "scope": "A",
    "language": "python",
    "text": "def f",
    "score": 2.0,
    "parts": {"lexical": 0.2, "vector": 1.0, "symbol": 0.0, "recent": 0.01, "definition": 3.0},
    "is_stale": True,
}


class Answers:
    """A client that answers as it is told."""

    def __init__(self, **answers: Mapping[str, Any] | LcursorError) -> None:
        self.answers = answers
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def call(self, do: Any, **params: Any) -> Mapping[str, Any]:
        self.asked.append((do, params))
        answer = self.answers[do]
        if isinstance(answer, LcursorError):
            raise answer
        return answer


def test_hits_become_pieces_with_their_reasons() -> None:
    left = {**HIT, "path": "b.py", "text": "", "reason": "token limit reached"}
    client = Answers(
        retrieve={"used": [HIT], "left_out": [left], "tokens": 7},
        status={"phase": "reading", "done": 3, "total": 9},
    )
    found = IndexSearch(cast(Any, client), GrepSearch(Path("/nowhere"))).find("what is f", 500)
    (piece,) = found.hits
    assert (piece.path, piece.first_row, piece.end_row) == ("src/a.py", 3, 5)
    assert piece.why == "similar meaning, matching words; the file has changed since"
    assert found.omitted[0].why == "token limit reached"
    assert found.tokens == 7
    assert found.note == "only 3 of 9 files are indexed yet"
    asked = client.asked[0]
    assert asked[0] == "retrieve"
    assert (asked[1]["text"], asked[1]["tokens"], asked[1]["mode"]) == ("what is f", 500, "hybrid")


@pytest.mark.parametrize("error", [IndexAway("nobody is there"), IndexRejected("not begun")])
def test_an_index_that_does_not_answer_is_replaced_by_grep_with_a_note(
    root: Path, error: LcursorError
) -> None:
    write(root, "src/a.py", text="def needle():\n    return 1\n")
    client = Answers(retrieve=error, symbols=error, status={})
    found = IndexSearch(cast(Any, client), GrepSearch(root)).find("needle", 500)
    assert [piece.path for piece in found.hits] == ["src/a.py"]
    assert found.note == f"full-text search only: {error.message}"
    assert [
        one.path for one in IndexSearch(cast(Any, client), GrepSearch(root)).symbols("needle")
    ] == ["src/a.py"]


def test_a_name_in_a_scope() -> None:
    def symbol(path: str, scope: str) -> dict[str, Any]:
        rows = {"first_row": 1, "end_row": 2}
        return {"path": path, "name": "stop", "kind": "method", "scope": scope, **rows}

    both = [symbol("a.py", "Retry"), symbol("b.py", "Turn > Inner")]
    client = Answers(symbols={"symbols": both})
    found = IndexSearch(cast(Any, client), GrepSearch(Path("/nowhere"))).symbols
    assert [one.path for one in found("Turn.stop")] == ["b.py"]
    assert [one.path for one in found("stop")] == ["a.py", "b.py"]
    assert client.asked[0][1]["name"] == "stop"


def test_a_search_passes_on_whether_it_is_canceled() -> None:
    class Stopped(Answers):
        def call(self, do: Any, **params: Any) -> Mapping[str, Any]:
            assert params["cancel"]()
            raise Cancelled("stopped")

    stopped = IndexSearch(cast(Any, Stopped()), GrepSearch(Path("/nowhere")))
    with pytest.raises(Cancelled):
        stopped.find("x", 100, cancel=lambda: True)
    with pytest.raises(Cancelled):
        stopped.symbols("x", cancel=lambda: True)


def test_no_worker_is_started(root: Path) -> None:
    indexed = IndexSearch.open(root)
    found = indexed.find("x", 100)
    assert "no index worker runs" in found.note
    assert not launch.worker_process(root).lock_path.exists()
    assert list(indexed.symbols("zork")) == []


def test_a_real_index_answers_with_unsaved_text(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run))
    write(root, "src/needle.py", text="class Needle:\n    def thread(self):\n        return 7\n")
    write(root, ".env", text="NEEDLE=7\n")
    client = workers.connect(root)
    try:
        client.call("begin")
        wait_for(lambda: client.call("status")["phase"] == "ready")
        items = gather(
            "@codebase where is the needle? @symbol:Needle.thread",
            root=root,
            codebase=IndexSearch(cast(Any, client), GrepSearch(root)),
        )
        found = [item for item in items if not item.is_left_out]
        assert [item.path for item in found] == [str(root / "src/needle.py")] * 2
        assert found[0].note == "matching words"
        assert found[1].text == "    def thread(self):\n        return 7\n"
        client.call("buffer", path="src/needle.py", text="class Needle:\n    unsaved = 1\n")
        unsaved = IndexSearch(cast(Any, client), GrepSearch(Path("/nowhere"))).find(
            "needle unsaved", 500
        )
        assert "unsaved = 1" in unsaved.hits[0].text
    finally:
        client.close()
        workers.end(root)
