"""`python -m lcursor eval kills`: kill agents at random points, and continue their runs.

A run is a process like `python -m lcursor agent`, over a scripted server, that is killed with
SIGKILL and continued again and again. Nothing that was logged may be lost, no command may run
twice, no process may stay, and the files at the end must be those of a run that nobody disturbed.
Several runs may work on the same project at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from evals.scripted import Row, serving
from lcursor.agent import assembly, runs, service
from lcursor.agent.dialects.native import Native
from lcursor.agent.records import ToolCall
from lcursor.agent.run_log import NAME, RunLog
from lcursor.changes import histories
from lcursor.cli.agent import agent
from lcursor.llm import pool
from lcursor.process.sandbox import open_sandbox
from lcursor.workspace.tree import Tree

Execute = Callable[[int], None]
IMPORTED = (assembly, histories, pool, service)
"""What the command imports when it runs: before the forks, so that kills hit its work."""
DIALECT = Native("tags")
TASK = "Task "
JOURNAL = "journal.txt"
CHECKS = "Check it."
BROKEN = "<tool_call>\n<function=bash>\n<parameter=comm"
ORPHAN_S = 0.5
ACTIONS = 12
"""Of each run."""
_FORK = threading.Lock()
SPREAD = 1.6
"""Kills are spread over so many times the time that a run takes, as each start costs time."""


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
    extra_turns: int = 0
    """Turns in the edit history beyond one for each run."""
    unfinished: int = 0
    reasons: list[str] = field(default_factory=list)
    """Why runs did not finish."""
    interrupted: int = 0
    """Commands that were reported to the model as interrupted."""
    slowest_end_ms: float = 0.0
    """From a kill to the end of all its processes."""

    def add(self, other: Outcome) -> None:
        """Add what became of other runs."""
        slowest_end_ms = max(self.slowest_end_ms, other.slowest_end_ms)
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        self.slowest_end_ms = slowest_end_ms

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, doubled or wrong.

        An orphan is a child of bubblewrap that waits for its parent, which has found that nobody
        reads the id of the child, and ended; it never runs the command.
        """
        wrong = self.lost, self.doubled, self.missing, self.wrong_trees
        return not any((*wrong, self.unfinished))


def script(seed: int) -> list[ToolCall | str]:
    """Return the actions of a run: calls, or malformed answers."""
    chance = random.Random(seed)
    actions = list[ToolCall | str]()
    for number in range(ACTIONS):
        kind = chance.choice(["append", "append", "edit", "create", "grep", "malformed", "view"])
        name = f"{chance.choice('ab')}.py"
        # Each call is another one: equal ones count as no progress.
        edit: dict[str, Any] = {"command": "view", "path": name, "view_range": [1, number + 1]}
        if kind == "append":
            actions.append(ToolCall("bash", {"command": _append(seed, number)}))
        elif kind == "create":
            text = f"made = {number}\n"
            edit = {"command": "create", "path": f"new{number}.py", "file_text": text}
            actions.append(ToolCall("str_replace_editor", edit))
        elif kind == "grep":
            actions.append(ToolCall("grep", {"pattern": f"value_{number} "}))
        elif kind == "malformed":
            actions.append(BROKEN)
        else:
            actions.append(ToolCall("str_replace_editor", edit))
        if kind == "edit":
            old, new = f"value_{number} = 0", f"value_{number} = {number + 1}"
            edit = {"command": "str_replace", "path": name, "old_str": old, "new_str": new}
            actions.append(ToolCall("str_replace_editor", edit))
    return [*actions, ToolCall("finish", {"summary": "done"})]


def play(rows: list[Row], is_forced: bool) -> str:
    """Carry out the actions of the task's seed, and check commands that were interrupted."""
    seed = int(rows[1][1].partition("\n")[0].removeprefix(TASK))
    actions = script(seed)
    said = [text for role, text in rows if role == "assistant"]
    position = sum(not text.startswith(CHECKS) for text in said)
    if "was interrupted" in rows[-1][1]:
        done = actions[position - 1]
        assert isinstance(done, ToolCall)
        number = done.arguments["command"].split()[3]
        command = f"grep -qx {number} {JOURNAL} || {{ {_append(seed, int(number))}\n}}"
        return f"{CHECKS}\n{DIALECT.render(ToolCall('bash', {'command': command}))}"
    action = actions[position]
    if isinstance(action, ToolCall):
        return DIALECT.render(action)
    instead = ToolCall("grep", {"pattern": f"x{position}"})
    return DIALECT.render(instead) if is_forced else action


def _append(seed: int, number: int) -> str:
    return f"sleep 0.05; echo {number} >> {JOURNAL} # {_token(seed)}"


def _token(seed: int) -> str:
    """Return a word in the command line of each process of a run."""
    return f"kill-{os.environ['LCURSOR_KILLS']}-{seed}-"


def work(root: Path, data: Path, seed: int, url: str, report: int) -> None:
    """Execute a run from where it is to its end, as `python -m lcursor agent` does.

    Args:
        data: folder of the user's data.
        report: file descriptor that gets a byte for each operation that was stored.
    """
    os.environ["LCURSOR_DATA"] = str(data)
    write = RunLog.write

    def count(self: RunLog, op: str, *, fsync: bool = False, **fields: Any) -> None:
        write(self, op, fsync=fsync, **fields)
        os.write(report, b".")

    RunLog.write = count  # type: ignore[method-assign]
    run = run_of(root, data, seed)
    if run and RunLog.open(run).state.state == "done":
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    with contextlib.suppress(typer.Exit):
        key = run.name if run else ""
        agent([] if run else [f"{TASK}{seed}"], path=root, url=url, resume=key)


