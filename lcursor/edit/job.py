"""One edit while it runs: its thread, what it tells, what it waits for, and its one end.

Owns that nothing is told after the end, that there is exactly one, and that a stop takes effect at
once, whatever the thread is waiting for. Knows nothing of models or files.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lcursor.edit.records import Lines, Region
from lcursor.errors import Cancelled, LcursorError, ReplyUnusable
from lcursor.llm.records import Usage
from lcursor.protocol_edit import EditChoice, EditEnd, EditLooked, EditPhase, EditStep
from lcursor.reporting import Notify, as_lcursor_error, error_message

NOTHING = frozenset({"empty", "prose"})
"""Reasons of an unusable reply that mean that no code was written at all."""
LOOK_S = 6.0
"""The editor says within five seconds what language servers say; else it hears nothing now."""
PROGRESS_S = 0.1
"""Least time between two messages about how far the same thing is."""


@dataclass(slots=True)
class Cost:
    """What an edit cost up to now. Thread: `add` on any."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    passes: int = 0
    attempts: int = 0
    most_attempts: int = 0
    """Of one rewrite."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, usage: Usage, attempts: int, passes: int) -> None:
        """Add what one rewrite cost."""
        with self._lock:
            self.prompt_tokens += usage.prompt_tokens
            self.cached_tokens += usage.cached_tokens
            self.answer_tokens += usage.answer_tokens
            self.attempts += attempts
            self.most_attempts = max(self.most_attempts, attempts)
            self.passes += passes


@dataclass(frozen=True, slots=True)
class End:
    """How an edit ended, and what to say of it."""

    reason: EditEnd
    message: str = ""


class Job:
    """An edit.

    Args:
        number: the id of what asked for it.
        tell: sends a message, from any thread.
        work: does it, on the job's thread; returns its end or raises.
        works: told when it begins to work, and when it ends to or waits for the user.
        ended: told, on any thread, that it is over.
        served: files about which the editor's language servers can be asked.
    """

    def __init__(
        self,
        number: int,
        tell: Notify,
        work: Callable[[Job], End],
        works: Callable[[bool], None] = lambda _: None,
        ended: Callable[[Job], None] = lambda _: None,
        served: Sequence[str] = (),
    ) -> None:
        self.number, self.cost, self.served = number, Cost(), frozenset(served)
        self.cancel = threading.Event()
        self._tell, self._work, self._works, self._ended = tell, work, works, ended
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._is_asking = False
        self._looks: list[queue.SimpleQueue[EditLooked | None]] = []
        self._lock = threading.RLock()
        self._is_ending = False
        self._is_over = threading.Event()
        self._began_s = time.monotonic()
        self._threads: set[threading.Thread] = set()
        self._thread = threading.Thread(target=self._run, name="lcursor-edit", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End it. Thread: any."""
        self.cancel.set()
        self._answers.put(None)
        with self._lock:
            looks = list(self._looks)
        for each in looks:
            each.put(None)

    def leave(self, wait_s: float) -> None:
        """Have it ended, also where something does not let go of its thread."""
        if not self._is_over.wait(wait_s):
            self._finish(End("stopped"))

    def answer(self, what: object) -> None:
        """Give it what it asked the user for; what it did not ask for is dropped. Thread: any."""
        with self._lock:
            if self._is_asking:
                self._is_asking = False
                self._answers.put(what)

    def looked(self, what: EditLooked) -> None:
        """Give it what language servers say. Thread: any."""
        with self._lock:
            if 0 <= what["look"] < len(self._looks):
                self._looks[what["look"]].put(what)

    def runs_on(self, thread: threading.Thread) -> bool:
        """Return whether a thread works for it."""
        return thread is self._thread or thread in self._threads

    def help(self, work: Callable[[], None], name: str) -> threading.Thread:
        """Return a thread, started, that works for it as well."""
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.add(thread)
        thread.start()
        return thread

    def check(self) -> None:
        """Raise `Cancelled` where it was stopped."""
        if self.cancel.is_set():
            raise Cancelled("the edit was stopped")

    def say(self, method: str, **fields: Any) -> None:
        """Tell something about it, unless it has ended."""
        with self._lock:
            if not self._is_ending:
                self._tell(method, {"id": self.number, **fields})

    def progress(
        self,
        phase: EditPhase,
        detail: str = "",
        done: int = 0,
        total: int = 0,
        seconds_left: float = -1.0,
        attempt: int = 1,
    ) -> None:
        """Tell what it waits for."""
        self.say(
            "edit.progress",
            phase=phase,
            detail=detail,
            done=done,
            total=total,
            seconds_left=seconds_left,
            attempt=attempt,
        )

    def ask(self, text: str, choices: Sequence[EditChoice]) -> int:
        """Have the user choose; return which, -1 for none.

        Raises:
            Cancelled: it was stopped meanwhile.
        """
        answer = self._wait("edit.question", text=text, choices=list(choices))
        return answer if isinstance(answer, int) and 0 <= answer < len(choices) else -1

    def show(self, summary: str, steps: Sequence[EditStep]) -> frozenset[str]:
        """Show a plan, and wait until it shall be carried out; return the keys struck out.

        Raises:
            Cancelled: it was stopped meanwhile.
        """
        answer = self._wait("edit.planned", summary=summary, steps=list(steps))
        return frozenset(answer if isinstance(answer, (list, tuple, set, frozenset)) else ())

    def look(self, path: str, before: str, after: str) -> EditLooked | None:
        """Have the language servers of a file asked about a text; None where nobody answers.

        An editor that does not answer is not asked again by this edit.

        Thread: any that works for it.

        Raises:
            Cancelled: it was stopped meanwhile.
        """
        answers: queue.SimpleQueue[EditLooked | None] = queue.SimpleQueue()
        with self._lock:
            self.check()  # who stops it later finds the queue
            if not self.served:
                return None
            number = len(self._looks)
            self._looks.append(answers)
        self.say("edit.look", look=number, path=path, before=before, after=after)
        try:
            answer = answers.get(timeout=LOOK_S)
        except queue.Empty:
            answer, self.served = None, frozenset()
        self.check()
        return answer

    def _wait(self, method: str, **fields: Any) -> Any:
        """Tell something, and return what the user answers; he keeps nobody from working."""
        self._works(False)
        try:
            with self._lock:
                self._is_asking = True
                self.say(method, **fields)
            answer = self._answers.get()
        finally:
            self._works(True)
        self.check()
        return answer

    def _run(self) -> None:
        end = End("failed")
        self._works(True)
        try:
            end = self._work(self)
        except Cancelled:
            end = End("stopped")
        except ReplyUnusable as error:
            end = End("nothing" if error.reason in NOTHING else "refused", str(error))
        except Exception as error:  # noqa: BLE001 - the root of a thread
            self._fail(as_lcursor_error(self._tell, error, "the edit could not be made"))
        finally:
            self._works(False)
        self._finish(End("stopped") if self.cancel.is_set() else end)

    def _fail(self, error: LcursorError) -> None:
        with self._lock:
            if not self._is_ending and not self.cancel.is_set():
                self._tell("error", error_message(error, self.number))

    def _finish(self, end: End) -> None:
        """Tell how it ended; only the first end counts. Thread: any."""
        with self._lock:
            if self._is_ending:
                return
            self._is_ending = True
            cost = self.cost
        self.cancel.set()  # who still works for it may stop
        self._ended(self)
        self._tell(
            "edit.done",
            {
                "id": self.number,
                "reason": end.reason,
                "message": end.message,
                "prompt_tokens": cost.prompt_tokens,
                "cached_tokens": cost.cached_tokens,
                "answer_tokens": cost.answer_tokens,
                "passes": cost.passes,
                "seconds": time.monotonic() - self._began_s,
                "attempts": cost.attempts,
            },
        )
        self._is_over.set()


