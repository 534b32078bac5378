"""`python -m lcursor agent`: an agent outside the editor, with the same runs and histories.

Prints a line for each step to standard error and the agent's summary to standard output.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lcursor.cli import options
from lcursor.cli.questions import approve, approve_plan, fill_in, note
from lcursor.cli.terminal import safe
from lcursor.errors import EditFailed

if TYPE_CHECKING:
    from lcursor.agent.records import Policy
    from lcursor.agent.service import AgentService
    from lcursor.changes.histories import Histories
    from lcursor.config import Config
    from lcursor.protocol.agent import AgentResume
    from lcursor.protocol.edit import EditWrite

INTERRUPTED = 130
INTERRUPT = "interrupt"
STATUS = {"done": 0, "stopped": INTERRUPTED}
MARKS = {"done": "✓", "failed": "✗", "rejected": "–", "running": "…", "waiting": "?"}
TARGET_COLUMNS = 48
TICK_S = 0.5
"""Interval at which the progress within a step is shown."""


def agent(
    task: Annotated[
        list[str] | None, typer.Argument(help="The task; - reads standard input.")
    ] = None,
    model: options.Model = "",
    policy: Annotated[
        str,
        typer.Option(
            help="plan: read, then show a plan. ask: approve commands. auto: all that is sandboxed "
            "runs. full: nothing is sandboxed or asked. A continued run keeps its own by default.",
            show_default="auto",
        ),
    ] = "",
    path: options.Where = None,
    test: options.Test = "",
    lint: options.Lint = "",
    allow: options.Allow = None,
    readable: options.Readable = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Trace failed tests for the model.")
    ] = False,
    max_steps: Annotated[int, typer.Option(metavar="N", help="Maximum number of steps.")] = 40,
    attempts: Annotated[
        int, typer.Option(metavar="N", min=1, help="Attempts, until one passes the tests.")
    ] = 1,
    apply: Annotated[
        bool, typer.Option("--apply", help="Write the changes, except for files that run code.")
    ] = False,
    resume: Annotated[
        str, typer.Option(metavar="RUN", help="Continue a run: its key, or `last`.")
    ] = "",
    listing: Annotated[bool, typer.Option("--list", help="List the runs of the project.")] = False,
    show: Annotated[
        str, typer.Option(metavar="RUN", help="Print all that a run wrote and read.")
    ] = "",
    foreign: Annotated[
        str,
        typer.Option("--agent", metavar="NAME", help="Someone else's: codex, opencode, …"),
    ] = "",
    url: options.Url = "",
    key_env: options.KeyEnv = "",
    secret: options.Secret = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print messages, one line of JSON each; the last has totals."),
    ] = False,
) -> None:
    """Let an agent work on a copy of a project. Ctrl-C stops it; its changes so far are kept."""
    from lcursor.config import AgentConfig, Config, EditConfig

    if policy not in ("", "plan", "ask", "auto", "full"):
        raise typer.BadParameter("policy is plan, ask, auto or full")
    where = str((path or Path.cwd()).absolute())
    if listing:
        _print_list(where, as_json)
        return
    if show:
        _print_run(where, show)
        return
    text = " ".join(task or [])
    if text == "-":
        text = sys.stdin.read()
    if not text.strip() and not resume:
        raise typer.BadParameter("the task is missing")
    if resume and attempts > 1:
        raise typer.BadParameter("a run is continued once: use --resume without --attempts")
    config = Config(
        chat=options.chat_settings(model, url, key_env),
        edit=EditConfig(test=test, lint=lint, evidence=evidence),
        agent=AgentConfig(
            model=foreign,
            max_steps=max_steps,
            allow=tuple(allow or ()),
            readable=options.absolute(readable),
        ),
    )
    with _session(config, secret or []) as session:
        if resume:
            done = session.resume(resume, where, text, policy, as_json)
        else:
            done = session.start(text, where, policy or "auto", attempts, as_json)
        if done["turn"] and apply and done["state"] == "done":
            session.apply(done)
        elif done["turn"]:
            note("Review the changes in Neovim with :LCursor edit list, or apply them: --apply")
    raise typer.Exit(STATUS.get(done["state"], 1))


class _Session:
    """A run, and the messages of its service."""

    def __init__(self) -> None:
        self.messages: SimpleQueue[tuple[str, Mapping[str, Any]]] = SimpleQueue()
        self.service: AgentService
        self.histories: Histories

    def emit(self, method: str, params: Mapping[str, Any]) -> None:
        """Queue a message. Thread: any."""
        self.messages.put((method, params))

    def start(
        self, task: str, path: str, policy: str, attempts: int, as_json: bool
    ) -> Mapping[str, Any]:
        """Make attempts until one passes the tests; return `agent.done` of the best one."""
        from lcursor.agent.standalone import start_message

        start = start_message(1, task, path, cast("Policy", policy))
        if attempts == 1:
            self.service.start(start)
            return self._follow(as_json)
        start["group"], ends = str(time.time_ns()), dict[str, Mapping[str, Any]]()
        for attempt in range(1, attempts + 1):
            start["attempt"] = attempt
            self.service.start(start)
            done = self._follow(as_json)
            ends[done["run"]] = done
            if done["state"] == "stopped":
                return done
            if done["is_checked"] or not done["run"]:
                break
        return self._best(start["group"], path, ends, as_json)

    def _best(
        self, group: str, path: str, ends: Mapping[str, Mapping[str, Any]], as_json: bool
    ) -> Mapping[str, Any]:
        """Print what distinguishes attempts, and return `agent.done` of the best one."""
        self._send("agent.compare", id=1, path=path, group=group)
        while (message := self.messages.get())[0] not in ("agent.compared", "error"):
            pass
        rows = [row for row in message[1].get("attempts", []) if row["run"] in ends]
        if not rows:
            _Lines().show(*message)
            return [*ends.values()][-1]
        best = ends[rows[0]["run"]]
        if as_json:
            _Json().show(*message)
            _Json().show("agent.done", best)
            return best
        for row in rows:
            tests = f"tests {row['tests']}" if row["tests"] else "tests not run"
            size = f"+{row['added']} -{row['removed']}"
            note(f"attempt {row['attempt']}: {row['state']}, {tests}, {size}")
        note(f"attempt {rows[0]['attempt']} is the best")
        return best

    def resume(
        self, run: str, path: str, text: str, policy: str, as_json: bool
    ) -> Mapping[str, Any]:
        """Continue a run, with a message of the user if there is one."""
        from lcursor.agent import runs
        from lcursor.project.root import root_of

        folder = runs.find(root_of(Path(path)), run)
        wanted: AgentResume = {
            "id": 1,
            "run": folder.name,
            "path": path,
            "continues": True,
            "text": text,
            "seen": 0,
        }
        self.service.resume(wanted, cast("Policy", policy) if policy else None)
        return self._follow(as_json)

    def apply(self, done: Mapping[str, Any]) -> None:
        """Write the changes of a run, except for files that run code by themselves.

        Raises:
            EditFailed: they cannot be written.
        """
        from lcursor.changes.history import History

        turn = done["turn"]
        files = History(done["root"]).open_files(turn)
        guarded = [each.path for each in files if each.is_guarded]
        paths = [each.path for each in files if not each.is_guarded]
        if paths:
            row = {"id": 1, "turn": turn, "paths": paths, "outside": False}
            written = self.histories.write(cast("EditWrite", row))
            if written["problem"]:
                raise EditFailed(written["problem"])
            note("The changes are written; :LCursor edit undo reverts them")
        for path in guarded:
            note(f"not written, because it runs code by itself: {path}")

    def _let_decide(self, method: str, params: Mapping[str, Any]) -> None:
        """Let the user decide on a call or a plan, or fill in a form."""
        if method == "agent.asks":
            choice, text = approve(params)
            self._send("agent.decide", id=1, ask=params["ask"], choice=choice, text=text)
        else:
            plan = fill_in if params["is_question"] else approve_plan
            self._send("agent.approve_plan", id=1, text=plan(params["text"]))

    def _send(self, method: str, **params: Any) -> None:
        self.service.handlers()[method](params)

    def _follow(self, as_json: bool) -> Mapping[str, Any]:
        """Print messages until the end."""
        progress = _Progress(is_shown=not as_json and sys.stderr.isatty())
        with _interrupts(self.messages), progress:
            is_stopped = False
            shown = _Json() if as_json else _Lines()
            while True:
                try:
                    method, params = self.messages.get(timeout=TICK_S)
                except Empty:
                    progress.show()
                    continue
                if method != "agent.delta":
                    progress.hide()
                if method == INTERRUPT:
                    if is_stopped:
                        raise KeyboardInterrupt
                    is_stopped = True
                    self._send("agent.stop", id=1)
                elif method in ("agent.asks", "agent.planned"):
                    try:
                        self._let_decide(method, params)
                    except KeyboardInterrupt:
                        is_stopped = True
                        self._send("agent.stop", id=1)
                elif method != "log":
                    shown.show(method, params)
                elif params["level"] == "error":
                    note(params["message"])
                if method == "agent.done":
                    return params
                progress.follow(method, params)


class _Progress:
    """Shows what a run does at present, in a line below its steps. Hidden at the end of `with`."""

    def __init__(self, *, is_shown: bool) -> None:
        from rich.console import Console

        self._live = Console(stderr=True).status("") if is_shown else None
        self._begin("preparing")

    def __enter__(self) -> None:
        self.show()

    def __exit__(self, *_: object) -> None:
        self.hide()

    def _begin(self, doing: str) -> None:
        self._doing, self._chars, self._since_s = doing, 0, time.monotonic()

    def follow(self, method: str, params: Mapping[str, Any]) -> None:
        """Show what follows from a message."""
        if method == "agent.delta":
            if params["is_new"]:
                self._begin("writing")
            self._chars += len(params["text"])
        elif method == "agent.step" and params["state"] == "running":
            self._begin(f"{params['kind']} {_shortened(params['target'])}")
        elif method in ("agent.started", "agent.step"):
            self._begin("reading")
        elif method == "agent.status" and params["state"] == "checking":
            self._begin("looking for unneeded changes")
        self.show()

    def show(self) -> None:
        """Show what the run does, for how long, and how much the model has written."""
        from rich.markup import escape

        from lcursor.llm.tokens import BYTES_PER_TOKEN

        if self._live is None:
            return
        words = [safe(self._doing), f"{time.monotonic() - self._since_s:.0f} s"]
        if self._chars:
            words.append(f"about {round(self._chars / BYTES_PER_TOKEN)} tokens")
        self._live.update(escape(", ".join(words)))
        self._live.start()

    def hide(self) -> None:
        """Show nothing until the next call of `show`."""
        if self._live is not None:
            self._live.stop()


class _Json:
    """Prints each message."""

    def show(self, method: str, params: Mapping[str, Any]) -> None:
        """Print one."""
        more = _totals(params) if method == "agent.done" else {}
        typer.echo(json.dumps({"method": method, **params, **more}))


def _totals(done: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run has cost since its start."""
    from lcursor.agent import runs
    from lcursor.agent.run_log import RunLog, RunState

    state = RunState()
    if done["run"]:
        state = RunLog.open(runs.find(Path(done["root"]), done["run"])).state
    return {
        "steps": len(state.steps),
        "read_tokens": state.read_tokens,
        "cached_tokens": state.cached_tokens,
        "answer_tokens": state.answer_tokens,
        "seconds": round(state.seconds, 3),
        "gate": state.gate,
    }


