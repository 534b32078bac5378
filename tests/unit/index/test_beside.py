"""Work on a thread of its own."""

from __future__ import annotations

import threading

import pytest

from lcursor.index.beside import Beside


def test_it_runs_at_once_on_another_thread() -> None:
    begun, go = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        assert go.wait(10)
        return threading.current_thread().name

    beside = Beside(work, "somewhere")
    assert begun.wait(10)
    go.set()
    assert beside.result() == "somewhere"
    assert beside.result() == "somewhere"


def test_what_it_raises_is_raised_where_the_result_is_asked_for() -> None:
    def work() -> None:
        raise ValueError("of no use")

    beside = Beside(work, "somewhere")
    with pytest.raises(ValueError, match="of no use"):
        beside.result()


def test_nothing_is_a_result_too() -> None:
    assert Beside(lambda: None, "somewhere").result() is None
