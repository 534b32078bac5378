"""Changes of settings with the real model: memory comes back, and every request has an end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lcursor.config import CompletionConfig
from lcursor.errors import OutOfMemory
from lcursor.fim import llama
from lcursor.fim.completer import Completer
from lcursor.fim.engine import Engine
from lcursor.host.backends import open_backend
from lcursor.system import resident_bytes
from tests.fakes.engine import request, wait_queue
from tests.fakes.heard import Heard
from tests.waiting import WAIT_S

CHANGES = 6
BEFORE = 'def add(a, b):\n    """Return the sum of a and b."""\n    return '
ALLOWANCE = 0.15
"""Of the model's memory: what allocators keep, and what the first request alone needs."""


class Desk(Heard):
    """A completer with the real model, and what it said."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.config = CompletionConfig(
            model=str(path), min_confidence=0.0, context_tokens=1024, budget_ms=60_000
        )
        self.completer = Completer(self.config, self._tell, open_backend)

    def ask(self, number: int) -> None:
        text = {"prefix": f"# {number}\n{BEFORE}", "suffix": "\n\n\nprint(add(2, 3))\n"}
        self.completer.request(request(number, "python") | text | {"trigger": "manual"})

    def ends(self, number: int) -> list[str]:
        """Wait for the end of a request; return how it ended, and again if it did so twice."""
        self.wait("fim.done", number)
        return [told["reason"] for told in self.told("fim.done", number)]

    def wait_ready(self, count: int) -> None:
        """Wait until a model was loaded so often."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.loads() >= count, WAIT_S), self.sent[-12:]

    def loads(self) -> int:
        return [told["state"] for told in self.told("state")].count("ready")


@pytest.fixture
def desk(model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    desk = Desk(model_path)
    yield desk
    assert desk.completer.close(30)


def engine_threads() -> int:
    return [thread.name for thread in threading.enumerate()].count("lcursor-engine")


def test_memory_after_many_models_is_that_of_one(desk: Desk) -> None:
    without = resident_bytes()
    desk.completer.start()
    desk.wait_ready(1)
    desk.ask(1)
    assert desk.ends(1) != ["failed"]
    one = resident_bytes() - without
    assert one > 100 << 20
    for number in range(2, CHANGES + 2):
        desk.ask(number)  # it may run, or wait, or be answered by the next model
        cells = 1024 if number % 2 else 1280
        desk.completer.configure(replace(desk.config, context_tokens=cells))
        assert len(desk.ends(number)) == 1
    desk.wait_ready(2)
    desk.ask(100)
    assert desk.ends(100) in (["trimmed"], ["end"])
    assert "a + b" in desk.wait("fim.done", 100)["text"]
    assert resident_bytes() - without < (1 + ALLOWANCE) * one
    assert engine_threads() == 1
    assert not desk.told("error")
    assert desk.completer.close(30)
    assert resident_bytes() - without < ALLOWANCE * one + (32 << 20)  # and that of Python
    assert engine_threads() == 0
    assert all(len(desk.ends(number)) == 1 for number in range(1, CHANGES + 2))


def test_an_unused_model_is_freed_and_answers_again(desk: Desk) -> None:
    now_s = [0.0]
    without = resident_bytes()
    desk.completer = Completer(
        replace(desk.config, idle_minutes=30), desk._tell, open_backend, clock=lambda: now_s[0]
    )
    desk.completer.start()
    desk.wait_ready(1)
    desk.ask(1)
    assert "a + b" in desk.wait("fim.done", 1)["text"]
    one = resident_bytes() - without
    now_s[0] = 30 * 60
    wait_queue(desk.completer)  # idle work goes on behind it, and looks at the clock
    desk.wait("log", count=2)
    assert resident_bytes() - without < ALLOWANCE * one + (32 << 20)  # and that of Python
    desk.ask(2)
    assert "a + b" in desk.wait("fim.done", 2)["text"]
    assert desk.loads() == 2
    assert not desk.told("error")


@pytest.mark.parametrize("step", ["_fingerprint", "_warm_up"])
def test_whatever_fails_while_a_model_is_opened_frees_it(
    model_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    freed: list[str] = []

    def note(kind: type[llama.Context] | type[llama.Model]) -> None:
        close = kind.close

        def closed(self: Any) -> None:
            freed.append(kind.__name__)
            close(self)

        monkeypatch.setattr(kind, "close", closed)

    def fail(self: Engine) -> None:
        raise OutOfMemory("no memory is left")

    note(llama.Context)
    note(llama.Model)
    monkeypatch.setattr(Engine, step, fail)
    with pytest.raises(OutOfMemory):
        Engine(model_path, "", CompletionConfig(), lambda fraction: True)
    assert freed == ["Context", "Model"]
