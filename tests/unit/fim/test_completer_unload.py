"""A model that nobody asks is freed after `idle_minutes`, and loaded again for the next request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lcursor.config import CompletionConfig
from lcursor.fim.completer import Completer
from tests.fakes.engine import Models, request, wait_queue
from tests.unit.fim.conftest import Start
from tests.unit.fim.test_completer_ahead import place

CONFIG = CompletionConfig(model="one", idle_minutes=30)


class Clock:
    """Seconds that pass when the test says so."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def completer(start: Start, clock: Clock) -> Completer:
    return start(CONFIG, clock=clock)


def rest(models: Models, completer: Completer, clock: Clock, minutes: float) -> None:
    """Let time pass without a request, and idle work look at the clock afterwards."""
    clock.now_s += 60 * minutes
    count = len(models.names("idle"))
    wait_queue(completer)
    models.wait_call("idle", count + 1)


def unload(models: Models, completer: Completer, clock: Clock) -> None:
    rest(models, completer, clock, 30)
    models.wait_call("close")


def test_a_model_is_saved_and_freed_after_the_idle_minutes(
    models: Models, completer: Completer, clock: Clock
) -> None:
    rest(models, completer, clock, 29.9)
    completer.request(request(1))
    models.wait("fim.done", 1)
    rest(models, completer, clock, 29.9)
    assert models.names("close") == []
    rest(models, completer, clock, 0.2)
    models.wait_call("close")
    assert models.names("save", "close") == [("save", "one"), ("close", "one")]
    assert "freed one" in models.wait("log", count=2)["message"]
    states = [told["state"] for told in models.told("state")]
    assert states == ["loading_model", "ready"], "the editor goes on asking"


def test_a_request_loads_the_model_again_and_is_answered(
    models: Models, completer: Completer, clock: Clock
) -> None:
    unload(models, completer, clock)
    completer.request(request(1))
    assert models.wait("fim.done", 1)["text"] == "one"
    assert models.names("open") == [("open", "one")] * 2
    states = [told["state"] for told in models.told("state")]
    assert states == ["loading_model", "ready"] * 2
    rest(models, completer, clock, 30)
    models.wait_call("close", 2)


def test_a_position_to_read_in_advance_loads_the_model(
    models: Models, completer: Completer, clock: Clock
) -> None:
    unload(models, completer, clock)
    completer.warm(place(1))
    models.wait_call("warm")
    assert models.names("open") == [("open", "one")] * 2


@pytest.mark.parametrize("minutes", [0, -1])
def test_a_model_stays_loaded_if_idle_minutes_is_zero_or_less(
    models: Models, completer: Completer, clock: Clock, minutes: int
) -> None:
    completer.configure(replace(CONFIG, idle_minutes=minutes))
    models.wait_call("configure")
    rest(models, completer, clock, 10_000)
    rest(models, completer, clock, 10_000)
    assert models.names("close") == []
