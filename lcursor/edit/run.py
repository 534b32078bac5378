"""One running edit: its thread, its messages, its questions to the user, and its end.

It ends exactly once, and sends nothing after that. A stop takes effect at once, even while the
thread blocks. Independent of models and files.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from lcursor.changes.records import Lines, Region
from lcursor.edit.rewriting.task import RewriteListener, RewriteProgress
from lcursor.errors import Cancelled, LcursorError, ReplyUnusable
from lcursor.llm.records import Usage, add_usage
from lcursor.protocol.edit import EditChoice, EditDiagnosed, EditEnd, EditPhase, EditStep
from lcursor.reporting import Notify, as_lcursor_error, error_message
from lcursor.stop import Stop

NO_CODE = frozenset({"empty", "prose"})
"""Reasons of an unusable reply for which the model wrote no code at all."""
DIAGNOSTICS_S = 6.0
"""Time limit for language servers; the editor answers within five seconds, or not at all."""
PROGRESS_S = 0.1
"""Minimum time between two messages about the same phase."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an edit, with a message for the user."""

    reason: EditEnd
    message: str = ""


class Run:
    """A running edit.

    Args:
        number: id of the request.
        send: sends a message, from any thread.
        work: does the edit, on the run's thread; returns its outcome or raises.
        on_busy: called when it starts to work, and when it ends or waits for the user.
        on_finish: called on any thread, once, before `edit.done`.
        lsp_files: files with language servers in the editor.
    """

    def __init__(
        self,
        number: int,
        send: Notify,
        work: Callable[[Run], Outcome],
        on_busy: Callable[[bool], None] = lambda _: None,
        on_finish: Callable[[Run], None] = lambda _: None,
        lsp_files: Sequence[str] = (),
    ) -> None:
        self.number, self.lsp_files = number, frozenset(lsp_files)
        self.cancel = Stop()
        self.max_attempts = 0
        """Maximum number of attempts of one rewrite."""
        self._usage, self._attempts = Usage(), 0
        self._send, self._work, self._on_busy, self._on_finish = send, work, on_busy, on_finish
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._is_asking = False
        self._diagnostics: list[queue.SimpleQueue[EditDiagnosed | None]] = []
        self._lock = threading.RLock()
        self._is_finishing = False
        self._is_over = threading.Event()
        self._began_s = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="lcursor-edit", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop it. Thread: any."""
        self.cancel.set()
        self._answers.put(None)
        with self._lock:
            waiting = list(self._diagnostics)
        for each in waiting:
            each.put(None)

    def leave(self, wait_s: float) -> None:
        """Wait for the end; after a timeout send it without the thread."""
        if not self._is_over.wait(wait_s):
            self._finish(Outcome("stopped"))

    def answer(self, answer: object) -> None:
        """Deliver the user's answer; ignored without a question. Thread: any."""
        with self._lock:
            if self._is_asking:
                self._is_asking = False
                self._answers.put(answer)

    def receive_diagnostics(self, found: EditDiagnosed) -> None:
        """Deliver diagnostics of language servers. Thread: any."""
        with self._lock:
            if 0 <= found["check"] < len(self._diagnostics):
                self._diagnostics[found["check"]].put(found)

    def check(self) -> None:
        """Raise `Cancelled` if it was stopped."""
        self.cancel.check()

    def add_cost(self, usage: Usage, attempts: int) -> None:
        """Add the cost of a request to a model. Thread: any."""
        with self._lock:
            self._usage = add_usage(self._usage, usage)
            self._attempts += attempts
            self.max_attempts = max(self.max_attempts, attempts)

    def send(self, method: str, **fields: Any) -> None:
        """Send a message of this edit, unless it has ended."""
        with self._lock:
            if not self._is_finishing:
                self._send(method, {"id": self.number, **fields})

    def progress(self, phase: EditPhase, detail: str = "") -> None:
        """Send the current phase."""
        self.send("edit.progress", **asdict(RewriteProgress(phase, detail)))

    def ask(self, text: str, choices: Sequence[EditChoice]) -> int:
        """Ask the user to choose; return the index of the choice, -1 for none."""
        answer = self._wait("edit.question", text=text, choices=list(choices))
        return answer if isinstance(answer, int) and 0 <= answer < len(choices) else -1

    def show_plan(self, summary: str, steps: Sequence[EditStep]) -> frozenset[str]:
        """Show a plan, wait for the approval, and return the keys of the rejected steps."""
        answer = self._wait("edit.planned", summary=summary, steps=list(steps))
        return frozenset(answer if isinstance(answer, (list, tuple, set, frozenset)) else ())

    def diagnose(self, path: str, before: str, after: str) -> EditDiagnosed | None:
        """Return the diagnostics of two versions of a file; None if no language server answers.

        After a timeout there are no further requests. Thread: any.
        """
        answers: queue.SimpleQueue[EditDiagnosed | None] = queue.SimpleQueue()
        with self._lock:
            self.check()  # a later stop ends the wait on the queue
            if not self.lsp_files:
                return None
            number = len(self._diagnostics)
            self._diagnostics.append(answers)
        self.send("edit.diagnose", check=number, path=path, before=before, after=after)
        try:
            answer = answers.get(timeout=DIAGNOSTICS_S)
        except queue.Empty:
            answer, self.lsp_files = None, frozenset()
        self.check()
        return answer

    def _wait(self, method: str, **fields: Any) -> Any:
        """Send a question and wait for the answer; meanwhile the run is not busy."""
        self._on_busy(False)
        try:
            with self._lock:
                self._is_asking = True
                self.send(method, **fields)
            answer = self._answers.get()
        finally:
            self._on_busy(True)
        self.check()
        return answer

    def _run(self) -> None:
        outcome = Outcome("failed")
        self._on_busy(True)
        try:
            outcome = self._work(self)
        except Cancelled:
            outcome = Outcome("stopped")
        except ReplyUnusable as error:
            outcome = Outcome("nothing" if error.reason in NO_CODE else "rejected", str(error))
        except Exception as error:  # noqa: BLE001 - the root of a thread
            self._fail(as_lcursor_error(self._send, error, "the edit failed"))
        finally:
            self._on_busy(False)
        self._finish(Outcome("stopped") if self.cancel.is_set() else outcome)

    def _fail(self, error: LcursorError) -> None:
        with self._lock:
            if not self._is_finishing and not self.cancel.is_set():
                self._send("error", error_message(error, self.number))

    def _finish(self, outcome: Outcome) -> None:
        """Send the outcome; only the first call counts. Thread: any."""
        with self._lock:
            if self._is_finishing:
                return
            self._is_finishing = True
            usage = self._usage
        self.cancel.set()  # stops worker threads
        self._on_finish(self)
        self._send(
            "edit.done",
            {
                "id": self.number,
                "reason": outcome.reason,
                "message": outcome.message,
                "prompt_tokens": usage.prompt_tokens,
                "cached_tokens": usage.cached_tokens,
                "answer_tokens": usage.answer_tokens,
                "passes": usage.passes,
                "seconds": time.monotonic() - self._began_s,
                "attempts": self._attempts,
            },
        )
        self._is_over.set()


class RunListener(RewriteListener):
    """Sends the progress of a rewrite to the editor, each detail with a prefix."""

    def __init__(self, run: Run, path: str, tick: int, prefix: str = "") -> None:
        self._run, self._path, self._tick, self._prefix = run, path, tick, prefix
        self._sent_s, self._phase = 0.0, ""

    def started(self, region: Region, attempt: int) -> None:
        """Send the region that is rewritten."""
        self._run.send(
            "edit.started",
            path=self._path,
            first_row=region.first_row,
            last_row=region.last_row,
            what=region.what,
            attempt=attempt,
            tick=self._tick,
        )

    def progress(self, now: RewriteProgress) -> None:
        """Send the progress, at a limited rate."""
        now_s = time.monotonic()
        if now.phase == self._phase and now_s - self._sent_s < PROGRESS_S:
            return
        self._phase, self._sent_s = now.phase, now_s
        detail = " ".join(filter(None, (self._prefix, now.detail)))
        self._run.send("edit.progress", **asdict(replace(now, detail=detail)))

    def lines(self, attempt: int, lines: Lines) -> None:
        """Send new lines."""
        if lines:
            self._run.send("edit.delta", attempt=attempt, lines=list(lines))
