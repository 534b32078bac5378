"""Work for one request, and the runs of a service.

A run has a thread, sends messages, may ask the user, and ends exactly once; it sends nothing after
that. A stop takes effect at once, even while the thread waits for a model, a command or the user.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, TypeVar

from lcursor.errors import Cancelled, LcursorError
from lcursor.reporting import Notify, as_lcursor_error, error_message, log_exception
from lcursor.stop import Stop

Outcome = TypeVar("Outcome")


class Run(ABC, Generic[Outcome]):
    """A run of a service.

    Args:
        number: id of the request.
        send: sends a message, from any thread.
        runs: those of the service.
    """

    thread_name: ClassVar[str]
    failure: ClassVar[str]
    """What to say of an unexpected error: `the edit failed`."""

    def __init__(self, number: int, send: Notify, runs: Runs[Any]) -> None:
        self.number, self.stopped = number, Stop()
        self._send, self._runs = send, runs
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._asked = 0
        """Number of the last question; negative while no question is open."""
        self._uses_model = False
        self._lock = threading.RLock()
        self._is_finishing = False
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.thread_name, daemon=True)

    # Thread: any.

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop it."""
        self.stopped.set()
        self._answers.put(None)

    def leave(self, wait_s: float) -> None:
        """Wait for the end; after a timeout end it without the thread."""
        if not self._is_over.wait(wait_s):
            self._finish(self._ended_by(Cancelled("the run was stopped")))
            self._is_over.wait(wait_s)  # its own thread may be ending it

    def answer(self, answer: object, question: int = 0) -> None:
        """Deliver the user's answer; ignored unless it is for the open question.

        Args:
            question: 0 for any.
        """
        with self._lock:
            if self._asked > 0 and question in (0, self._asked):
                self._asked *= -1
                self._answers.put(answer)

    def send(self, method: str, **fields: Any) -> None:
        """Send a message, unless the run has ended."""
        with self._lock:
            if not self._is_finishing:
                self._send(method, {"id": self.number, **fields})

    def check(self) -> None:
        """Raise `Cancelled` if it was stopped."""
        self.stopped.check()

    # Thread: the run's.

    @contextmanager
    def using_model(self) -> Iterator[None]:
        """Count as busy, except while the user is asked."""
        self._begin_use()
        try:
            yield
        finally:
            self._end_use()

    def wait_for_answer(self, method: str, **fields: Any) -> Any:
        """Send a question, and return the user's answer.

        Raises:
            Cancelled: the run was stopped.
        """
        self._end_use()
        with self._lock:
            self._asked = abs(self._asked) + 1
            self._send_question(method, self._asked, fields)
        answer = self._answers.get()
        self.check()
        self._begin_use()
        return answer

    @abstractmethod
    def _work(self) -> Outcome:
        """Do the work."""

    @abstractmethod
    def _ended_by(self, error: LcursorError) -> Outcome:
        """Return the outcome of a run that did not end by itself. Thread: any."""

    def _store_end(self, outcome: Outcome) -> None:
        """Store the end, before the service forgets the run. Thread: any."""

    @abstractmethod
    def _send_end(self, outcome: Outcome) -> None:
        """Send the last message. Thread: any."""

    def _send_question(self, method: str, _number: int, fields: dict[str, Any]) -> None:
        self.send(method, **fields)

    def _begin_use(self) -> None:
        self._uses_model = True
        self._runs.count_use(1)

    def _end_use(self) -> None:
        if self._uses_model:
            self._uses_model = False
            self._runs.count_use(-1)

    def _run(self) -> None:
        try:
            outcome = self._work()
        except Cancelled as error:
            outcome = self._ended_by(error)
        except Exception as error:  # noqa: BLE001 - the root of a thread
            known = as_lcursor_error(self._send, error, self.failure)
            if self.stopped.is_set():
                known = Cancelled("the run was stopped")
            outcome = self._ended_by(known)
            if not isinstance(known, Cancelled):
                with self._lock:
                    if not self._is_finishing:
                        self._send("error", error_message(known, self.number))
        self._finish(outcome)

    def _finish(self, outcome: Outcome) -> None:
        """End it; only the first call counts. Thread: any."""
        with self._lock:
            if self._is_finishing:
                return
            self._is_finishing = True
        self.stopped.set()  # also for its other threads
        try:
            self._store_end(outcome)
        except Exception as error:  # noqa: BLE001 - the end must be reported
            log_exception(self._send, error)
        self._runs.forget(self)
        self._send_end(outcome)
        self._is_over.set()


AnyRun = TypeVar("AnyRun", bound=Run[Any])


class Runs(Generic[AnyRun]):
    """The runs of a service, by the id of their request. Thread: any.

    Args:
        on_busy: called when the first run starts to use the model, and when the last one stops.
    """

    def __init__(self, on_busy: Callable[[bool], None] = lambda _: None) -> None:
        self._on_busy = on_busy
        self._lock = threading.Lock()
        self._runs: dict[int, AnyRun] = {}
        self._users = 0

    def start(self, run: AnyRun) -> None:
        """Start a run."""
        with self._lock:
            self._runs[run.number] = run
        run.start()

    def find(self, number: int) -> AnyRun | None:
        """Return a run that has not ended."""
        with self._lock:
            return self._runs.get(number)

    def all(self) -> list[AnyRun]:
        """Return the runs that have not ended."""
        with self._lock:
            return list(self._runs.values())

    def stop(self, number: int, wait_s: float) -> None:
        """Stop a run; its end is sent after a time limit, even if its thread hangs."""
        if run := self.find(number):
            run.stop()
            threading.Thread(target=run.leave, args=(wait_s,), daemon=True).start()

    def close(self, wait_s: float) -> None:
        """Stop all runs, and wait briefly for each."""
        runs = self.all()
        for run in runs:
            run.stop()
        for run in runs:
            run.leave(wait_s)

    def forget(self, run: Run[Any]) -> None:
        """Forget a run, which has ended."""
        with self._lock:
            if self._runs.get(run.number) is run:
                del self._runs[run.number]

    def count_use(self, change: int) -> None:
        """Count a run that starts (1) or stops (-1) to use the model."""
        with self._lock:
            before = self._users
            self._users += change
            is_changed = not before or not self._users
        if is_changed:
            self._on_busy(change > 0)
