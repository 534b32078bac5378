"""Latest wins: one owner thread, a mailbox of one. Timing is by events, never by sleeping."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from lcursor.fim.scheduler import IDLE_S, Job, Scheduler
from tests.fakes.engine import fail


class RecordedJobs:
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
def jobs() -> Iterator[RecordedJobs]:
    jobs = RecordedJobs()
    jobs.scheduler.start()
    yield jobs
    jobs.release()
    assert jobs.scheduler.close(5)


def test_a_newer_job_aborts_the_running_one(jobs: RecordedJobs) -> None:
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.started == [1])
    jobs.scheduler.submit(Job(2, ""))
    jobs.wait(lambda: jobs.started == [1, 2])
    jobs.release()
    jobs.wait(lambda: len(jobs.finished) == 2)
    assert jobs.finished == [(1, "aborted"), (2, "done")]


def test_only_the_latest_waiting_job_runs(jobs: RecordedJobs) -> None:
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.started == [1])
    for number in range(2, 50):
        jobs.scheduler.submit(Job(number, ""))
    jobs.release()
    jobs.wait(lambda: jobs.finished[-1:] == [(49, "done")])
    assert set(jobs.started) | set(jobs.dropped) == set(range(1, 50))
    assert not set(jobs.started) & set(jobs.dropped)
    assert len(jobs.threads) == 1


def test_work_ahead_takes_no_place_of_a_request(jobs: RecordedJobs) -> None:
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.started == [1])
    jobs.scheduler.submit(Job(2, "", is_ahead=True))  # waits behind a request that runs
    jobs.scheduler.submit(Job(3, ""))
    jobs.scheduler.submit(Job(4, "", is_ahead=True))  # ignored, since a request waits
    jobs.release()
    jobs.wait(lambda: len(jobs.finished) == 2)
    assert jobs.finished == [(1, "aborted"), (3, "done")]
    assert jobs.dropped == [2]


def test_work_ahead_lets_a_request_end(jobs: RecordedJobs) -> None:
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.started == [1])
    jobs.scheduler.submit(Job(2, "", is_ahead=True))
    jobs.release()
    jobs.wait(lambda: jobs.finished == [(1, "done"), (2, "done")])


@pytest.mark.parametrize("is_ahead", [False, True])
def test_work_in_advance_ends_for_a_newer_job(jobs: RecordedJobs, is_ahead: bool) -> None:
    jobs.scheduler.submit(Job(1, "", is_ahead=True))
    jobs.wait(lambda: jobs.started == [1])
    jobs.scheduler.submit(Job(2, "", is_ahead=is_ahead))
    jobs.wait(lambda: jobs.started == [1, 2])
    jobs.release()
    jobs.wait(lambda: jobs.finished == [(1, "aborted"), (2, "done")])


def test_cancel_of_a_waiting_job_drops_it(jobs: RecordedJobs) -> None:
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.started == [1])
    jobs.scheduler.cancel(1)
    jobs.wait(lambda: jobs.finished == [(1, "aborted")])


def test_cancel_of_an_unknown_job_changes_nothing(jobs: RecordedJobs) -> None:
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.started == [1])
    jobs.scheduler.cancel(99)
    jobs.release()
    jobs.wait(lambda: jobs.finished == [(1, "done")])


def test_close_ends_a_running_job() -> None:
    jobs = RecordedJobs()
    jobs.scheduler.start()
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.started == [1])
    assert jobs.scheduler.close(5)
    assert jobs.finished == [(1, "aborted")]


def test_idle_work_runs_without_a_job_and_ends_for_one(jobs: RecordedJobs) -> None:
    jobs.wait(lambda: jobs.idled == ["began"])
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.started == [1])
    assert jobs.idled == ["began", "aborted"]
    jobs.release()
    jobs.wait(lambda: jobs.finished == [(1, "done")])
    jobs.wait(lambda: jobs.idled[-1] == "done")
    assert jobs.scheduler.close(5)
    assert jobs.idled.count("done") == 1  # nothing more to do: it is not asked again


def test_a_call_interrupts_idle_work_and_waits_for_a_job(jobs: RecordedJobs) -> None:
    called: list[tuple[int, list[tuple[int, str]]]] = []

    def call() -> None:
        jobs._note(lambda: called.append((threading.get_ident(), list(jobs.finished))))

    jobs.wait(lambda: jobs.idled == ["began"])
    jobs.scheduler.call(call)
    jobs.wait(lambda: len(called) == 1)
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.started == [1])
    jobs.scheduler.call(call)
    jobs.release()
    jobs.wait(lambda: len(called) == 2)
    assert called[1] == (next(iter(jobs.threads)), [(1, "done")])


T = TypeVar("T")


class Waits(threading.Condition):
    """Waits for nothing; keeps how long it would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float | None] = []

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        self.asked.append(timeout)
        return super().wait_for(predicate, timeout if timeout is None else 0.0)


def test_idle_work_returns_when_it_is_called_again() -> None:
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


def test_a_job_that_raises_is_reported_and_the_next_one_runs(jobs: RecordedJobs) -> None:
    jobs.fails = True
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.failures == [("broken", 1)])
    jobs.fails = False
    jobs.scheduler.call(fail)
    jobs.wait(lambda: len(jobs.failures) == 2)
    jobs.scheduler.submit(Job(2, ""))
    jobs.wait(lambda: jobs.started == [1, 2])
    jobs.release()
    jobs.wait(lambda: jobs.finished == [(2, "done")])


@pytest.mark.parametrize("interrupts", [True, False])
def test_preparing_again_comes_before_a_job_that_waits(
    jobs: RecordedJobs, interrupts: bool
) -> None:
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.started == [1])
    jobs.scheduler.prepare_again(interrupts=interrupts)
    if not interrupts:
        jobs.release()
    jobs.wait(lambda: jobs.finished == [(1, "aborted" if interrupts else "done")])
    jobs.scheduler.submit(Job(2, ""))
    jobs.wait(lambda: jobs.started == [1, 2])
    assert jobs.prepared == 2


def test_a_call_that_does_not_interrupt_waits_for_idle_work(jobs: RecordedJobs) -> None:
    called = threading.Event()
    jobs.wait(lambda: jobs.idled == ["began"])
    jobs.scheduler.call(called.set, interrupts=False)
    jobs.release()
    assert called.wait(10)
    assert jobs.idled[:2] == ["began", "done"]


def test_closing_drops_the_waiting_job_and_finishes_on_the_thread(jobs: RecordedJobs) -> None:
    jobs.scheduler.submit(Job(1, ""))
    jobs.wait(lambda: jobs.started == [1])
    with jobs._changed:  # so that the thread cannot take the second job
        jobs.scheduler._waiting = Job(2, "")
    assert jobs.scheduler.close(5)
    assert jobs.dropped == [2]
    assert jobs.is_finished
    assert len(jobs.threads) == 1
