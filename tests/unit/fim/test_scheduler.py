"""Latest wins: one owner thread, a mailbox of one. Timing is by events, never by sleeping."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from lcursor.fim.scheduler import IDLE_S, Job, Scheduler
from tests.fakes.engine import fail


class Desk:
    """A scheduler whose jobs run until they are let go or aborted."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.finished: list[tuple[int, str]] = []
        self.dropped: list[int] = []
        self.idled: list[str] = []
        self.failures: list[tuple[str, int]] = []
        self.prepared = 0
        self.is_finished = False
        self.fails = False
        self.threads: set[int] = set()
        self._aborted = threading.Event()
        self.released = threading.Event()
        self._changed = threading.Condition()
        self.scheduler: Scheduler[str] = Scheduler(
            prepare=self._prepare,
            run=self._run,
            abort=self._abort,
            resume=self._aborted.clear,
            idle=self._idle,
            dropped=self._drop,
            failed=self._fail,
            finish=self._finish,
        )

    def _prepare(self) -> None:
        self.prepared += 1

    def _finish(self) -> None:
        self.threads.add(threading.get_ident())
        self.is_finished = True

    def _fail(self, error: Exception, job: Job[str] | None) -> None:
        self._note(lambda: self.failures.append((str(error), job.id if job else 0)))
        raise RuntimeError("and that could not be reported")

    def _note(self, act: Callable[[], None]) -> None:
        with self._changed:
            act()
            self._changed.notify_all()

    def _abort(self, newer: Job[str] | None) -> None:
        self._note(self._aborted.set)

    def _drop(self, job: Job[str]) -> None:
        self._note(lambda: self.dropped.append(job.id))

    def _run(self, job: Job[str]) -> None:
        self.threads.add(threading.get_ident())
        self._note(lambda: self.started.append(job.id))
        if self.fails:
            raise RuntimeError("broken")
        with self._changed:
            self._changed.wait_for(lambda: self._aborted.is_set() or self.released.is_set(), 10)
        how = "aborted" if self._aborted.is_set() else "done"
        self._note(lambda: self.finished.append((job.id, how)))

    def _idle(self) -> float | None:
        """Run until something comes, as a long refresh would."""
        self._note(lambda: self.idled.append("began"))
        with self._changed:
            self._changed.wait_for(lambda: self._aborted.is_set() or self.released.is_set(), 10)
        how = "aborted" if self._aborted.is_set() else "done"
        self._note(lambda: self.idled.append(how))
        return 0.0 if how == "aborted" else None

    def release(self) -> None:
        self._note(self.released.set)

    def wait(self, predicate: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(predicate, 10)


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    desk.scheduler.start()
    yield desk
    desk.release()
    assert desk.scheduler.close(5)


def test_a_newer_job_aborts_the_running_one(desk: Desk) -> None:
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.started == [1])
    desk.scheduler.submit(Job(2, ""))
    desk.wait(lambda: desk.started == [1, 2])
    desk.release()
    desk.wait(lambda: len(desk.finished) == 2)
    assert desk.finished == [(1, "aborted"), (2, "done")]


def test_only_the_latest_waiting_job_runs(desk: Desk) -> None:
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.started == [1])
    for number in range(2, 50):
        desk.scheduler.submit(Job(number, ""))
    desk.release()
    desk.wait(lambda: desk.finished[-1:] == [(49, "done")])
    assert set(desk.started) | set(desk.dropped) == set(range(1, 50))
    assert not set(desk.started) & set(desk.dropped)
    assert len(desk.threads) == 1


def test_work_ahead_takes_no_place_of_a_request(desk: Desk) -> None:
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.started == [1])
    desk.scheduler.submit(Job(2, "", is_ahead=True))  # waits behind a request that runs
    desk.scheduler.submit(Job(3, ""))
    desk.scheduler.submit(Job(4, "", is_ahead=True))  # ignored, since a request waits
    desk.release()
    desk.wait(lambda: len(desk.finished) == 2)
    assert desk.finished == [(1, "aborted"), (3, "done")]
    assert desk.dropped == [2]


def test_work_ahead_lets_a_request_end(desk: Desk) -> None:
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.started == [1])
    desk.scheduler.submit(Job(2, "", is_ahead=True))
    desk.release()
    desk.wait(lambda: desk.finished == [(1, "done"), (2, "done")])


@pytest.mark.parametrize("is_ahead", [False, True])
def test_work_ahead_ends_for_what_is_newer(desk: Desk, is_ahead: bool) -> None:
    desk.scheduler.submit(Job(1, "", is_ahead=True))
    desk.wait(lambda: desk.started == [1])
    desk.scheduler.submit(Job(2, "", is_ahead=is_ahead))
    desk.wait(lambda: desk.started == [1, 2])
    desk.release()
    desk.wait(lambda: desk.finished == [(1, "aborted"), (2, "done")])


