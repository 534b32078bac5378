"""The completer: alternatives, chunks of other files and thresholds."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from lcursor import protocol
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled
from lcursor.fim.completer import Completer
from lcursor.fim.context_ring import Query
from lcursor.fim.prompt import File
from lcursor.protocol import check
from lcursor.protocol.fim import ChunkKind, ContextChunk
from tests.fakes.engine import Act, Models, fail, request, wait_queue
from tests.unit.fim.conftest import Start

CONFIG = CompletionConfig(min_confidence=0.4)
REJECTED = [("lua", 0.41, False)] * 40


@pytest.fixture
def completer(start: Start) -> Completer:
    return start(CONFIG)


def stop() -> None:
    raise Cancelled("stopped")


@pytest.mark.parametrize(
    ("number", "act", "texts", "errors"),
    [
        (7, lambda: None, ["b", "c"], 0),
        (6, lambda: None, [], 0),  # the engine knows of a newer request only
        (7, stop, [], 0),
        (7, fail, [], 1),
    ],
)
def test_each_search_has_one_answer(
    models: Models, start: Start, number: int, act: Act, texts: list[str], errors: int
) -> None:
    models.acts["alternatives"] = act
    completer = start(CONFIG)
    completer.request(request(7))
    models.wait("fim.done", 7)
    completer.find_alternatives(number)
    assert models.wait("fim.alternatives") == {"id": number, "texts": texts}
    assert len(models.told("fim.alternatives")) == 1
    assert len(models.told("error")) == errors


def test_a_search_that_never_ran_is_answered_too(models: Models) -> None:
    completer = Completer(CompletionConfig(), models._tell, models.open)
    completer.find_alternatives(3)
    completer.cancel(3)
    assert models.sent == [("fim.alternatives", {"id": 3, "texts": []})]


TEXT = "import os\n\n\ndef shown(a):\n    return a\n\n\ndef other():\n    pass"


def files_of(chunk: ContextChunk, query: Query) -> tuple[File, ...]:
    """Offer a chunk; return what the ring would show."""
    models = Models()
    completer = Completer(CompletionConfig(), models._tell, models.open)
    completer.start()
    completer.add_chunk(chunk)
    wait_queue(completer)
    assert completer.close(10)
    completer.ring.admit()
    return completer.ring.layout(query, 9999, len)


def offered(kind: ChunkKind, text: str = TEXT, symbols: tuple[str, ...] = ()) -> list[str]:
    """Return the texts that the ring would show."""
    chunk = ContextChunk(
        path="/r/a.py", name="a.py", first_row=4, text=text, kind=kind, symbols=list(symbols)
    )
    check("context.chunk", dict(chunk))
    files = files_of(chunk, Query("b.py", "", ""))
    assert all(file.path == "a.py" for file in files)
    return [file.text for file in files]


@pytest.mark.parametrize("kind", ["visited", "edited", "yanked"])
def test_visited_edited_and_yanked_text_is_shown_as_it_is(kind: ChunkKind) -> None:
    (text,) = offered(kind)
    assert text in TEXT
    assert "return a" in text


@pytest.mark.parametrize(
    ("symbols", "shown"),
    [((), ["def shown(a):\ndef other():"]), (("other",), ["def other():"]), (("none",), [])],
)
def test_the_headers_of_an_imported_file_are_shown(
    symbols: tuple[str, ...], shown: list[str]
) -> None:
    assert offered("import", symbols=symbols) == shown


def test_a_buffer_without_a_name_has_its_path() -> None:
    chunk = ContextChunk(path="/r/x", name="", first_row=0, text=TEXT, kind="yanked", symbols=[])
    assert files_of(chunk, Query("", "", ""))[0].path == "/r/x"


def test_a_chunk_is_looked_at_on_the_thread_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def of(path: str, text: str, symbols: object) -> str:
        threads.append(threading.current_thread().name)
        return text

    monkeypatch.setattr("lcursor.fim.completer.header_lines", of)
    assert offered("import")
    assert threads == ["lcursor-engine"]


def stats(models: Models, completer: Completer, number: int, filetype: str) -> Mapping[str, Any]:
    """Complete in a buffer of that filetype; return the statistics of the answer."""
    completer.request(request(number, filetype))
    done: dict[str, Any] = models.wait("fim.done", number)["stats"]
    assert set(done) == set(protocol.fields(protocol.fim.FimStats))
    return done


@pytest.mark.parametrize("filetype", ["lua", "c", ""])
def test_the_threshold_follows_the_history(
    models: Models, completer: Completer, filetype: str
) -> None:
    completer.learn(REJECTED)
    done = stats(models, completer, 1, filetype)
    assert (done["threshold"], done["confidence"], done["source"]) == (0.46, 0.42, "model")
    assert models.engine is not None
    assert models.engine.threshold == pytest.approx(0.46)


def test_each_filetype_has_its_own_threshold(models: Models, completer: Completer) -> None:
    completer.learn([*REJECTED, *[("c", 0.41, True)] * 40])
    told = [
        stats(models, completer, number, filetype)["threshold"]
        for number, filetype in enumerate(("lua", "c", "python"), 1)
    ]
    assert told == [0.46, 0.36, 0.36]  # half of all is taken: one step down for the others


def test_another_base_threshold_is_adapted_by_the_same_history(
    models: Models, completer: Completer
) -> None:
    completer.learn(REJECTED)
    completer.configure(CompletionConfig(min_confidence=0.0))
    assert stats(models, completer, 1, "lua")["threshold"] == 0.0


@pytest.mark.parametrize(
    ("place", "immediately"),
    [({}, False), ({"row": 30}, False), ({"row": 900}, True), ({"path": "/other.py"}, True)],
)
def test_a_request_for_another_place_stops_the_running_batch(
    start: Start, models: Models, place: dict[str, Any], immediately: bool
) -> None:
    completer = start(CompletionConfig())
    engine = models.engine
    assert engine is not None
    models.acts["complete"] = engine.wait_abort
    completer.request(request(1))
    models.wait_call("complete")
    completer.request(request(2) | place)
    assert models.wait("fim.done", 1)["reason"] == "cancelled"
    assert engine.abort.is_immediate == immediately
