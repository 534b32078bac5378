"""Jobs that run one after another, on a thread that is there only while it is needed."""

from __future__ import annotations

import threading

import pytest

from lcursor import executor
from lcursor.executor import SerialExecutor
from tests.waiting import wait_for


class Jobs:
    """An executor, what its jobs did, and the errors that it reported."""

    def __init__(self, name: str = "lcursor-test") -> None:
        self.done: list[int] = []
        self.errors: list[tuple[str, int]] = []
        self.executor = SerialExecutor(name, lambda error, of: self.errors.append((str(error), of)))

    def submit(self, *numbers: int) -> None:
        for number in numbers:
            self.executor.submit(lambda number=number: self.done.append(number))  # type: ignore[misc]


def has_thread(name: str) -> bool:
    return any(thread.name == name for thread in threading.enumerate())


def test_jobs_run_in_order_and_an_error_is_reported_with_its_request() -> None:
    jobs = Jobs()

    def fail() -> None:
        raise ValueError("broken")

    jobs.submit(1, 2)
    jobs.executor.submit(fail, 7)
    jobs.submit(3)
    assert jobs.executor.finish()
    assert jobs.done == [1, 2, 3]
    assert jobs.errors == [("broken", 7)]


def test_the_thread_ends_after_the_last_job_and_returns_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executor, "IDLE_S", 0.0)
    jobs = Jobs("lcursor-ends")
    for number in (1, 2, 3):
        jobs.submit(number)
        wait_for(lambda: not has_thread("lcursor-ends"))
    assert jobs.done == [1, 2, 3]


def test_no_job_is_lost_when_the_thread_is_about_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "IDLE_S", 0.0)
    jobs = Jobs()
    for number in range(2000):
        jobs.submit(number)
    assert jobs.executor.finish()
    assert jobs.done == list(range(2000))


def test_finishing_includes_what_jobs_submit_and_has_a_time_limit() -> None:
    jobs, may_end = Jobs(), threading.Event()

    def wait_and_submit() -> None:
        assert may_end.wait(20)
        jobs.submit(2)

    jobs.executor.submit(wait_and_submit)
    assert not jobs.executor.finish(0.01)
    may_end.set()
    assert jobs.executor.finish()
    assert jobs.done == [2]


def test_a_slow_job_delays_no_other_executor() -> None:
    slow, quick, may_end = Jobs(), Jobs(), threading.Event()

    def wait() -> None:
        assert may_end.wait(20)

    slow.executor.submit(wait)
    quick.submit(1)
    assert quick.executor.finish()
    assert not slow.executor.finish(0.01)
    may_end.set()
    assert slow.executor.finish()