class _Lines:
    """Prints a line for each step."""

    def __init__(self) -> None:
        self._status: Mapping[str, Any] = {}

    def show(self, method: str, params: Mapping[str, Any]) -> None:
        """Print a message."""
        if method == "agent.started":
            dialect, sandbox = params["dialect"], params["sandbox"]
            note(f"run {params['run']}: {params['model']}, {dialect} calls, sandbox {sandbox}")
            if params["note"]:
                note(params["note"])
        elif method == "agent.status":
            self._status = params
        elif method == "agent.step" and params["state"] not in ("running", "waiting"):
            line = _shortened(params["target"])
            mark, result = MARKS[params["state"]], params["result"]
            note(
                f"{params['number']:3} {mark} {params['kind']:7} {line:{TARGET_COLUMNS}} "
                f"{params['seconds']:5.1f} s  {result}"
            )
        elif method == "error":
            note(f"lcursor: {'. '.join(filter(None, (params['message'], params['hint'])))}")
        elif method == "agent.done":
            self._end(params)

    def _end(self, done: Mapping[str, Any]) -> None:
        if done["message"]:
            typer.echo(safe(done["message"]))
        if done["state"] not in ("done", "failed"):
            note(f"lcursor: the run is {done['state']}; continue it with --resume {done['run']}")
        if done["turn"]:
            added, removed = self._status.get("added", 0), self._status.get("removed", 0)
            tests = "; the tests pass" if done["is_checked"] else ""
            files = "1 file" if len(done["paths"]) == 1 else f"{len(done['paths'])} files"
            note(f"{files} changed, +{added} -{removed}{tests}")
            for path in done["paths"]:
                note(f"  {path}")


