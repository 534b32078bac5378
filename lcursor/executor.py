"""A thread that runs jobs one after another, for callers that must not block."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Job = Callable[[], None]
OnError = Callable[[Exception, int], None]
"""Called with the exception of a job and the id of its request."""


class SerialExecutor:
    """Runs jobs in order on one thread, which starts with the first job.

    Args:
        on_error: called on that thread for each job that raises.
    """

    def __init__(self, name: str, on_error: OnError) -> None:
        self._name, self._on_error = name, on_error
        self._jobs: queue.SimpleQueue[tuple[Job, int] | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def is_started(self) -> bool:
        """Whether a job was ever submitted."""
        return self._thread is not None

    def submit(self, job: Job, number: int = 0) -> None:
        """Run a job after all earlier ones. Thread: any."""
        self._jobs.put((job, number))
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def close(self, timeout_s: float) -> None:
        """Finish the queued jobs and stop the thread."""
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, number = item
            try:
                job()
            except Exception as error:  # noqa: BLE001 - the root of the thread
                self._on_error(error, number)
