"""What the completer does with what became of suggestions, and how it tells the last prompt."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from lcursor import protocol
from lcursor.config import CompletionConfig
from lcursor.errors import LcursorError
from lcursor.fim.completer import Completer
from lcursor.fim.result import Result
from lcursor.fim.scheduler import Job

Sent = list[tuple[str, Mapping[str, Any]]]
REJECTED = [("lua", 0.41, False)] * 40


class Engine:
    """Answers with what it was told to be unsure of."""

    threshold = 0.4
    remarks: ClassVar[list[LcursorError]] = []
    family = SimpleNamespace(ids={"prefix": 900, "suffix": 901})

    def complete(self, source: object, on_text: object, **options: bool) -> Result:
        return Result(text="", reason="unsure", confidence=0.42, source="cache")

    def last_prompt(self) -> list[tuple[int, bytes, bool]]:
        return [(900, b"<prefix>", True), (5, "é".encode()[:1], True), (901, b"<suffix>", False)]


@pytest.fixture
def sent() -> Sent:
    return []


@pytest.fixture
def completer(sent: Sent) -> Completer:
    slot = Completer(CompletionConfig(), lambda *message: sent.append(message))
    slot._engine, slot._base = Engine(), Engine.threshold
    return slot


def request(filetype: str) -> Any:
    """Return a request from a buffer of that filetype."""
    kinds: dict[object, object] = {int: 1, str: "", bool: False}
    fields = protocol.fields(protocol.FimRequest).items()
    return {name: kinds.get(kind, "auto") for name, kind in fields} | {"filetype": filetype}


@pytest.mark.parametrize(("filetype", "threshold"), [("lua", 0.46), ("c", 0.46), ("", 0.46)])
def test_the_threshold_follows_the_history(
    completer: Completer, sent: Sent, filetype: str, threshold: float
) -> None:
    completer.learn(REJECTED)
    completer._run(Job(1, request(filetype)))
    method, params = sent[-1]
    assert method == "fim.done"
    protocol.check(method, dict(params), protocol.TO_LUA)
    assert params["reason"] == "unsure"
    stats = params["stats"]
    assert set(stats) == set(protocol.fields(protocol.FimStats))
    assert (stats["threshold"], stats["confidence"], stats["source"]) == (threshold, 0.42, "cache")
    assert completer._engine.threshold == pytest.approx(threshold)


def test_each_filetype_has_its_own(completer: Completer, sent: Sent) -> None:
    completer.learn([*REJECTED, *[("c", 0.41, True)] * 40])
    told = []
    for filetype in ("lua", "c", "python"):
        completer._run(Job(1, request(filetype)))
        told.append(sent[-1][1]["stats"]["threshold"])
    assert told == [0.46, 0.36, 0.36]  # half of all is taken: one step down for the others


def test_the_prompt_as_the_model_read_it(completer: Completer, sent: Sent) -> None:
    completer._tell_prompt()
    (method, params), *_ = sent
    protocol.check(method, dict(params), protocol.TO_LUA)
    assert params["pieces"] == [
        {"id": 900, "text": "<prefix>", "kind": "marker", "is_kept": True},
        {"id": 5, "text": "\udcc3", "kind": "text", "is_kept": True},
        {"id": 901, "text": "<suffix>", "kind": "marker", "is_kept": False},
    ]


def test_there_is_no_prompt_without_a_model(completer: Completer, sent: Sent) -> None:
    completer._engine = None
    completer._tell_prompt()
    assert sent == [("prompt", {"pieces": []})]
