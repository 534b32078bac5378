"""When bulk work may go on."""

from __future__ import annotations

import threading
import time

import pytest

from lcursor.index import gate
from lcursor.index.gate import Gate


def test_typing_holds_the_work_for_a_while() -> None:
    it = Gate(typing_s=0.05)
    assert not it.held_s
    it.typing()
    assert 0 < it.held_s <= 0.05
    deadline_s = time.monotonic() + 5
    while it.held_s:
        assert time.monotonic() < deadline_s
    assert it.passes()


def test_it_is_quiet_long_after_the_last_key(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Gate(typing_s=0.01)
    assert it.is_quiet()
    it.typing()
    assert not it.is_quiet()
    monkeypatch.setattr(gate, "QUIET_S", 0.0)
    assert it.is_quiet()
    with it.query():
        assert not it.is_quiet()
    assert it.is_quiet()


def test_work_waits_for_a_query_to_end() -> None:
    it, passed = Gate(), threading.Event()
    started = threading.Event()

    def work() -> None:
        started.set()
        it.passes()
        passed.set()

    with it.query():
        thread = threading.Thread(target=work)
        thread.start()
        started.wait(5)
        was_early = passed.wait(gate.QUERY_S / 3)
    thread.join(5)
    assert passed.is_set()
    assert not was_early


def test_queries_without_end_do_not_stop_the_work() -> None:
    it = Gate()
    with it.query(), it.query():
        start_s = time.monotonic()
        assert it.passes()
        assert time.monotonic() - start_s < 5


def test_nothing_passes_after_the_end() -> None:
    it = Gate()
    it.stop()
    assert it.is_stopped
    assert not it.passes()
