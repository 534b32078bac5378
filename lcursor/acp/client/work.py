"""A run of a foreign agent: its reports become steps of the run, its questions the user's.

The agent's process lives as long as its turn: when that ends, it is closed before the copy is
compared, so that nothing changes the files later, and the next message starts it again with its
session. Blocks; on the run's thread.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from lcursor.acp.client.catalog import KnownAgent
from lcursor.acp.client.connection import Connection, Message
from lcursor.acp.client.launch import Started
from lcursor.acp.client.questions import Questions
from lcursor.acp.client.recorder import Recorder
from lcursor.acp.client.session import CANCEL_S, Session
from lcursor.agent.approvals import approved_plan
from lcursor.agent.parts import Checkpoints, End, ForeignRequest, RunLimits, User
from lcursor.agent.records import Policy, State, ToolCall
from lcursor.agent.run_log import RunLog, RunState
from lcursor.errors import AgentEnded, AgentFailed, Cancelled
from lcursor.stop import Stop

END_S: Final = 3.0
"""Time for the agent's own end, after which it is killed: it has nothing left to write."""
KILL_S: Final = 2.0
"""Time for a turn that was stopped to end by itself."""
TURN_S: Final = 86_400.0
"""Time limit of a turn; the budgets of the run end it earlier."""
SILENT_S: Final = 60.0
SILENT: Final = "silent for a minute: it waits for its model, or for what it has not asked us"
CONTINUE: Final = "Continue with the task."
MAX_LISTED: Final = 30
"""Steps in the summary for a session that was lost."""
ENDS: Final[Mapping[str, tuple[State, str]]] = {
    "end_turn": ("done", ""),
    "cancelled": ("stopped", ""),
    "refusal": ("failed", "the agent declined to continue"),
    "max_tokens": ("stuck", "its answer reached the limit of its model"),
    "max_turn_requests": ("stuck", "it reached its own limit of requests to its model"),
}
"""States by stop reasons, with what the user should know."""


class ForeignWork:
    """A run that a foreign agent works on; see `parts.Work`.

    Args:
        start: connects to the model, and says how to start the agent.
    """

    dialect = "acp"

    def __init__(
        self,
        known: KnownAgent,
        start: Callable[[], AbstractContextManager[Started]],
        request: ForeignRequest,
    ) -> None:
        self._known, self._start, self._request = known, start, request
        self._connection: Connection | None = None
        self._recorder: Recorder | None = None

    @property
    def tree(self) -> Checkpoints:
        """The copy of the project."""
        return self._request.tree

    @property
    def limits(self) -> RunLimits:
        """Its budgets."""
        return self._request.limits

    @property
    def used_tokens(self) -> int:
        """The length of the conversation, if the agent reports it."""
        return self._recorder.used_tokens if self._recorder else 0

    @property
    def context_tokens(self) -> int:
        """The context, if the agent reports it."""
        return self._recorder.context_tokens if self._recorder else 0

    def run(self, log: RunLog, user: User, stopped: Stop) -> End:
        """Let the agent work until the end of its turn.

        Raises:
            Cancelled: it was stopped.
            LcursorError: it failed; it can be continued.
        """
        with self._start() as started, Connection(started.words, started.env) as connection:
            recorder = Recorder(log, user, self.tree, str(started.cwd))
            self._connection, self._recorder = connection, recorder
            turns = _Turns(self._known, self._request, log, user, stopped, connection, recorder)
            try:
                end = turns.run(started)
                connection.close(END_S, turns.handle_late)
            finally:
                self._connection = None
                recorder.finish("stopped" if stopped.is_set() else "not finished")
        return self._check(end, recorder, stopped)

    def close(self) -> None:
        """Stop it; if the agent does not end its turn, it is killed. Thread: any."""

        def kill() -> None:
            if (connection := self._connection) is not None:
                connection.kill()

        timer = threading.Timer(KILL_S, kill)
        timer.daemon = True
        timer.start()

    def _check(self, end: End, recorder: Recorder, stopped: Stop) -> End:
        """Run the user's linter and tests, unless nothing has changed."""
        check = self._request.check
        if check is None or end.state != "done" or not self.tree.changed():
            return end
        number = recorder.add(ToolCall("finish", {"summary": end.message}))
        found = check(end.message, stopped.is_set)
        recorder.end(number, found)
        return End("done", end.message, is_checked=found.status == 0)


class _BudgetUsed(Exception):
    """The run has reached a limit; the message says which."""


