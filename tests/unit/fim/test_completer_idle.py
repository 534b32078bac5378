"""What is done in idle time: less while other programs use all cores; the speed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lcursor.catalog.hardware import Load, Power
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled, OutOfMemory
from lcursor.fim import completer as module
from tests.fakes.engine import Models, request, wait_queue
from tests.unit.fim.conftest import Start
from tests.unit.fim.test_completer_ahead import place

CONFIG = CompletionConfig(model="one")


class Others(Load):
    """Other programs, which use all cores or none."""

    def __init__(self, *, busy: bool) -> None:
        self.busy = busy

    def is_busy(self) -> bool:
        return self.busy


def test_the_engine_learns_of_other_programs(
    models: Models, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle work goes on without a request once these are gone."""
    monkeypatch.setattr(module, "BUSY_S", 0.01)
    others = Others(busy=True)
    start(CONFIG, load=others)
    models.wait_call("idle", 3)
    assert models.engine
    assert models.engine.is_machine_busy
    others.busy = False
    models.wait_call("idle", len(models.names("idle")) + 1)
    assert not models.engine.is_machine_busy


def test_with_other_programs_no_position_is_read(models: Models, start: Start) -> None:
    completer = start(CONFIG, load=Others(busy=True))
    completer.warm(place(1))
    wait_queue(completer)
    completer.request(request(2))
    models.wait("fim.done", 2)
    assert models.names("warm") == []


class Meter:
    """Measures with one outcome after the other."""

    def __init__(self, *outcomes: str | Exception) -> None:
        self.outcomes = list(outcomes)
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def logs(models: Models) -> list[str]:
    return [each["message"] for each in models.told("log")]


@pytest.mark.parametrize(
    ("outcome", "text"),
    [("it is fast", "it is fast"), ("", None), (OutOfMemory("no memory"), "no memory")],
)
def test_the_speed_is_measured_once(
    models: Models, start: Start, outcome: str | Exception, text: str | None
) -> None:
    meter = models.measure_speed = Meter(outcome)
    completer = start(CONFIG, measures_speed=True)
    models.wait_call("idle")
    completer.request(request(1))
    models.wait("fim.done", 1)
    models.wait_call("idle", 2)
    wait_queue(completer)
    assert meter.count == 1
    assert [each for each in logs(models) if "ready after" not in each] == [
        each for each in logs(models) if text and text in each
    ]
    assert text is None or any(text in each for each in logs(models))
    assert models.told("error") == []


def test_a_measurement_that_a_request_stopped_is_repeated(models: Models, start: Start) -> None:
    meter = models.measure_speed = Meter(Cancelled("a request"), "it is fast")
    start(CONFIG, measures_speed=True)
    models.wait("log", count=2)
    assert "it is fast" in logs(models)
    assert meter.count == 2


@pytest.mark.parametrize("reason", ["busy", "battery"])
def test_the_speed_is_not_measured(
    models: Models, start: Start, tmp_path: Path, reason: str
) -> None:
    meter = models.measure_speed = Meter()
    more = dict[str, Any]()
    if reason == "busy":
        more["load"] = Others(busy=True)
    elif reason == "battery":
        more["power"] = Power(lambda: True)
    completer = start(CONFIG, measures_speed=True, **more)
    models.wait_call("idle")
    count = len(models.names("idle"))
    completer.request(request(1))
    models.wait("fim.done", 1)
    models.wait_call("idle", count + 1)
    wait_queue(completer)
    assert meter.count == 0
