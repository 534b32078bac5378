"""Schedule jobs on the only thread that uses llama.cpp; a mailbox has at most one pending job.

The latest request wins: it replaces a pending one and aborts a running one. After a short pause
without requests, idle work runs, which any request also aborts. No method except `close` blocks;
any thread. An exception in a callback is reported and never ends the thread.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

Work = TypeVar("Work")
Returned = TypeVar("Returned")

IDLE_S = 0.25
"""Pause after the last request before idle work starts."""

Step = Callable[[], float | None]
"""Does one step of work; returns the maximum pause before the next one, None for no limit."""


@dataclass(slots=True)
class Job(Generic[Work]):
    """A job in the mailbox; work in advance never replaces a request."""

    id: int
    work: Work
    arrived_s: float = field(default_factory=time.perf_counter)
    is_ahead: bool = False


class Scheduler(Generic[Work]):
    """Runs jobs one by one on its own thread.

    Args:
        prepare: called on the thread before the first job (loads the model), and after
            `prepare_again`.
        run: called for each job that was not superseded.
        abort: makes a running `run` or `idle` return soon; called on any thread, with the job that
            supersedes it, if any.
        resume: clears the abort; called on the thread before the next job.
        idle: does one step of idle work; returns the seconds until the next step, None to wait for
            the next job or call.
        dropped: called with each job that was superseded or cancelled before it ran.
        failed: called with an exception of a callback, and the running job, if any.
        finish: called on the thread, once, at its end (frees the model).
        changed: guards the mailbox and wakes the thread.
    """

    def __init__(
        self,
        *,
        prepare: Callable[[], None],
        run: Callable[[Job[Work]], None],
        abort: Callable[[Job[Work] | None], None],
        resume: Callable[[], None],
        idle: Step,
        dropped: Callable[[Job[Work]], None],
        failed: Callable[[Exception, Job[Work] | None], None],
        finish: Callable[[], None],
        changed: threading.Condition | None = None,
    ) -> None:
        self._prepare, self._run, self._idle, self._finish = prepare, run, idle, finish
        self._abort, self._resume = abort, resume
        self._dropped, self._failed = dropped, failed
        self._changed = changed or threading.Condition()
        self._waiting: Job[Work] | None = None
        self._running: Job[Work] | None = None
        self._calls: deque[Callable[[], None]] = deque()
        self._must_prepare = True
        self._is_idling = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._loop, name="lcursor-engine", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, job: Job[Work]) -> None:
        """Make this the next job, and cancel older ones.

        A job with `is_ahead` is ignored while a request is pending, and never aborts a running one.
        """
        with self._changed:
            older, running = self._waiting, self._running
            if job.is_ahead and older and not older.is_ahead:
                return
            self._waiting = job
            if self._is_idling or (running and (running.is_ahead or not job.is_ahead)):
                self._abort(job)
            self._changed.notify()
        if older:
            self._dropped(older)

    def cancel(self, number: int) -> None:
        """Cancel job `number`, pending or running."""
        with self._changed:
            older = None
            if self._waiting and self._waiting.id == number:
                older, self._waiting = self._waiting, None
            elif self._running and self._running.id == number:
                self._abort(None)
        if older:
            self._dropped(older)

    def call(self, work: Callable[[], None], *, interrupts: bool = True) -> None:
        """Run `work` on the thread once no request is pending or running; may abort idle work."""
        with self._changed:
            self._calls.append(work)
            if interrupts and self._is_idling:
                self._abort(None)
            self._changed.notify()

    def prepare_again(self, *, interrupts: bool) -> None:
        """Run `prepare` before the next or pending job; may abort the running one."""
        with self._changed:
            self._must_prepare = True
            if interrupts:
                self._abort(None)
            self._changed.notify()

    def close(self, timeout_s: float = 1.0) -> bool:
        """Stop; return whether the thread ended in time."""
        with self._changed:
            self._is_closed = True
            older, self._waiting = self._waiting, None
            self._abort(None)
            self._changed.notify()
        if older:
            self._dropped(older)
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        wait_s: float | None = None
        while (step := self._next(wait_s)) is not None:
            wait_s = step()
        self._guard(self._finish)

    def _next(self, timeout_s: float | None) -> Step | None:
        """Wait for work, or for the time of idle work; return None after `close`."""
        with self._changed:
            self._running, self._is_idling = None, False
            self._changed.wait_for(self._has_work, timeout_s)
            if self._is_closed:
                return None
            self._resume()
            if self._must_prepare:
                self._must_prepare = False
                return self._do_prepare
            if self._waiting:
                self._running, self._waiting = self._waiting, None
                return partial(self._do_job, self._running)
            self._is_idling = True
            return partial(self._do_call, self._calls.popleft()) if self._calls else self._do_idle

    def _has_work(self) -> bool:
        return bool(self._is_closed or self._must_prepare or self._waiting or self._calls)

    def _do_prepare(self) -> float | None:
        self._guard(self._prepare)
        return IDLE_S

    def _do_job(self, job: Job[Work]) -> float | None:
        self._guard(partial(self._run, job), job)
        return IDLE_S

    def _do_call(self, work: Callable[[], None]) -> float | None:
        self._guard(work)
        return IDLE_S

    def _do_idle(self) -> float | None:
        return self._guard(self._idle)

    def _guard(self, work: Callable[[], Returned], job: Job[Work] | None = None) -> Returned | None:
        """Call `work`; report an exception and return None."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - the root of the thread
            with contextlib.suppress(Exception):  # reporting it failed as well
                self._failed(error, job)
            return None
