"""What the completer does with what became of suggestions, and how it tells the last prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lcursor import protocol
from lcursor.config import CompletionConfig
from lcursor.fim.completer import Completer
from tests.fakes.engine import Models, fail, request

REJECTED = [("lua", 0.41, False)] * 40


@pytest.fixture
def models() -> Models:
    return Models()


@pytest.fixture
def completer(models: Models) -> Iterator[Completer]:
    slot = Completer(CompletionConfig(min_confidence=0.4), models._tell, models.open)
    slot.start()
    models.wait("state", count=2)
    yield slot
    assert slot.close(10)


def stats(models: Models, completer: Completer, number: int, filetype: str) -> Mapping[str, Any]:
    """Complete in a buffer of that filetype; return the figures of it."""
    completer.request(request(number, filetype))
    done: dict[str, Any] = models.wait("fim.done", number)["stats"]
    assert set(done) == set(protocol.fields(protocol.FimStats))
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


def test_each_filetype_has_its_own(models: Models, completer: Completer) -> None:
    completer.learn([*REJECTED, *[("c", 0.41, True)] * 40])
    told = [
        stats(models, completer, number, filetype)["threshold"]
        for number, filetype in enumerate(("lua", "c", "python"), 1)
    ]
    assert told == [0.46, 0.36, 0.36]  # half of all is taken: one step down for the others


def test_another_base_is_moved_by_the_same_history(models: Models, completer: Completer) -> None:
    completer.learn(REJECTED)
    completer.configure(CompletionConfig(min_confidence=0.0))
    assert stats(models, completer, 1, "lua")["threshold"] == 0.0


def test_the_prompt_as_the_model_read_it(models: Models, completer: Completer) -> None:
    completer.prompt()
    assert models.wait("prompt")["pieces"] == [
        {"id": 900, "text": "<prefix>", "kind": "marker", "is_kept": True},
        {"id": 5, "text": "\udcc3", "kind": "text", "is_kept": True},
        {"id": 901, "text": "<suffix>", "kind": "marker", "is_kept": False},
    ]


def test_there_is_no_prompt_without_a_model(models: Models) -> None:
    models.acts["open"] = fail
    completer = Completer(CompletionConfig(), models._tell, models.open)
    completer.start()
    completer.prompt()
    assert models.wait("prompt") == {"pieces": []}
    assert completer.close(10)
