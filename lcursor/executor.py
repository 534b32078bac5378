"""Runs jobs one after another in the background, for callers that must not block.

Each feature has executors of its own, so that a slow job of one never delays another. Only busy
ones have a thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

Job = Callable[[], None]
OnError = Callable[[Exception, int], None]
"""Called with the exception of a job and the id of its request."""

IDLE_S: Final = 1.0
"""Time without jobs after which a thread ends: one for each key typed would be wasteful."""
FINISH_S: Final = 5.0
"""Time limit for jobs when a host ends: nobody waits for it, but it must not stay forever."""


class SerialExecutor:
    """Runs jobs in order, on a thread that starts with a job and ends soon after the last one.

    Args:
        name: of the thread.
        on_error: called on that thread for each job that raises.
    """

    def __init__(self, name: str, on_error: OnError) -> None:
        self._name, self._on_error = name, on_error
        self._changed = threading.Condition()
        self._jobs: deque[tuple[Job, int]] = deque()
        self._has_thread = self._is_running_job = False
        self.is_used = False
        """Whether a job was ever submitted."""

    def submit(self, job: Job, number: int = 0) -> None:
        """Run a job after all earlier ones. Thread: any."""
        with self._changed:
            self.is_used = True
            self._jobs.append((job, number))
            self._changed.notify_all()
            if not self._has_thread:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
                self._has_thread = True

    def finish(self, timeout_s: float = FINISH_S) -> bool:
        """Wait until all jobs have run; return whether they have. Thread: any other."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._jobs and not self._is_running_job, timeout_s
            )

    def _run(self) -> None:
        while (item := self._next()) is not None:
            job, number = item
            try:
                job()
            except Exception as error:  # noqa: BLE001 - the root of the thread
                self._on_error(error, number)

    def _next(self) -> tuple[Job, int] | None:
        """Wait for the next job; return None if the thread has to end."""
        with self._changed:
            self._is_running_job = False
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._jobs, IDLE_S):
                self._has_thread = False
                return None
            self._is_running_job = True
            return self._jobs.popleft()
