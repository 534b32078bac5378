"""Work in advance: places that are evaluated before a request, and better answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lcursor import protocol
from lcursor.config import CompletionConfig
from lcursor.fim.completer import Completer
from lcursor.fim.result import Result
from tests.fakes.engine import Models, request, wait_queue
from tests.unit.fim.conftest import Start

BETTER = Result(text="one more", replace_bytes=1, prompt_tokens=9, read_tokens=4, prompt_passes=2)


@pytest.fixture
def completer(start: Start) -> Completer:
    return start(CompletionConfig(model="one"))


def place(number: int) -> Any:
    """Return what `fim.warm` tells of an empty buffer."""
    fields = protocol.fields(protocol.fim.FimWarm)
    return {name: value for name, value in request(number).items() if name in fields}


def compute(models: Models) -> None:
    """Let the next `warm` work until somebody stops it."""

    def work() -> None:
        del models.acts["warm"]
        assert models.engine is not None
        models.engine.wait_abort()

    models.acts["warm"] = work


def improve(models: Models) -> None:
    """Let the next piece of idle work find a better answer."""

    def work() -> None:
        del models.acts["idle"]
        assert models.engine is not None
        models.engine.on_improved(BETTER)

    models.acts["idle"] = work


def test_a_place_is_read_at_once_and_nothing_answers(models: Models, completer: Completer) -> None:
    completer.warm(place(1))
    models.wait_call("warm")
    assert models.notes[-1] == ("warm", "one", "lcursor-engine")
    completer.request(request(2))
    models.wait("fim.done", 2)
    assert [told["id"] for told in models.told("fim.done")] == [2]
    assert models.told("error") == []


@pytest.mark.parametrize("stop", ["cancel", "request", "warm"])
def test_reading_a_place_is_stopped(models: Models, completer: Completer, stop: str) -> None:
    compute(models)
    completer.warm(place(1))
    models.wait_call("warm")
    if stop == "cancel":
        completer.cancel(1)
    elif stop == "warm":
        completer.warm(place(2))
        models.wait_call("warm", 2)
    completer.request(request(3))
    assert models.wait("fim.done", 3)["text"] == "one"
    assert models.told("error") == []


def test_a_place_that_was_cancelled_before_it_was_read() -> None:
    models = Models()
    completer = Completer(CompletionConfig(), models._tell, models.open)
    completer.warm(place(1))
    completer.cancel(1)
    assert models.sent == []
    completer.start()
    completer.request(request(2))
    models.wait("fim.done", 2)
    assert completer.close(10)
    assert models.names("warm") == []


def test_on_battery_no_place_is_read(models: Models, completer: Completer, tmp_path: Path) -> None:
    (tmp_path / "battery").touch()
    completer.warm(place(1))
    wait_queue(completer)
    completer.request(request(2))
    models.wait("fim.done", 2)
    assert models.names("warm") == []


def test_a_better_answer_belongs_to_the_last_request(models: Models, completer: Completer) -> None:
    improve(models)
    completer.request(request(7))
    told = models.wait("fim.improved")
    assert (told["id"], told["text"], told["replaces"]) == (7, "one more", 1)
    assert set(told["stats"]) == set(protocol.fields(protocol.fim.FimStats))
    assert told["stats"]["decoded_tokens"] == 4
    assert told["stats"]["passes"] == 2
    assert told["stats"]["window"] == "full"
    names = [name for name, _ in models.sent]
    assert names.index("fim.done") < names.index("fim.improved")


def test_no_better_answer_where_another_place_was_read(
    models: Models, completer: Completer
) -> None:
    completer.request(request(7))
    models.wait("fim.done", 7)
    improve(models)
    completer.warm(place(8))
    models.wait_call("idle")
    completer.request(request(9))
    models.wait("fim.done", 9)
    assert models.told("fim.improved") == []
