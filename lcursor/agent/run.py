"""A run that is being executed: its messages and its questions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from lcursor.agent.parts import RunLimits, Work
from lcursor.agent.records import Decision, State
from lcursor.agent.run_log import AgentStep, RunLog, RunState
from lcursor.agent.tools.table import question_of
from lcursor.errors import Cancelled, LcursorError
from lcursor.protocol.agent import AgentChoice, StepState
from lcursor.reporting import Notify
from lcursor.run.run import Run, Runs

DELTA_S = 0.05
"""Minimum time between two messages with text of the model."""


class AgentRun(Run[RunState]):
    """A run of the editor or the command line.

    Args:
        work: executes the run, on its thread; returns its last state.
    """

    thread_name = "lcursor-agent"
    failure = "the run failed"

    def __init__(
        self,
        number: int,
        send: Notify,
        runs: Runs[AgentRun],
        work: Callable[[AgentRun], RunState],
    ) -> None:
        super().__init__(number, send, runs)
        self._log: RunLog | None = None
        self._early: list[str] = []
        """Messages of the user from before there was a log."""
        self._task_work: Work | None = None
        self._changed = ("", 0, 0)
        """A tree, and the lines that it adds and removes."""
        self._execute = work
        self._unsent, self._is_new, self._sent_s = "", False, 0.0

    # Thread: any.

    def stop(self) -> None:
        """Stop it."""
        super().stop()
        with self._lock:
            task_work = self._task_work
        if task_work is not None:
            task_work.close()

    def say(self, text: str) -> bool:
        """Deliver a message of the user; return whether the run has not ended.

        Raises:
            AgentFailed: it cannot be stored.
        """
        if self.stopped.is_set():
            return False
        with self._lock:
            if self._log is None:
                self._early.append(text)
                return True
        self._log.write("said", fsync=True, text=text)
        return True

    def send(self, method: str, **fields: Any) -> None:
        """Send a message of this run, unless it has ended."""
        with self._lock:
            if not self._is_finishing:
                self._flush()
                super().send(method, **fields)

    # Thread: the run's. With the methods of `parts.User`.

    def attach(self, log: RunLog, work: Work) -> None:
        """Set what `say`, `status` and `stop` concern."""
        with self._lock:
            self._log, self._task_work = log, work
        for text in self._early:
            log.write("said", fsync=True, text=text)
        if self.stopped.is_set():
            work.close()

    def step(self, step: AgentStep, state: StepState) -> None:
        """Show a step or its change."""
        self.send("agent.step", **step_row(step, state))

    def delta(self, text: str, *, is_new: bool) -> None:
        """Show the next text of the model, at a limited rate."""
        with self._lock:
            if self._is_finishing:
                return
            if is_new:
                self._flush()
            self._is_new = self._is_new or is_new
            self._unsent += text
            if time.monotonic() - self._sent_s >= DELTA_S:
                self._flush()

    def status(self, state: State) -> None:
        """Show the state, and what is left of the budgets."""
        run_state = self._log.state if self._log else RunState()
        work = self._task_work
        limits = work.limits if work else RunLimits()
        answers, seconds, _ = run_state.resumed
        _, added, removed = self._count_lines(run_state)
        self.send(
            "agent.status",
            state=state,
            steps=run_state.answers - answers,
            max_steps=limits.steps,
            used_tokens=work.used_tokens if work else 0,
            context_tokens=work.context_tokens if work else 0,
            cached_share=run_state.cached_share,
            seconds=run_state.seconds - seconds,
            max_seconds=limits.seconds,
            added=added,
            removed=removed,
        )

    def ask(self, step: AgentStep, asked: Decision) -> tuple[AgentChoice, str]:
        """Ask whether a call may run."""
        choice, reason = self.wait_for_answer(
            "agent.asks",
            number=step.number,
            command=question_of(step.call) or step.target,
            why=asked.why,
            is_bound=asked.is_bound,
        )
        return choice, reason

    def plan(self, text: str, *, is_question: bool = False) -> str:
        """Show a plan, or a form."""
        return str(self.wait_for_answer("agent.planned", text=text, is_question=is_question))

    def _count_lines(self, state: RunState) -> tuple[str, int, int]:
        """Return the last tree, and its added and removed lines."""
        tree = next((each.after for each in reversed(state.steps) if each.after), "")
        if self._task_work is not None and tree != self._changed[0]:
            found = self._task_work.tree.changed()
            self._changed = (
                tree, sum(each.added for each in found), sum(each.removed for each in found)
            )  # fmt: skip
        return self._changed

    def _send_question(self, method: str, number: int, fields: dict[str, Any]) -> None:
        own = {"ask": number} if method == "agent.asks" else {}
        self.send(method, **fields, **own)

    def _flush(self) -> None:
        """Send the text that was held back."""
        if self._unsent or self._is_new:
            row = {"id": self.number, "text": self._unsent, "is_new": self._is_new}
            self._unsent, self._is_new, self._sent_s = "", False, time.monotonic()
            self._send("agent.delta", row)

    def _work(self) -> RunState:
        return self._execute(self)

    def _ended_by(self, error: LcursorError) -> RunState:
        state = self._log.state if self._log else RunState()
        if isinstance(error, Cancelled):
            return RunState(key=state.key, root=state.root, state="stopped")
        return RunState(state="failed", message=str(error))

    def _store_end(self, outcome: RunState) -> None:
        with self._lock:
            self._flush()

    def _send_end(self, outcome: RunState) -> None:
        self._send(
            "agent.done",
            {
                "id": self.number,
                "run": outcome.key,
                "state": outcome.state,
                "message": outcome.message,
                "is_checked": outcome.is_checked,
                "turn": outcome.turn,
                "paths": outcome.paths,
                "root": outcome.root,
            },
        )


def step_row(step: AgentStep, state: StepState) -> dict[str, Any]:
    """Return the fields of `agent.step`, without its id."""
    observation = step.observation
    return {
        "number": step.number,
        "kind": step.kind,
        "target": step.target,
        "state": state,
        "result": observation.result if observation else "",
        "text": observation.text if observation else "",
        "seconds": step.seconds,
    }
