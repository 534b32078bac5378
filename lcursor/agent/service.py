"""The service of agents, with a method for each message of `protocol.agent`.

No method blocks. Each run works on its own thread.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lcursor.agent import attempts, queue, runs
from lcursor.agent.assembly import Assembly
from lcursor.agent.fork import fork
from lcursor.agent.parts import AssembledRun, End, RecordedTurn, RunRequest
from lcursor.agent.records import Policy
from lcursor.agent.run import AgentRun, step_row
from lcursor.agent.run_log import RunLog, RunState
from lcursor.config import Config
from lcursor.errors import AgentMissing, Cancelled, LcursorError
from lcursor.executor import SerialExecutor
from lcursor.project.root import root_of
from lcursor.protocol import agent as wire
from lcursor.reporting import Notify, log_exception, report_error
from lcursor.run.run import Runs
from lcursor.stop import Stop

STOP_S = 5.0
"""Time limit for a stopped run to end with its changes."""
LEAVE_S = 0.3
INTERRUPTED = "it was interrupted"
LATE = "Your last message came after the work was done: resume the run, and the model reads it."


class AgentService:
    """The agents of one editor or of the command line.

    Args:
        send: sends a message, from any thread.
        folder: of all runs; None for the default.
        busy: called on any thread when a run starts to use the model, and when it stops.
    """

    def __init__(
        self,
        config: Config,
        send: Notify,
        assembly: Assembly,
        *,
        folder: Path | None = None,
        busy: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._config, self._send, self._assembly = config, send, assembly
        self._folder = folder
        self._runs: Runs[AgentRun] = Runs(busy)
        self._executor = SerialExecutor("lcursor-agents", self._on_error)
        self._reader = SerialExecutor("lcursor-agent-runs", self._on_error)
        """Reads and copies the folders of runs."""
        self._finder = SerialExecutor("lcursor-agent-tasks", self._on_error)
        """Runs tests."""
        self._stopped = Stop()

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return the method for each message."""
        return {
            "agent.start": self.start,
            "agent.resume": self.resume,
            "agent.say": self.say,
            "agent.stop": self.stop,
            "agent.decide": self.decide,
            "agent.approve_plan": self.approve_plan,
            "agent.list": self.list,
            "agent.compare": self.compare,
            "agent.check": self.check,
            "agent.fork": self.fork,
            "agent.find": self.find,
            "agent.models": self.models,
        }

    def start(self, params: wire.AgentStart, folder: Path | None = None) -> None:
        """Start a run.

        Args:
            folder: of `runs.create`, for this run; None to create one.
        """
        self._start(params, partial(self._execute_new, folder=folder))

    def resume(self, params: wire.AgentResume, policy: Policy | None = None) -> None:
        """Continue a run, or show it.

        Args:
            policy: None for the run's.
        """
        self._start(params, partial(self._execute_again, policy=policy))

    def say(self, params: wire.AgentSay) -> None:
        """Send a message to a running agent."""
        number = params["id"]

        def deliver() -> None:
            run = self._runs.find(number)
            if run is None or not run.say(params["text"]):
                raise AgentMissing("this agent is not running", "Resume it first")

        self._executor.submit(deliver, number)

    def stop(self, params: wire.AgentStop) -> None:
        """Stop a run at once."""
        self._runs.stop(params["id"], STOP_S)

    def decide(self, params: wire.AgentDecide) -> None:
        """Answer the question whether a call may run."""
        if run := self._runs.find(params["id"]):
            run.answer((params["choice"], params["text"]), params["ask"])

    def approve_plan(self, params: wire.AgentApprovePlan) -> None:
        """Answer the question whether to carry out a plan."""
        if run := self._runs.find(params["id"]):
            run.answer(params["text"])

    def list(self, params: wire.AgentList) -> None:
        """List the runs of a project."""

        def answer() -> None:
            rows = runs.rows(root_of(Path(params["path"])), self._folder)
            self._send("agent.listed", {"id": params["id"], "runs": rows})

        self._reader.submit(answer, params["id"])

    def fork(self, params: wire.AgentFork) -> None:
        """Create a run that continues after a step of another one."""

        def answer() -> None:
            root = root_of(Path(params["path"]))
            folder = fork(root, params["run"], params["step"], self._folder)
            self._send("agent.forked", {"id": params["id"], "run": folder.name})

        self._reader.submit(answer, params["id"])

    def find(self, params: wire.AgentFind) -> None:
        """Find tasks in a project."""

        def answer() -> None:
            root = root_of(Path(params["path"]))
            tasks, note = self._assembly.tasks(root, self._stopped.is_set)
            found = {"id": params["id"], "root": str(root), "tasks": tasks, "note": note}
            self._send("agent.found", found)

        self._finder.submit(answer, params["id"])

    def compare(self, params: wire.AgentCompare) -> None:
        """Compare the attempts of a group."""

        def answer() -> None:
            root = root_of(Path(params["path"]))
            rows = attempts.compared(runs.of_group(root, params["group"], self._folder))
            self._send("agent.compared", {"id": params["id"], "attempts": rows})

        self._reader.submit(answer, params["id"])

    def check(self, params: wire.AgentCheck) -> None:
        """Run the user's tests on a project as it is in the editor."""

        def answer() -> None:
            root = root_of(Path(params["path"]))
            unsaved = {each["path"]: each["text"] for each in params["buffers"]}
            tests, text = self._assembly.check(root, unsaved, self._stopped)
            self._send("agent.checked", {"id": params["id"], "tests": tests, "text": text})

        self._finder.submit(answer, params["id"])

    def models(self, params: wire.AgentModels) -> None:
        """List what may work on a task."""
        number = params["id"]

        def answer() -> None:
            self._send("agent.offered", {"id": number, "models": self._assembly.offered()})

        self._executor.submit(answer, number)

    def close(self) -> None:
        """Stop all runs, after the messages to them are stored."""
        self._stopped.set()
        self._executor.finish()
        self._runs.close(LEAVE_S)

    # Runs. Thread: the run's.

    def _execute_new(self, run: AgentRun, params: wire.AgentStart, folder: Path | None) -> RunState:
        root = root_of(Path(params["path"]))
        run.status("preparing")
        runs.delete_old(self._folder)
        if params["when_idle"]:
            queue.wait_until_idle(run.stopped)
        folder = folder or runs.create(root, self._folder)
        policy: Policy = params["policy"] or self._config.agent.policy
        unsaved = {each["path"]: each["text"] for each in params["buffers"]}
        wanted = RunRequest(
            root=root,
            folder=folder,
            policy=policy,
            model=params["model"],
            task=params["task"],
            unsaved=unsaved,
            is_new=True,
            stopped=run.stopped,
            log=self._log,
            temperature=attempts.temperature(params["attempt"]),
            test=params["test"],
        )
        log = RunLog(folder)
        with runs.lock(folder), run.using_model():
            try:
                assembled = self._assembly.assemble(wanted)
                log.start(
                    key=folder.name,
                    root=str(root),
                    task=params["task"],
                    context=params["context"],
                    policy=policy,
                    model=assembled.model,
                    dialect=assembled.work.dialect,
                    sandbox=assembled.sandbox,
                    note=assembled.note,
                    group=params["group"],
                    attempt=params["attempt"],
                    test=params["test"],
                )
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            return self._work(run, log, assembled)

    def _execute_again(
        self, run: AgentRun, params: wire.AgentResume, policy: Policy | None
    ) -> RunState:
        """Continue a run, or show it."""
        root = root_of(Path(params["path"]))
        folder = runs.find(root, params["run"], self._folder)
        if not params["continues"]:
            state = RunLog.open(folder).state
            self._show(run, state, params["seen"])
            if not state.is_over:
                state.state = "stopped" if runs.is_interrupted(folder) else "running"
                state.message = INTERRUPTED if state.state == "stopped" else ""
            return state
        with runs.lock(folder):
            log = RunLog.open(folder)
            state = log.state
            wanted = RunRequest(
                root=root,
                folder=folder,
                policy=policy or state.policy,
                model=state.model,
                task=state.task,
                unsaved={},
                is_new=False,
                stopped=run.stopped,
                log=self._log,
                temperature=attempts.temperature(state.attempt),
                test=state.test,
            )
            self._show(run, state, params["seen"])
            with run.using_model():
                assembled = self._assembly.assemble(wanted)
                if params["text"]:
                    log.write("said", text=params["text"])
                log.write("resume", fsync=True, sandbox=assembled.sandbox, policy=wanted.policy)
                return self._work(run, log, assembled)

    def _work(self, run: AgentRun, log: RunLog, assembled: AssembledRun) -> RunState:
        """Let it work, and record its end."""
        work = assembled.work
        run.attach(log, work)
        run.send("agent.started", **_started(log.state))
        try:
            end = work.run(log, run, run.stopped)
        except Cancelled:
            end = End("stopped")
        except LcursorError as error:
            end = End("failed", str(error))
        recorded = RecordedTurn()
        if end.is_checked:
            run.status("checking")
        try:
            recorded = self._assembly.record(
                log.state, work, run.stopped, is_checked=end.is_checked
            )
            late = [LATE] if end.state == "done" and log.state.unread else []
            message = "\n\n".join(filter(None, (end.message, *recorded.notes, *late)))
            log.write("done", fsync=True, **_done(end, message, recorded))
        except LcursorError as error:  # the disk is full: the run can be continued
            message = ". ".join(filter(None, (end.message, str(error))))
            log.state.apply({"op": "done", **_done(End("failed"), message, recorded)})
        return log.state

    def _show(self, run: AgentRun, state: RunState, seen: int) -> None:
        """Send what happened in a run, if some of it is seen, the steps after that."""
        run.send("agent.started", **_started(state))
        said = [] if seen else [*zip(state.said_after, state.said, strict=True)]
        for step in state.steps[seen:]:
            while said and said[0][0] < step.number:
                run.send("agent.said", text=said.pop(0)[1])
            if step.text:
                run.delta(step.text, is_new=True)
            run.send("agent.step", **step_row(step, step.shown_state))
        for _, text in said:
            run.send("agent.said", text=text)

    # Parts of the above.

    def _start(self, params: Any, execute: Callable[[AgentRun, Any], RunState]) -> None:
        def work(run: AgentRun) -> RunState:
            return execute(run, params)

        self._runs.start(AgentRun(params["id"], self._send, self._runs, work))

    def _log(self, error: Exception) -> None:
        log_exception(self._send, error)

    def _on_error(self, error: Exception, number: int) -> None:
        report_error(self._send, error, number, "the agent's request failed")


def _started(state: RunState) -> dict[str, Any]:
    return {
        "run": state.key,
        "task": state.task,
        "policy": state.policy,
        "model": state.model,
        "dialect": state.dialect,
        "sandbox": state.sandbox,
        "note": state.note,
        "group": state.group,
        "attempt": state.attempt,
    }


def _done(end: End, message: str, recorded: RecordedTurn) -> dict[str, Any]:
    """Return the fields of the last operation."""
    return {
        "state": end.state,
        "message": message,
        "is_checked": end.is_checked,
        "turn": recorded.turn,
        "paths": list(recorded.paths),
        "digest": recorded.digest,
        "added": recorded.added,
        "removed": recorded.removed,
        "changes_tests": recorded.changes_tests,
    }