def run_of(root: Path, data: Path, seed: int) -> Path | None:
    """Return the folder of the run with a seed, if it has begun."""
    folder = data / "agents"
    for row in runs.rows(root, folder):
        if row["task"] == f"{TASK}{seed}":
            return runs.find(root, row["run"], folder)
    return None


def kill_runs(count: int, kills: int, seed: int, folder: Path, parallel: int = 1) -> Outcome:
    """Execute runs, each killed a number of times, and return what became of them.

    Args:
        parallel: number of runs that work on the same project at once.
    """
    found = Outcome()
    open_sandbox()  # its probe is no part of a run
    os.environ["LCURSOR_KILLS"] = f"{os.getpid()}-{seed}"
    with serving(play) as url, ThreadPoolExecutor(parallel) as threads:
        for first in range(0, count, parallel):
            place = folder / str(first)
            _make_project(place / "project")
            seeds = [seed * 1000 + each for each in range(first, min(first + parallel, count))]
            kill = partial(_kill_run, place, kills=kills, url=url)
            for outcome in threads.map(kill, seeds):
                found.add(outcome)
            turns = [*place.glob("killed/edits/*/turns/*.json")]
            found.extra_turns += len(turns) - len(seeds)
    return found


def _make_project(root: Path) -> None:
    (root / ".git").mkdir(parents=True)
    for name in "ab":
        text = "".join(f"value_{number} = 0\n" for number in range(ACTIONS))
        (root / f"{name}.py").write_text(text)


def _kill_run(folder: Path, seed: int, kills: int, url: str) -> Outcome:
    found = Outcome()
    chance = random.Random(seed)
    root, data, calm = folder / "project", folder / "killed", folder / "undisturbed"
    began_s = time.monotonic()
    _execute(partial(work, root, calm, seed, url))
    whole_s, stored = time.monotonic() - began_s, 0
    execute = partial(work, root, data, seed, url)
    for _ in range(kills):
        after_s = chance.uniform(0, whole_s * SPREAD / kills)
        stored += _execute_and_kill(found, execute, after_s, _token(seed))
        found.lost += max(stored - len(_lines(root, data, seed)), 0)
    _execute(execute)
    found.runs += 1
    run, undisturbed = run_of(root, data, seed), run_of(root, calm, seed)
    assert run is not None
    assert undisturbed is not None
    log = RunLog.open(run)
    if log.state.state != "done":
        found.unfinished += 1
        found.reasons.append(f"{log.state.state}: {log.state.message}")
    found.wrong_trees += Tree.open(root, run).last != Tree.open(root, undisturbed).last
    journal = run / "tree" / JOURNAL
    numbers = journal.read_text().split() if journal.exists() else []
    wanted = [call for call in script(seed) if isinstance(call, ToolCall) and call.tool == "bash"]
    found.doubled += len(numbers) - len(set(numbers))
    found.missing += len(wanted) - len(set(numbers))
    begun = [row["step"] for row in _lines(root, data, seed) if row["op"] == "begin"]
    commands = [step for step in begun if log.state.steps[step - 1].call.tool == "bash"]
    found.doubled += len(commands) - len(set(commands))
    results = (step.observation.result for step in log.state.steps if step.observation)
    found.interrupted += sum(result == "interrupted" for result in results)
    return found


def _execute(execute: Execute) -> None:
    child, report = _fork(execute)
    while os.read(report, 1 << 16):
        pass
    os.close(report)
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError("a run has failed")


def _execute_and_kill(found: Outcome, execute: Execute, after_s: float, token: str) -> int:
    """Return the number of operations that the process reported as stored."""
    child, report = _fork(execute)
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
    while (left := processes(token)) and time.monotonic() - began_s < ORPHAN_S:
        time.sleep(0.005)
    spent_ms = (time.monotonic() - began_s) * 1000
    found.slowest_end_ms = max(found.slowest_end_ms, round(spent_ms, 1))
    found.orphans += len(left)
    for each in left:
        os.kill(each, signal.SIGKILL)
    return count


def _fork(execute: Execute) -> tuple[int, int]:
    """Start a process that executes a run; return its id, and a pipe with a byte for each op."""
    with _FORK:  # a process started meanwhile would keep the pipe open
        reader, writer = os.pipe()
        child = os.fork()
        if child:
            os.close(writer)
            return child, reader
    status = 1
    try:
        os.close(reader)
        execute(writer)
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


def _lines(root: Path, data: Path, seed: int) -> list[dict[str, Any]]:
    """Return the complete lines of the log of a run."""
    run = run_of(root, data, seed)
    lines = (run / NAME).read_bytes().split(b"\n")[:-1] if run else []
    return [json.loads(line) for line in lines if line.endswith(b"}")]


def processes(word: str) -> list[int]:
    """Return the processes with a word in their command line."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word.encode() in (each / "cmdline").read_bytes():
                found.append(int(each.name))
    return found


def command(
    runs: Annotated[int, typer.Option(help="Number of runs.")] = 40,
    kills: Annotated[int, typer.Option(help="Kills of each run.")] = 5,
    parallel: Annotated[int, typer.Option(min=1, help="Runs that work on a project at once.")] = 1,
    seed: Annotated[int, typer.Option(help="Of scripts and points in time.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
) -> None:
    """Kill agents at random points, continue their runs, and compare with undisturbed ones."""
    with tempfile.TemporaryDirectory(prefix="lcursor-kills-") as folder:
        found = kill_runs(runs, kills, seed, Path(folder), parallel)
    if as_json:
        typer.echo(json.dumps(asdict(found)))
    else:
        for name, value in asdict(found).items():
            typer.echo(f"{name:16} {value}")
    if not found.is_good:
        raise typer.Exit(1)
