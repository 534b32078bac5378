"""`python -m lcursor eval kills`: kill agents at random points, and continue their runs.

A run follows a script over the real tools, sandbox, checkpoints and log, in a process that is
killed with SIGKILL again and again. Nothing that was logged may be lost, no command may run twice,
no process may stay, and the files at the end must be those of a run that nobody disturbed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from evals.scripted import Rows, ScriptedModel
from lcursor.agent import observe
from lcursor.agent.approvals import Approvals
from lcursor.agent.dialects.native import Native
from lcursor.agent.loop import Loop
from lcursor.agent.parts import Parts
from lcursor.agent.records import Call
from lcursor.agent.run_log import NAME, RunLog, RunState, Step
from lcursor.agent.shell_rules import Rules
from lcursor.agent.tools.toolbox import make_toolbox
from lcursor.agent.tree import Tree
from lcursor.config import AgentConfig, EditConfig
from lcursor.context.codebase import GrepSearch
from lcursor.process.sandbox import open_sandbox
from lcursor.protocol.agent import AgentChoice, StepState

DIALECT = Native("json")
JOURNAL = "journal.txt"
CHECKS = "Check it."
BROKEN = '<tool_call>{"name": "bash", "arguments": {'
ORPHAN_S = 2.0
ACTIONS = 12
"""Of each run."""


@dataclass
class Outcome:
    """What became of all runs."""

    runs: int = 0
    kills: int = 0
    """Of processes that were still at work."""
    lost: int = 0
    """Logged operations that are not in the log."""
    doubled: int = 0
    """Commands that ran twice."""
    missing: int = 0
    """Commands that never ran."""
    orphans: int = 0
    """Processes that were there half a second after the kill."""
    wrong_trees: int = 0
    unfinished: int = 0
    interrupted: int = 0
    """Commands that were reported to the model as interrupted."""
    slowest_end_ms: float = 0.0
    """From a kill to the end of all its processes."""

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, doubled, left or wrong."""
        wrong = self.lost, self.doubled, self.missing, self.orphans, self.wrong_trees
        return not any((*wrong, self.unfinished))


def script(seed: int) -> list[Call | str]:
    """Return the actions of a run: calls, or malformed answers."""
    chance = random.Random(seed)
    actions = list[Call | str]()
    for number in range(ACTIONS):
        kind = chance.choice(["append", "append", "edit", "create", "grep", "malformed", "view"])
        name = f"{chance.choice('ab')}.py"
        # Each call is another one: equal ones count as no progress.
        edit: dict[str, Any] = {"command": "view", "path": name, "view_range": [1, number + 1]}
        if kind == "append":
            actions.append(Call("bash", {"command": _append(number)}))
        elif kind == "create":
            text = f"made = {number}\n"
            edit = {"command": "create", "path": f"new{number}.py", "file_text": text}
            actions.append(Call("str_replace_editor", edit))
        elif kind == "grep":
            actions.append(Call("grep", {"pattern": f"value_{number} "}))
        elif kind == "malformed":
            actions.append(BROKEN)
        else:
            actions.append(Call("str_replace_editor", edit))
        if kind == "edit":
            old, new = f"value_{number} = 0", f"value_{number} = {number + 1}"
            edit = {"command": "str_replace", "path": name, "old_str": old, "new_str": new}
            actions.append(Call("str_replace_editor", edit))
    return [*actions, Call("finish", {"summary": "done"})]


def answers(actions: Sequence[Call | str]) -> Callable[[Rows, bool], str]:
    """Return a model that carries out actions, and checks commands that were interrupted."""

    def answer(rows: Rows, is_forced: bool) -> str:
        said = [text for role, text in rows if role == "assistant"]
        position = sum(not text.startswith(CHECKS) for text in said)
        if "was interrupted" in rows[-1][1]:
            done = actions[position - 1]
            assert isinstance(done, Call)
            number = done.arguments["command"].split()[3]
            command = f"grep -qx {number} {JOURNAL} || {{ {_append(int(number))}\n}}"
            return f"{CHECKS}\n{DIALECT.render(Call('bash', {'command': command}))}"
        action = actions[position]
        if isinstance(action, Call):
            return DIALECT.render(action)
        instead = Call("grep", {"pattern": f"x{position}"})
        return DIALECT.render(instead) if is_forced else action

    return answer


