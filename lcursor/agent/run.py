"""A run that is being executed: its thread, its messages, its questions, and its end.

It ends exactly once, and sends nothing after that. A stop takes effect at once, even while the
thread waits for the model, a command or the user.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lcursor.agent.parts import Limits, Parts
from lcursor.agent.records import Decision, State
from lcursor.agent.run_log import RunLog, RunState, Step
from lcursor.errors import Cancelled
from lcursor.protocol.agent import AgentChoice, StepState
from lcursor.reporting import Notify, as_lcursor_error, error_message
from lcursor.stop import Stop

DELTA_S = 0.05
"""Minimum time between two messages with text of the model."""
WAIT_S = 0.05


class AgentRun:
    """A run of the editor or the command line.

    Args:
        number: id of the request.
        send: sends a message, from any thread.
        work: executes the run, on its thread; returns its last state.
        turn: held while the run uses the model: the runs of one model take turns.
        on_busy: called when it starts or stops to use the model.
        on_finish: called once, on any thread, before `agent.done`.
    """

    def __init__(
        self,
        number: int,
        send: Notify,
        work: Callable[[AgentRun], RunState],
        turn: threading.Lock,
        on_busy: Callable[[bool], None] = lambda _: None,
        on_finish: Callable[[AgentRun], None] = lambda _: None,
    ) -> None:
        self.number = number
        self.stopped = Stop()
        self._log: RunLog | None = None
        self._parts: Parts | None = None
        self._changed = ("", 0, 0)
        """A tree, and the lines that it adds and removes."""
        self._send, self._work, self._turn = send, work, turn
        self._on_busy, self._on_finish = on_busy, on_finish
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._question = 0
        """Number of the last question; negative while no question is open."""
        self._unsent, self._is_new, self._sent_s = "", False, 0.0
        self._has_turn = False
        self._lock = threading.RLock()
        self._is_finishing = False
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lcursor-agent", daemon=True)

    # Thread: any.

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop it."""
        self.stopped.set()
        self._answers.put(None)
        with self._lock:
            parts = self._parts
        if parts is not None:
            parts.model.close()

    def leave(self, wait_s: float) -> None:
        """Wait for the end; after a timeout send it without the thread."""
        if not self._is_over.wait(wait_s):
            known = self._log.state if self._log else RunState()
            self._finish(RunState(key=known.key, root=known.root, state="stopped"))

    def say(self, text: str) -> bool:
        """Deliver a message of the user; return whether the run has begun and not ended.

        Raises:
            AgentFailed: it cannot be stored.
        """
        if self._log is None or self.stopped.is_set():
            return False
        self._log.write("said", fsync=True, text=text)
        return True

    def answer(self, answer: object, question: int = 0) -> None:
        """Deliver the user's answer; ignored unless it is for the open question.

        Args:
            question: 0 for any.
        """
        with self._lock:
            if self._question > 0 and question in (0, self._question):
                self._question *= -1
                self._answers.put(answer)

    # Thread: the run's. With the methods of `parts.User`.

    def attach(self, log: RunLog, parts: Parts) -> None:
        """Set what `say`, `status` and `stop` concern."""
        with self._lock:
            self._log, self._parts = log, parts
        if self.stopped.is_set():
            parts.model.close()

    def send(self, method: str, **fields: Any) -> None:
        """Send a message of this run, unless it has ended."""
        with self._lock:
            if not self._is_finishing:
                self._flush()
                self._send(method, {"id": self.number, **fields})

    def step(self, step: Step, state: StepState) -> None:
        """Show a step or its change."""
        self.send("agent.step", **step_row(step, state))

    def delta(self, text: str, *, is_new: bool) -> None:
        """Show the next text of the model, at a limited rate."""
        with self._lock:
            if is_new:
                self._flush()
            self._is_new = self._is_new or is_new
            self._unsent += text
            if time.monotonic() - self._sent_s >= DELTA_S:
                self._flush()

    def status(self, state: State) -> None:
        """Show the state, and what is left of the budgets."""
        found = self._log.state if self._log else RunState()
        limits = self._parts.limits if self._parts else Limits()
        model = self._parts.model if self._parts else None
        answers, seconds, _ = found.resumed
        _, added, removed = self._count_lines(found)
        self.send(
            "agent.status",
            state=state,
            steps=found.answers - answers,
            max_steps=limits.steps,
            used_tokens=model.used_tokens if model else 0,
            context_tokens=model.context_tokens if model else 0,
            cached_share=found.cached_share,
            seconds=found.seconds - seconds,
            max_seconds=limits.seconds,
            added=added,
            removed=removed,
        )

    def ask(self, step: Step, asked: Decision) -> tuple[AgentChoice, str]:
        """Ask whether a call may run."""
        text = str(step.call.arguments.get("command") or step.target)
        answer = self._wait(
            "agent.asks",
            number=step.number,
            command=text,
            why=asked.why,
            is_bound=asked.is_bound,
        )
        choice, reason = answer
        return choice, reason

    def plan(self, text: str) -> str:
        """Show a plan."""
        return str(self._wait("agent.planned", text=text))

    def _count_lines(self, state: RunState) -> tuple[str, int, int]:
        """Return the last tree, and its added and removed lines."""
        tree = next((each.after for each in reversed(state.steps) if each.after), "")
        if self._parts is not None and tree != self._changed[0]:
            found = self._parts.tree.changed()
            self._changed = (
                tree, sum(each.added for each in found), sum(each.removed for each in found)
            )  # fmt: skip
        return self._changed

    @contextmanager
    def using_model(self) -> Iterator[None]:
        """Take this run's turn at the model."""
        self._take_turn()
        try:
            yield
        finally:
            self._end_turn()

    def _take_turn(self) -> None:
        if not self._turn.acquire(blocking=False):
            self.status("waiting")
            while not self._turn.acquire(timeout=WAIT_S):
                if self.stopped.is_set():
                    raise Cancelled("the run was stopped")
        self._has_turn = True
        self._on_busy(True)

    def _end_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._on_busy(False)
            self._turn.release()

    def _wait(self, method: str, **fields: Any) -> Any:
        """Send a question and wait for the answer; meanwhile others may use the model."""
        self._end_turn()
        with self._lock:
            self._question = number = abs(self._question) + 1
            if method == "agent.asks":
                fields["ask"] = number
            self.send(method, **fields)
        answer = self._answers.get()
        if self.stopped.is_set():
            raise Cancelled("the run was stopped")
        self._take_turn()
        return answer

    def _flush(self) -> None:
        """Send the text that was held back."""
        if (self._unsent or self._is_new) and not self._is_finishing:
            row = {"id": self.number, "text": self._unsent, "is_new": self._is_new}
            self._unsent, self._is_new, self._sent_s = "", False, time.monotonic()
            self._send("agent.delta", row)

    def _run(self) -> None:
        try:
            last = self._work(self)
        except Cancelled:
            last = RunState(state="stopped")
        except Exception as error:  # noqa: BLE001 - the root of a thread
            found = as_lcursor_error(self._send, error, "the run failed")
            last = RunState(state="failed", message=str(found))
            with self._lock:
                if not self._is_finishing and not self.stopped.is_set():
                    self._send("error", error_message(found, self.number))
        self._finish(last)

    def _finish(self, last: RunState) -> None:
        """Send the end; only the first call counts. Thread: any."""
        with self._lock:
            if self._is_finishing:
                return
            self._flush()
            self._is_finishing = True
        self.stopped.set()
        self._on_finish(self)
        self._send(
            "agent.done",
            {
                "id": self.number,
                "run": last.key,
                "state": last.state,
                "message": last.message,
                "is_checked": last.is_checked,
                "turn": last.turn,
                "paths": last.paths,
                "root": last.root,
            },
        )
        self._is_over.set()


def step_row(step: Step, state: StepState) -> dict[str, Any]:
    """Return the fields of `agent.step`, without its id."""
    found = step.observation
    return {
        "number": step.number,
        "kind": step.kind,
        "target": step.target,
        "state": state,
        "result": found.result if found else "",
        "text": found.text if found else "",
        "seconds": step.seconds,
    }
