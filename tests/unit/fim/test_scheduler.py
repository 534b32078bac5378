"""Latest wins: one owner thread, a mailbox of one. Timing is by events, never by sleeping."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from lcursor.fim.scheduler import IDLE_S, Job, Scheduler


class Desk:
    """A scheduler whose jobs run until they are let go or aborted."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.finished: list[tuple[int, str]] = []
        self.dropped: list[int] = []
        self.idled: list[str] = []
        self.threads: set[int] = set()
        self._aborted = threading.Event()
        self.released = threading.Event()
        self._changed = threading.Condition()
        self.scheduler: Scheduler[str] = Scheduler(
            prepare=lambda: None,
            run=self._run,
            abort=self._abort,
            resume=self._aborted.clear,
            idle=self._idle,
            dropped=self._drop,
        )

    def _note(self, act: Callable[[], None]) -> None:
        with self._changed:
            act()
            self._changed.notify_all()

    def _abort(self) -> None:
        self._note(self._aborted.set)

    def _drop(self, job: Job[str]) -> None:
        self._note(lambda: self.dropped.append(job.id))

    def _run(self, job: Job[str]) -> None:
        self.threads.add(threading.get_ident())
        self._note(lambda: self.started.append(job.id))
        with self._changed:
            self._changed.wait_for(lambda: self._aborted.is_set() or self.released.is_set(), 10)
        how = "aborted" if self._aborted.is_set() else "done"
        self._note(lambda: self.finished.append((job.id, how)))

    def _idle(self) -> bool:
        """Run until something comes, as a long refresh would."""
        self._note(lambda: self.idled.append("began"))
        with self._changed:
            self._changed.wait_for(lambda: self._aborted.is_set() or self.released.is_set(), 10)
        how = "aborted" if self._aborted.is_set() else "done"
        self._note(lambda: self.idled.append(how))
        return how == "aborted"

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


def test_only_the_first_piece_of_idle_work_waits() -> None:
    times_s: list[float] = []
    ended = threading.Event()

    def idle() -> bool:
        times_s.append(time.monotonic())
        if len(times_s) == 50:
            ended.set()
        return len(times_s) < 50

    scheduler: Scheduler[None] = Scheduler(
        prepare=lambda: None,
        run=lambda job: None,
        abort=lambda: None,
        resume=lambda: None,
        idle=idle,
        dropped=lambda job: None,
    )
    began_s = time.monotonic()
    scheduler.start()
    assert ended.wait(20)
    assert scheduler.close()
    assert times_s[0] - began_s >= IDLE_S
    assert times_s[-1] - times_s[0] < 49 * IDLE_S / 2