class Teller:
    """What a rewriter tells, on its way to the editor: about one file of one job.

    Args:
        job: to which it belongs.
        path: absolute, of the file.
        tick: of the buffer, -1 for the disk.
        before: said before each detail, where a job has several rewrites.
    """

    def __init__(self, job: Job, path: str, tick: int, before: str = "") -> None:
        self._job, self._path, self._tick, self._before = job, path, tick, before
        self._told_s, self._phase = 0.0, ""

    def started(self, region: Region, attempt: int) -> None:
        """Tell which region is written anew."""
        self._job.say(
            "edit.started",
            path=self._path,
            first_row=region.first_row,
            last_row=region.last_row,
            what=region.what,
            attempt=attempt,
            tick=self._tick,
        )

    def progress(
        self,
        phase: EditPhase,
        detail: str = "",
        done: int = 0,
        total: int = 0,
        seconds_left: float = -1.0,
        attempt: int = 1,
    ) -> None:
        """Tell how far it is, not more often than an eye follows."""
        now_s = time.monotonic()
        if phase == self._phase and now_s - self._told_s < PROGRESS_S:
            return
        self._phase, self._told_s = phase, now_s
        said = " ".join(filter(None, (self._before, detail)))
        self._job.progress(phase, said, done, total, seconds_left, attempt)

    def lines(self, attempt: int, lines: Lines) -> None:
        """Tell new lines."""
        if lines:
            self._job.say("edit.delta", attempt=attempt, lines=list(lines))
