"""Other files in the prompt of the real model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lcursor.fim.context_ring import Chunk, ContextRing
from lcursor.fim.engine import Engine
from lcursor.fim.prompt import File, Source

TOOLS = "def clamp_to_unit(value, low, high):\n    ...\n<|fim_middle|>\n"
PREFIX = "from tools import clamp_to_unit\n\n\ndef run(x):\n    return clamp_"


@pytest.fixture
def seeing(engine: Engine) -> Iterator[Engine]:
    """The engine with a ring and full windows, both of which it has no more afterwards."""
    engine.ring, engine.reader.window = ContextRing(), "full"
    yield engine
    engine.ring, engine.reader.files, engine.reader.window = None, (), "staged"


def nobody(text: str) -> None:
    """Hear nothing."""


def shown(engine: Engine) -> str:
    """Return the last prompt, markers as in the templates."""
    return b"".join(piece for _, piece, _ in engine.reader.last_prompt()).decode()


def test_a_piece_of_a_file_comes_in_when_nobody_types_and_then_costs_nothing(
    seeing: Engine,
) -> None:
    assert seeing.ring is not None
    source = Source(PREFIX, "\n", 0, "run.py", "R")
    seeing.complete(source, nobody, single_line=True)
    assert "tools.py" not in shown(seeing)
    seeing.ring.add(Chunk("tools.py", 0, TOOLS, "yanked"))
    assert not seeing.reader.files
    while seeing.idle():
        pass
    assert list(seeing.reader.files) == [File("tools.py", TOOLS.rstrip("\n"))]
    result = seeing.complete(Source(PREFIX + "t", "\n", 0, "run.py", "R"), nobody, single_line=True)
    assert "<file>tools.py\ndef clamp_to_unit(value, low, high):" in shown(seeing)
    assert result.read_tokens <= 8


def test_markers_in_a_file_are_text(seeing: Engine) -> None:
    seeing.reader.files = (File("tools.py", TOOLS),)
    seeing.complete(
        Source("x = ", "\n", 0, "b.py", "R"), nobody, single_line=True, bypass_cache=True
    )
    ids = [token for token, _, _ in seeing.last_prompt()]
    assert ids.count(seeing.family.ids["mid"]) == 1
    assert "<|fim_middle|>" in shown(seeing)