def test_cancel_of_a_waiting_job_drops_it(desk: Desk) -> None:
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.started == [1])
    desk.scheduler.cancel(1)
    desk.wait(lambda: desk.finished == [(1, "aborted")])


def test_cancel_of_an_unknown_job_changes_nothing(desk: Desk) -> None:
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.started == [1])
    desk.scheduler.cancel(99)
    desk.release()
    desk.wait(lambda: desk.finished == [(1, "done")])


def test_close_ends_a_running_job() -> None:
    desk = Desk()
    desk.scheduler.start()
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.started == [1])
    assert desk.scheduler.close(5)
    assert desk.finished == [(1, "aborted")]


def test_idle_work_runs_when_nobody_asks_and_gives_way(desk: Desk) -> None:
    desk.wait(lambda: desk.idled == ["began"])
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.started == [1])
    assert desk.idled == ["began", "aborted"]
    desk.release()
    desk.wait(lambda: desk.finished == [(1, "done")])
    desk.wait(lambda: desk.idled[-1] == "done")
    assert desk.scheduler.close(5)
    assert desk.idled.count("done") == 1  # nothing more to do: it is not asked again


def test_a_call_interrupts_idle_work_and_waits_for_a_job(desk: Desk) -> None:
    called: list[tuple[int, list[tuple[int, str]]]] = []

    def call() -> None:
        desk._note(lambda: called.append((threading.get_ident(), list(desk.finished))))

    desk.wait(lambda: desk.idled == ["began"])
    desk.scheduler.call(call)
    desk.wait(lambda: len(called) == 1)
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.started == [1])
    desk.scheduler.call(call)
    desk.release()
    desk.wait(lambda: len(called) == 2)
    assert called[1] == (next(iter(desk.threads)), [(1, "done")])


T = TypeVar("T")


class Waits(threading.Condition):
    """Waits for nothing; keeps how long it would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float | None] = []

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        self.asked.append(timeout)
        return super().wait_for(predicate, timeout if timeout is None else 0.0)


def test_idle_work_says_when_it_wants_to_be_called_again() -> None:
    waits, done = Waits(), list[int]()
    ended = threading.Event()

    def idle() -> float | None:
        done.append(len(done))
        if len(done) == 51:
            ended.set()
            return None
        return 0.0 if len(done) < 50 else 1800.0

    scheduler: Scheduler[None] = Scheduler(
        prepare=lambda: None,
        run=lambda job: None,
        abort=lambda _: None,
        resume=lambda: None,
        idle=idle,
        dropped=lambda job: None,
        failed=lambda error, job: None,
        finish=lambda: None,
        changed=waits,
    )
    scheduler.start()
    assert ended.wait(20)
    assert scheduler.close(10)
    assert waits.asked == [None, IDLE_S, *[0.0] * 49, 1800.0, None]


def test_a_job_that_raises_is_reported_and_the_next_one_runs(desk: Desk) -> None:
    desk.fails = True
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.failures == [("broken", 1)])
    desk.fails = False
    desk.scheduler.call(fail)
    desk.wait(lambda: len(desk.failures) == 2)
    desk.scheduler.submit(Job(2, ""))
    desk.wait(lambda: desk.started == [1, 2])
    desk.release()
    desk.wait(lambda: desk.finished == [(2, "done")])


@pytest.mark.parametrize("interrupts", [True, False])
def test_preparing_again_comes_before_a_job_that_waits(desk: Desk, interrupts: bool) -> None:
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.started == [1])
    desk.scheduler.prepare_again(interrupts=interrupts)
    if not interrupts:
        desk.release()
    desk.wait(lambda: desk.finished == [(1, "aborted" if interrupts else "done")])
    desk.scheduler.submit(Job(2, ""))
    desk.wait(lambda: desk.started == [1, 2])
    assert desk.prepared == 2


def test_a_call_that_does_not_interrupt_waits_for_idle_work(desk: Desk) -> None:
    called = threading.Event()
    desk.wait(lambda: desk.idled == ["began"])
    desk.scheduler.call(called.set, interrupts=False)
    desk.release()
    assert called.wait(10)
    assert desk.idled[:2] == ["began", "done"]


def test_closing_drops_the_waiting_job_and_finishes_on_the_thread(desk: Desk) -> None:
    desk.scheduler.submit(Job(1, ""))
    desk.wait(lambda: desk.started == [1])
    with desk._changed:  # so that the thread cannot take the second job
        desk.scheduler._waiting = Job(2, "")
    assert desk.scheduler.close(5)
    assert desk.dropped == [2]
    assert desk.is_finished
    assert len(desk.threads) == 1