def _append(number: int) -> str:
    return f"sleep 0.02; echo {number} >> {JOURNAL} # {_token()}"


def _token() -> str:
    return f"kill-{os.environ['LCURSOR_KILLS']}"


class _User:
    """Nobody is asked."""

    def step(self, step: Step, state: StepState) -> None:
        """Ignore it."""

    def delta(self, text: str, *, is_new: bool) -> None:
        """Ignore it."""

    def status(self, state: str) -> None:
        """Ignore it."""

    def ask(self, step: Step, why: str) -> tuple[AgentChoice, str]:
        """Reject it."""
        return "reject", ""

    def plan(self, text: str) -> str:
        """Reject it."""
        return ""


class _CountedLog(RunLog):
    """A log that reports each operation that was stored."""

    report = -1

    def write(self, op: str, *, fsync: bool = False, **fields: Any) -> None:
        """Append an operation."""
        super().write(op, fsync=fsync, **fields)
        os.write(self.report, b".")


def work(root: Path, folder: Path, seed: int, report: int) -> None:
    """Execute a run from where it is to its end."""
    _CountedLog.report = report
    is_new = not (folder / NAME).exists()
    if is_new:
        tree = Tree.create(root, folder, unsaved={})
        log: RunLog = _CountedLog(folder)
        fields = {"root": str(root), "task": "t", "context": "", "model": "m", "note": ""}
        log.start(key="k", dialect="native", sandbox="", policy="auto", **fields)
    else:
        tree, log = Tree.open(root, folder), _CountedLog.open(folder)
        if log.state.state == "done":
            return
        log.write("resume", sandbox="")
    Loop(log, make_parts(tree, seed), _User(), threading.Event()).run()
    done = {"message": "", "is_checked": False, "turn": "", "paths": []}
    log.write("done", fsync=True, state="done", **done)


def make_parts(tree: Tree, seed: int) -> Parts:
    """Return the parts of a run."""
    model, sandbox = ScriptedModel(answers(script(seed))), open_sandbox()
    config = AgentConfig()
    toolbox = make_toolbox(
        tree, sandbox, GrepSearch(tree.path), config, EditConfig(), dialect="native",
        count=model.count, budget_tokens=observe.limit_tokens(model.context_tokens),
    )  # fmt: skip
    approvals = Approvals("auto", sandbox.level, Rules.of(config), tree.root)

    def summarize(state: RunState) -> None:
        raise AssertionError(state.key)

    return Parts(model, DIALECT, toolbox, tree, approvals, summarize)


def kill_runs(runs: int, kills: int, seed: int, folder: Path) -> Outcome:
    """Execute runs, each killed a number of times, and return what became of them."""
    found = Outcome()
    open_sandbox()  # its probe is no part of a run
    for number in range(runs):
        os.environ["LCURSOR_KILLS"] = f"{os.getpid()}-{seed}-{number}"
        _kill_run(found, folder / str(number), seed * 1000 + number, kills)
    return found