def _shortened(target: str) -> str:
    line = target.partition("\n")[0]
    return line if len(line) <= TARGET_COLUMNS else line[: TARGET_COLUMNS - 1] + "…"


@contextmanager
def _session(config: Config, secrets: Sequence[str]) -> Iterator[_Session]:
    """Open a service with its models and histories."""
    from lcursor.acp.client.agents import ForeignAgentsOf
    from lcursor.agent.standalone import open_service

    session = _Session()
    with open_service(config, session.emit, secrets, note, ForeignAgentsOf) as opened:
        session.service, session.histories = opened.service, opened.histories
        yield session


def _print_list(path: str, as_json: bool) -> None:
    from datetime import datetime

    from lcursor.agent import runs
    from lcursor.project.root import root_of

    rows = runs.rows(root_of(Path(path)))
    for each in rows:
        if as_json:
            typer.echo(json.dumps(each))
        else:
            at = datetime.fromtimestamp(each["at_s"]).strftime("%Y-%m-%d %H:%M")
            task = each["task"].partition("\n")[0]
            line = f"{each['run']}  {at}  {each['state']:8} {each['steps']:>3}  {task}"
            typer.echo(safe(line))
    if not rows and not as_json:
        typer.echo("This project has no runs", err=True)


def _print_run(path: str, run: str) -> None:
    from lcursor.agent import runs
    from lcursor.agent.run_log import RunLog
    from lcursor.project.root import root_of

    state = RunLog.open(runs.find(root_of(Path(path)), run)).state
    parts = [state.task, state.context]
    for step in state.steps:
        parts.append(step.text.strip())
        head = f"{step.number} {MARKS[step.shown_state]} {step.kind} {step.target}"
        parts.append(f"{head}\n{step.observation.text if step.observation else ''}")
    typer.echo(safe("\n\n".join(filter(None, [*parts, state.message]))))


@contextmanager
def _interrupts(messages: SimpleQueue[tuple[str, Mapping[str, Any]]]) -> Iterator[None]:
    """Turn interrupts into messages."""
    import signal

    before = signal.signal(signal.SIGINT, lambda *_: messages.put((INTERRUPT, {})))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
