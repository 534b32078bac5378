"""A thread that does one job after another, for who may not wait. Imports nothing of ours."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Job = Callable[[], None]
Failed = Callable[[Exception, int], None]
"""Told what a job raised, and the id of the request that it was for."""


class Lane:
    """A thread, started with its first job.

    Args:
        name: of the thread.
        failed: told about jobs that raise.
    """

    def __init__(self, name: str, failed: Failed) -> None:
        self._name, self._failed = name, failed
        self._jobs: queue.SimpleQueue[tuple[Job, int] | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_started(self) -> bool:
        """Whether it was ever given a job."""
        return self._thread is not None

    def put(self, job: Job, number: int = 0) -> None:
        """Do a job when those before it are done. Thread: any."""
        self._jobs.put((job, number))
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def close(self, timeout_s: float) -> None:
        """Do what waits, and end."""
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, number = item
            try:
                job()
            except Exception as error:  # noqa: BLE001 - the root of the thread
                self._failed(error, number)
