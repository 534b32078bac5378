"""One running edit: its messages, its questions to the user, its cost.

Independent of models and files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from lcursor.changes.records import Lines, Region
from lcursor.edit.rewriting.task import RewriteListener, RewriteProgress
from lcursor.errors import Cancelled, LcursorError, ReplyUnusable
from lcursor.llm.records import Usage, add_usage
from lcursor.protocol.edit import EditChoice, EditEnd, EditPhase, EditStep
from lcursor.reporting import Notify
from lcursor.run.run import Run, Runs

NO_CODE = frozenset({"empty", "prose"})
"""Reasons of an unusable reply for which the model wrote no code at all."""
PROGRESS_S = 0.1
"""Minimum time between two messages about the same phase."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an edit, with a message for the user."""

    reason: EditEnd
    message: str = ""


class EditRun(Run[Outcome]):
    """A running edit.

    Args:
        work: does the edit, on the run's thread; returns its outcome or raises.
    """

    thread_name = "lcursor-edit"
    failure = "the edit failed"

    def __init__(
        self,
        number: int,
        send: Notify,
        runs: Runs[EditRun],
        work: Callable[[EditRun], Outcome],
    ) -> None:
        super().__init__(number, send, runs)
        self.max_attempts = 0
        """Maximum number of attempts of one rewrite."""
        self._usage, self._attempts = Usage(), 0
        self._edit = work
        self._began_s = time.monotonic()

    def add_cost(self, usage: Usage, attempts: int) -> None:
        """Add the cost of a request to a model. Thread: any."""
        with self._lock:
            self._usage = add_usage(self._usage, usage)
            self._attempts += attempts
            self.max_attempts = max(self.max_attempts, attempts)

    def progress(self, phase: EditPhase, detail: str = "") -> None:
        """Send the current phase."""
        self.send("edit.progress", **asdict(RewriteProgress(phase, detail)))

    def ask(self, text: str, choices: Sequence[EditChoice]) -> int:
        """Ask the user to choose; return the index of the choice, -1 for none."""
        answer = self.wait_for_answer("edit.question", text=text, choices=list(choices))
        return answer if isinstance(answer, int) and 0 <= answer < len(choices) else -1

    def show_plan(self, summary: str, steps: Sequence[EditStep]) -> frozenset[str]:
        """Show a plan, wait for the approval, and return the keys of the rejected steps."""
        answer = self.wait_for_answer("edit.planned", summary=summary, steps=list(steps))
        return frozenset(answer if isinstance(answer, (list, tuple, set, frozenset)) else ())

    def _work(self) -> Outcome:
        try:
            with self.using_model():
                outcome = self._edit(self)
        except ReplyUnusable as error:
            outcome = Outcome("nothing" if error.reason in NO_CODE else "rejected", str(error))
        self.check()
        return outcome

    def _ended_by(self, error: LcursorError) -> Outcome:
        return Outcome("stopped" if isinstance(error, Cancelled) else "failed")

    def _send_end(self, outcome: Outcome) -> None:
        with self._lock:
            usage = self._usage
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


class RunListener(RewriteListener):
    """Sends the progress of a rewrite to the editor, each detail with a prefix."""

    def __init__(self, run: EditRun, path: str, tick: int, prefix: str = "") -> None:
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
