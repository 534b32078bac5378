"""What comes over the wire as a piece of a file, and what of it waits for the prompt."""

from __future__ import annotations

import pytest

from lcursor.config import CompletionConfig
from lcursor.fim.completer import Completer
from lcursor.fim.ring import Query
from lcursor.protocol import ChunkKind, ContextChunk, check

TEXT = "import os\n\n\ndef shown(a):\n    return a\n\n\ndef other():\n    pass"


def offered(kind: ChunkKind, text: str = TEXT, symbols: tuple[str, ...] = ()) -> list[str]:
    """Return the texts that the ring would show."""
    chunk = ContextChunk(
        path="/r/a.py", name="a.py", first_row=4, text=text, kind=kind, symbols=list(symbols)
    )
    check("context.chunk", dict(chunk))
    completer = Completer(CompletionConfig(), lambda method, params: None)
    completer.offer(chunk)
    completer.ring.promote()
    files = completer.ring.arrange(Query("b.py", "", ""), 9999, len)
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
    completer = Completer(CompletionConfig(), lambda method, params: None)
    chunk = ContextChunk(path="/r/x", name="", first_row=0, text=TEXT, kind="yanked", symbols=[])
    completer.offer(chunk)
    completer.ring.promote()
    assert completer.ring.arrange(Query("", "", ""), 999, len)[0].path == "/r/x"