def _kill_run(found: Outcome, folder: Path, seed: int, kills: int) -> None:
    chance = random.Random(seed)
    root = folder / "project"
    root.mkdir(parents=True)
    for name in "ab":
        text = "".join(f"value_{number} = 0\n" for number in range(ACTIONS))
        (root / f"{name}.py").write_text(text)
    began_s = time.monotonic()
    _execute(root, folder / "undisturbed", seed)
    whole_s = time.monotonic() - began_s
    run, stored = folder / "killed", 0
    for _ in range(kills):
        after_s = chance.uniform(0, whole_s * 2 / kills)
        stored += _execute_and_kill(found, root, run, seed, after_s)
        lines = _lines(run)
        found.lost += max(stored - len(lines), 0)
    _execute(root, run, seed)
    found.runs += 1
    log = RunLog.open(run)
    found.unfinished += log.state.state != "done"
    found.wrong_trees += Tree.open(root, run).last != Tree.open(root, folder / "undisturbed").last
    journal = run / "tree" / JOURNAL
    numbers = journal.read_text().split() if journal.exists() else []
    wanted = [call for call in script(seed) if isinstance(call, Call) and call.tool == "bash"]
    found.doubled += len(numbers) - len(set(numbers))
    found.missing += len(wanted) - len(set(numbers))
    begun = [row["step"] for row in _lines(run) if row["op"] == "begin"]
    commands = [step for step in begun if log.state.steps[step - 1].call.tool == "bash"]
    found.doubled += len(commands) - len(set(commands))
    results = (step.observation.result for step in log.state.steps if step.observation)
    found.interrupted += sum(result == "interrupted" for result in results)


def _execute(root: Path, folder: Path, seed: int) -> None:
    child, report = _fork(root, folder, seed)
    while os.read(report, 1 << 16):
        pass
    os.close(report)
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError(f"the run in {folder} has failed")


def _execute_and_kill(found: Outcome, root: Path, folder: Path, seed: int, after_s: float) -> int:
    """Return the number of operations that the process reported as stored."""
    child, report = _fork(root, folder, seed)
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    began_s = time.monotonic()
    _, status = os.waitpid(child, 0)
    found.kills += os.WIFSIGNALED(status)
    os.set_blocking(report, False)
    count = 0
    while data := _read(report):
        count += len(data)
    os.close(report)
    while (left := _processes(folder)) and time.monotonic() - began_s < ORPHAN_S:
        time.sleep(0.005)
    spent_ms = (time.monotonic() - began_s) * 1000
    found.slowest_end_ms = max(found.slowest_end_ms, round(spent_ms, 1))
    found.orphans += left if left else spent_ms > 500
    return count


def _fork(root: Path, folder: Path, seed: int) -> tuple[int, int]:
    """Start a process that executes a run; return its id, and a pipe with a byte for each op."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    status = 1
    try:
        os.close(reader)
        work(root, folder, seed, writer)
        status = 0
    except BaseException:  # noqa: BLE001 - the root of the process
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _read(report: int) -> bytes:
    try:
        return os.read(report, 1 << 16)
    except BlockingIOError:
        return b""


def _lines(folder: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a log."""
    try:
        data = (folder / NAME).read_bytes()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in data.split(b"\n")[:-1] if line.endswith(b"}")]


def _processes(folder: Path) -> int:
    """Return the number of processes that work on a run."""
    words, count = (os.fsencode(folder), _token().encode()), 0
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and int(each.name) != os.getpid():
            try:
                found = (each / "cmdline").read_bytes() + (each / "environ").read_bytes()
            except OSError:
                continue
            count += any(word in found for word in words)
    return count


def command(
    runs: Annotated[int, typer.Option(help="Number of runs.")] = 40,
    kills: Annotated[int, typer.Option(help="Kills of each run.")] = 5,
    seed: Annotated[int, typer.Option(help="Of scripts and points in time.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
) -> None:
    """Kill agents at random points, continue their runs, and compare with undisturbed ones."""
    with tempfile.TemporaryDirectory(prefix="lcursor-kills-") as folder:
        found = kill_runs(runs, kills, seed, Path(folder))
    if as_json:
        typer.echo(json.dumps(asdict(found)))
    else:
        for name, value in asdict(found).items():
            typer.echo(f"{name:16} {value}")
    if not found.is_good:
        raise typer.Exit(1)
