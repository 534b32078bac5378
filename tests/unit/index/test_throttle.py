"""When bulk work may go on."""

from __future__ import annotations

import threading

import pytest

from lcursor.index import throttle
from lcursor.index.throttle import Throttle


class Clock:
    """Stands in for the module `time` of the throttle."""

    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(throttle, "time", clock)
    return clock


def test_typing_holds_the_work_for_a_while(clock: Clock) -> None:
    it = Throttle(typing_s=5)
    assert not it.held_s
    it.typing()
    assert it.held_s == 5
    clock.now_s += 4
    assert it.held_s == 1
    it.typing()
    assert it.held_s == 5
    clock.now_s += 5
    assert not it.held_s
    assert it.passes()


def test_the_editor_counts_as_idle_some_time_after_the_last_key(clock: Clock) -> None:
    it = Throttle(typing_s=0.01)
    assert it.is_quiet()
    it.typing()
    clock.now_s += throttle.QUIET_S
    assert not it.is_quiet()
    clock.now_s += 1
    assert it.is_quiet()
    with it.query():
        assert not it.is_quiet()
    assert it.is_quiet()


def test_work_waits_for_a_query_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "QUERY_S", 60.0)
    it, passed = Throttle(), threading.Event()
    started = threading.Event()

    def work() -> None:
        started.set()
        it.passes()
        passed.set()

    with it.query():
        thread = threading.Thread(target=work)
        thread.start()
        started.wait(30)
        assert not passed.wait(0.05)
    assert passed.wait(30)
    thread.join()


def test_queries_without_end_do_not_stop_the_work() -> None:
    it = Throttle()
    with it.query(), it.query():
        assert it.passes()


def test_nothing_passes_after_the_end() -> None:
    it = Throttle()
    it.stop()
    assert it.is_stopped
    assert not it.passes()
