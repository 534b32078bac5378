"""Cells on disk with the real model: a restart reads next to nothing, and answers the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lcursor.config import CompletionConfig
from lcursor.fim.engine import Engine
from lcursor.fim.kv_disk import SavedSlot
from lcursor.fim.prompt import Source
from lcursor.fim.reader import MIN_SAVED_TOKENS
from lcursor.fim.result import Result

LINES = "".join(f"def area_{n}(w, h):\n    return w * h * {n}\n\n\n" for n in range(6))
BEFORE, AFTER = LINES + "def area_12(w, h):\n    return w", "\n\n\nprint(area_12(2, 3))\n"
SOURCE = Source(BEFORE, AFTER, 0, "a.py", "demo", root="/p/")

Start = Callable[[], Engine]


@pytest.fixture
def start(model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    engines: list[Engine] = []

    def begin() -> Engine:
        config = CompletionConfig(min_confidence=0.0, context_tokens=2048, budget_ms=60_000)
        engines.append(Engine(model_path, "qwen2.5-coder", config, lambda _: True))
        engines[-1].reader.window = "full"
        while engines[-1].idle():  # healing begins when the vocabulary is read
            pass
        return engines[-1]

    yield begin
    for engine in engines:
        engine.close()


def complete(engine: Engine) -> Result:
    return engine.complete(SOURCE, lambda _: None, bypass_cache=True)


def test_a_restart_finds_what_was_read(start: Start, tmp_path: Path) -> None:
    engine = start()
    first = complete(engine)
    assert first.read_tokens > MIN_SAVED_TOKENS
    while engine.idle():
        pass
    [path] = (tmp_path / "cache").rglob("*.kv")

    engine = start()
    again = complete(engine)
    assert again.read_tokens <= 2
    assert again.text == first.text
    assert abs(again.confidence - first.confidence) < 0.05

    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    engine = start()
    anew = complete(engine)
    assert anew.read_tokens == first.read_tokens
    assert anew.text == first.text


def test_what_llama_cpp_rejects_is_evaluated_again(start: Start) -> None:
    engine = start()
    first = complete(engine)
    engine.save()
    assert engine.reader.kv_disk is not None
    saved = engine.reader.kv_disk.load(SOURCE.root, SOURCE.path)
    assert saved is not None
    for state in (b"", bytes(saved.state[:-7]), b"\xff" * 2000):
        other = start()
        broken = SavedSlot(saved.shadow, saved.files, memoryview(state))
        assert other.reader.kv_disk is not None
        other.reader.kv_disk.save(SOURCE.root, SOURCE.path, broken)
        assert complete(other).text == first.text


def test_the_second_start_has_the_vocabulary_at_once(start: Start, model_path: Path) -> None:
    found = start().reader.vocabulary
    second = Engine(model_path, "qwen2.5-coder", CompletionConfig(), lambda _: True)
    try:
        assert found is not None
        assert second.reader.vocabulary is not None
        for text in (b"retu", b" se", b"\n    x"):
            allowed = second.reader.vocabulary.allowed(text)
            assert list(allowed) == list(found.allowed(text))
            assert len(allowed) > 0
    finally:
        second.close()
