"""Other files in the prompt of the real model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lcursor.fim.context_ring import ContextRing
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


def test_markers_in_a_file_are_text(seeing: Engine) -> None:
    seeing.reader.files = (File("tools.py", TOOLS),)
    seeing.complete(
        Source("x = ", "\n", 0, "b.py", "R"), nobody, single_line=True, bypass_cache=True
    )
    ids = [token for token, _, _ in seeing.last_prompt()]
    assert ids.count(seeing.family.ids["mid"]) == 1
    assert "<|fim_middle|>" in shown(seeing)
