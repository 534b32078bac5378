"""Who runs next: one thread that owns llama.cpp, and a mailbox of one request.

The latest request wins: it takes the place of a waiting one and aborts a running one. When nobody
has asked for a moment, idle work runs, which any request aborts as well. Nothing here waits for the
model, so every method but `close` returns at once on any thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Work = TypeVar("Work")

IDLE_S = 0.25
"""Pause after the last request before idle work begins."""


@dataclass(slots=True)
class Job(Generic[Work]):
    """A request in the mailbox."""

    id: int
    work: Work
    arrived_s: float = field(default_factory=time.perf_counter)


class Scheduler(Generic[Work]):
    """Runs jobs one by one on its own thread.

    Args:
        prepare: called once on the thread, before the first job (loads the model).
        run: called for each job that still matters.
        abort: makes a running `run` or `prepare` return soon; called on any thread.
        resume: takes the abort back, on the thread, before the next job.
        idle: does one piece of work that nobody waits for; returns whether there is more.
        dropped: told of each job that was superseded or cancelled before it ran.
    """

    def __init__(
        self,
        *,
        prepare: Callable[[], None],
        run: Callable[[Job[Work]], None],
        abort: Callable[[], None],
        resume: Callable[[], None],
        idle: Callable[[], bool],
        dropped: Callable[[Job[Work]], None],
    ) -> None:
        self._prepare, self._run = prepare, run
        self._abort, self._resume, self._dropped = abort, resume, dropped
        self._idle = idle
        self._changed = threading.Condition()
        self._waiting: Job[Work] | None = None
        self._running: Job[Work] | None = None
        self._calls: deque[Callable[[], None]] = deque()
        self._is_idling = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._loop, name="lcursor-engine", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, job: Job[Work]) -> None:
        """Make this the next job; everything older is abandoned."""
        with self._changed:
            older, self._waiting = self._waiting, job
            if self._running or self._is_idling:
                self._abort()
            self._changed.notify()
        if older:
            self._dropped(older)

    def cancel(self, number: int) -> None:
        """Abandon job `number`, waiting or running."""
        with self._changed:
            older = None
            if self._waiting and self._waiting.id == number:
                older, self._waiting = self._waiting, None
            elif self._running and self._running.id == number:
                self._abort()
        if older:
            self._dropped(older)

    def call(self, work: Callable[[], None]) -> None:
        """Run `work` on the thread once no request waits or runs; it makes idle work pause."""
        with self._changed:
            self._calls.append(work)
            if self._is_idling:
                self._abort()
            self._changed.notify()

    def close(self, timeout_s: float = 1.0) -> bool:
        """Stop; return whether the thread ended in time."""
        with self._changed:
            self._is_closed = True
            self._waiting = None
            self._abort()
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        self._prepare()
        pause_s: float | None = IDLE_S
        while True:
            job = self._next(pause_s)
            if job:
                self._run(job)
                pause_s = IDLE_S
            elif self._is_closed:
                return
            elif self._calls:
                self._calls.popleft()()
                pause_s = IDLE_S
            else:
                pause_s = 0.0 if self._idle() else None

    def _next(self, timeout_s: float | None) -> Job[Work] | None:
        """Wait for a job; None when the time is up or all is over."""
        with self._changed:
            self._running, self._is_idling = None, False
            self._changed.wait_for(
                lambda: self._waiting is not None or self._is_closed or self._calls, timeout_s
            )
            if self._is_closed:
                return None
            self._running, self._waiting = self._waiting, None
            self._is_idling = self._running is None
            self._resume()
            return self._running
