"""What comes over the wire as a piece of a file, and what of it waits for the prompt."""

from __future__ import annotations

import threading

import pytest

from lcursor.config import CompletionConfig
from lcursor.fim.completer import Completer
from lcursor.fim.context_ring import Query
from lcursor.fim.files import File
from lcursor.protocol import ChunkKind, ContextChunk, check
from tests.fakes.engine import Models

TEXT = "import os\n\n\ndef shown(a):\n    return a\n\n\ndef other():\n    pass"


def files_of(chunk: ContextChunk, query: Query) -> tuple[File, ...]:
    """Offer a chunk; return what the ring would show."""
    models = Models()
    completer = Completer(CompletionConfig(), models._tell, models.open)
    completer.start()
    completer.add_chunk(chunk)
    completer.prompt()  # behind the chunk in the queue
    models.wait("prompt")
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


@pytest.mark.parametrize("kind", ["visited", "edited", "yanked", "diagnostics", "changes"])
def test_text_is_shown_as_it_came(kind: ChunkKind) -> None:
    (text,) = offered(kind)
    assert text in TEXT
    assert "return a" in text


@pytest.mark.parametrize(
    ("symbols", "shown"),
    [((), ["def shown(a):\ndef other():"]), (("other",), ["def other():"]), (("none",), [])],
)
def test_of_an_imported_file_its_headers(symbols: tuple[str, ...], shown: list[str]) -> None:
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