class _Turns:
    """The turns of an agent from its start to its end."""

    def __init__(
        self,
        known: KnownAgent,
        request: ForeignRequest,
        log: RunLog,
        user: User,
        stopped: Stop,
        connection: Connection,
        recorder: Recorder,
    ) -> None:
        self._known, self._request, self._log, self._user = known, request, log, user
        self._stopped, self._connection, self._recorder = stopped, connection, recorder
        self._questions = Questions(request, log, user, connection, recorder)
        self._last_s = time.monotonic()
        self._is_silent = False

    def run(self, started: Started) -> End:
        """Open the session, and prompt the agent until all was said."""
        state, approvals = self._log.state, self._request.approvals
        self._user.status("running")
        approvals.policy = state.policy
        for call, choice, reason in state.answers_of_user:
            approvals.remember(call, choice, reason, is_earlier=True)
        self._recorder.finish("interrupted")
        session = Session(self._connection, started.cwd)
        known_id = str(state.talk.get("session") or "")
        is_known = session.open(self.handle, known_id, started.servers, started.model_url)
        self._log.write_talk({"session": session.id})
        self._set_mode(session, state.policy)
        unread = state.unread
        prompt = first_prompt(state, unread, is_known=is_known)
        while True:
            self._log.write_talk(state.talk, said=len(unread))
            result = self._prompt(session, prompt)
            reason, message = str(result.get("stopReason")), self._recorder.message.strip()
            end_state, why = ENDS.get(reason, ("stuck", reason))
            if end_state != "done":
                return End(end_state, "\n\n".join(filter(None, (message, why))))
            unread = state.unread
            if state.policy == "plan":
                if not self._questions.approve_plan(message):
                    return End("stopped", "the plan was rejected")
                self._set_mode(session, state.policy)
                unread, prompt = [], approved_plan(state.plan)
                continue
            remarks = self._questions.remarks
            if not unread and not remarks:
                return End("done", message)
            self._recorder.note("answered")
            prompt = "\n\n".join([*remarks, *unread])
            remarks.clear()

    def handle(self, message: Message | None) -> None:
        """Handle a message, or None in a pause.

        Raises:
            Cancelled: the run was stopped.
            _BudgetUsed: a limit was reached.
        """
        self._stopped.check()
        if message is None:
            self._pause()
            return
        self._last_s, self._is_silent = time.monotonic(), False
        if message.method == "session/update":
            self._recorder.update(_table(message.params.get("update")))
            self._check_budget()
        elif message.is_request:
            self._questions.answer(message)

    def handle_late(self, message: Message | None) -> None:
        """Handle what comes after the end of a turn, which it does not begin again."""
        if message is not None and message.method == "session/update":
            self._recorder.update(_table(message.params.get("update")))
        elif message is not None and message.is_request:
            with contextlib.suppress(AgentEnded):
                self._questions.cancel(message)

    def _prompt(self, session: Session, text: str) -> Mapping[str, Any]:
        """Let the agent work until the end of its turn; return the result."""
        number = session.send_prompt(text)
        try:
            return session.wait_for_end(number, self.handle, TURN_S)
        except (Cancelled, _BudgetUsed) as error:
            with contextlib.suppress(AgentFailed):
                session.cancel()
                self._questions.cancel_open()
                session.wait_for_end(number, self.handle_late, CANCEL_S)
            if isinstance(error, Cancelled):
                raise
            return {"stopReason": str(error)}

    def _set_mode(self, session: Session, policy: Policy) -> None:
        """Set a mode that asks, or that only plans; an agent's own choice may be another one."""
        wanted = self._known.plans if policy == "plan" else self._known.asks
        if self._known.plan_option and self._known.plan_option[0] in session.options:
            name, plans, works = self._known.plan_option
            session.set_option(name, plans if policy == "plan" else works, self.handle)
            wanted = self._known.asks
        mode = next((each for each in wanted if each in session.modes), "")
        if mode:
            session.set_mode(mode, self.handle)
        elif wanted and session.modes and self._known.tried:
            raise AgentFailed(
                f"{self._known.title} has no mode {' or '.join(wanted)}",
                f"It has {', '.join(session.modes)}; version {self._known.tried} was tried",
            )

    def _pause(self) -> None:
        self._recorder.settle()
        self._check_budget()
        if not self._is_silent and time.monotonic() - self._last_s > SILENT_S:
            self._is_silent = True
            self._recorder.note(SILENT)

    def _check_budget(self) -> None:
        state, limits = self._log.state, self._request.limits
        answers, seconds, _ = state.resumed
        if state.answers - answers > limits.steps:
            raise _BudgetUsed(f"it has reached the limit of {limits.steps} steps")
        if state.seconds + self._recorder.seconds - seconds > limits.seconds:
            raise _BudgetUsed(f"it has reached the limit of {limits.seconds / 60:.0f} minutes")


def first_prompt(state: RunState, unread: list[str], *, is_known: bool) -> str:
    """Return the prompt of a run that begins or is continued.

    Args:
        unread: what the user said since.
        is_known: whether the agent knows what happened so far.
    """
    task = "\n\n".join(filter(None, (state.task, state.context)))
    if is_known:
        return "\n\n".join(unread) or CONTINUE
    if not state.steps and not state.message:
        return "\n\n".join([task, *unread])
    done = [f"- {step.kind} {step.target}".rstrip() for step in state.steps if step.kind != "note"]
    listed = "\n".join(done[-MAX_LISTED:])
    parts = [
        task,
        f"You have worked on this before; the files are as you left them. You did:\n{listed}",
        state.message,
        *(unread or [CONTINUE]),
    ]
    return "\n\n".join(filter(None, parts))


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
