"""`bench agent-loop`: what an agent's loop costs by itself, and how soon a stop takes effect.

A scripted server answers at once; the time from the end of one answer to the arrival of the next
request is the loop's. Everything else is real: the log, checkpoints, tokens, the sandbox.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Any

import typer

from bench.report import Json, Promise, Report, measuring, ms_since
from evals.kills import processes
from evals.scripted import ENDLESS, Row, serving
from lcursor.agent.assembly import Assembly
from lcursor.agent.dialects.native import Native
from lcursor.agent.records import ToolCall
from lcursor.agent.service import AgentService
from lcursor.changes.histories import Histories
from lcursor.config import AgentConfig, ChatConfig, Config, ModelConfig
from lcursor.errors import LcursorError
from lcursor.llm.pool import ModelPool
from lcursor.process.sandbox import open_sandbox

FILES, STEPS, STOPS = 5000, 100, 20
STOP_FILES = 100
STEP_MS, STEP_P95_MS, TRUE_MS, IDLE_MS, GONE_MS = 10, 30, 90, 200, 500
WAIT_S = 60.0
MARK = f"bench-{os.getpid()}"
SLEEP = f"(setsid sh -c 'sleep 300 # {MARK}' &) ; sleep 300 # {MARK}"
DIALECT = Native("tags")
PROMISES = {
    "step_p50_ms": Promise("own time of a step, instant tool, p50, ms", at_most=STEP_MS),
    "step_p95_ms": Promise("the same, p95", at_most=STEP_P95_MS),
    "orphans": Promise("processes left by commands half a second after a stop", at_most=0),
}


def play(rows: list[Row], is_forced: bool) -> str:
    """Play the task."""
    kind, _, steps = rows[1][1].partition("\n")[0].partition(" ")
    number = sum(role == "assistant" for role, _ in rows)
    if number >= int(steps):
        return DIALECT.render(ToolCall("finish", {"summary": "done"}))
    if kind == "view":
        view = {"command": "view", "path": f"file{number}.py"}
        return DIALECT.render(ToolCall("str_replace_editor", view))
    command = {"true": f"true # {number}", "sleep": SLEEP}
    return (
        ENDLESS
        if kind == "endless"
        else DIALECT.render(ToolCall("bash", {"command": command[kind]}))
    )


class _Agents:
    """A service of agents."""

    def __init__(self, folder: Path, url: str) -> None:
        self._url, self._numbers, self._root = url, count(1), folder / "project"
        self._messages: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        server = ModelConfig(name="server", url=url)
        chat = ChatConfig(model="server", models=(server,), server="off")
        config = Config(chat=chat, agent=AgentConfig(max_steps=10_000))
        self._models, self._histories = ModelPool(chat), Histories(folder / "edits", self._fail)
        self._service = AgentService(
            config, lambda *message: self._messages.put(message),
            Assembly(config, self._models, self._record), folder=folder / "agents",
        )  # fmt: skip

    def close(self) -> None:
        self._service.close()
        self._models.close()

    def begin(self, task: str) -> int:
        """Start a run; return its number."""
        number, known = next(self._numbers), {"policy": "auto", "model": "", "context": ""}
        given = {"id": number, "task": task, "path": str(self._root), "buffers": [], **known}
        self._service.handlers()["agent.start"](given)
        return number

    def stop(self, number: int) -> None:
        """Stop a run."""
        self._service.handlers()["agent.stop"]({"id": number})

    def wait(self, method: str, **fields: Any) -> None:
        """Wait for a message."""
        while True:
            found, params = self._messages.get(timeout=WAIT_S)
            if found == method and fields.items() <= params.items():
                return
            if found in ("error", "agent.done"):
                raise LcursorError(f"{found}: {params['message']}")

    def spans(self) -> list[tuple[float, float]]:
        """Return when the server's answers began and ended."""
        with urllib.request.urlopen(f"{self._url}/spans") as reply:  # noqa: S310 - ours
            return [tuple(each) for each in json.load(reply)]

    def steps_ms(self, kind: str, steps: int) -> list[float]:
        """Run so many steps; return the time of each without that of the server."""
        before = len(self.spans())
        self.begin(f"{kind} {steps}")
        self.wait("agent.done", state="done")
        found = self.spans()[before:]
        return [(after[0] - one[1]) * 1000 for one, after in pairwise(found)][1:]

    def _record(self, root: Path, title: str, files: Any, bases: Any, run: str) -> str:
        return self._histories.begin(root, title, files, "", bases, run)

    def _fail(self, error: Exception) -> None:
        raise error


@contextmanager
def _agents(files: int) -> Iterator[_Agents]:
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-", ignore_cleanup_errors=True) as name:
        root = Path(name) / "project"
        (root / ".git").mkdir(parents=True)
        for number in range(files):
            folder = root / f"part{number // 200}" if number >= STEPS else root
            folder.mkdir(exist_ok=True)
            (folder / f"file{number}.py").write_text(f"def f{number}():\n    return {number}\n")
        os.environ["LCURSOR_DATA"] = f"{name}/data"
        with serving(play) as url:
            agents = _Agents(Path(name), url)
            try:
                yield agents
            finally:
                agents.close()


def _stops(report: Report, agents: _Agents, stops: int) -> None:
    idle, gone = list[float](), list[float]()
    report.numbers["orphans"] = 0
    for number in range(stops):
        measuring(f"stop {number + 1} of {stops}")
        before = len(agents.spans())
        run = agents.begin("endless 9")
        agents.wait("agent.delta", id=run)
        stopped_s = time.monotonic()
        agents.stop(run)
        agents.wait("agent.done", id=run)
        while len(spans := agents.spans()) == before:
            time.sleep(0.002)
        idle.append((spans[-1][1] - stopped_s) * 1000)
        run = agents.begin("sleep 9")
        end_s = time.monotonic() + WAIT_S
        while len(processes(MARK)) < 2:
            if time.monotonic() > end_s:
                raise LcursorError("the command did not start")
            time.sleep(0.01)
        stopped_s = time.perf_counter()
        agents.stop(run)
        while (left := processes(MARK)) and ms_since(stopped_s) < GONE_MS:
            time.sleep(0.002)
        gone.append(ms_since(stopped_s))
        report.numbers["orphans"] += len(left)
        agents.wait("agent.done", id=run)
    report.add("stop to idle server", idle, limit=IDLE_MS, judged="worst")
    report.add("stop to the end of a command's processes", gone, limit=GONE_MS, judged="worst")


def command(
    files: Annotated[int, typer.Option(help="Files of the project.")] = FILES,
    steps: Annotated[int, typer.Option(help="Steps of a run.")] = STEPS,
    stops: Annotated[int, typer.Option(help="Stops of each kind.")] = STOPS,
    as_json: Json = False,
) -> None:
    """Measure an agent's loop; exits with 1 when a promise is not kept."""
    level = open_sandbox().level
    report = Report(promises=PROMISES)
    with _agents(files) as agents:
        measuring("steps with an instant tool")
        own = report.add("own time of a step: view of a file", agents.steps_ms("view", steps))
        report.numbers |= {"step_p50_ms": own.p50, "step_p95_ms": own.p95}
        measuring("steps with a command and a checkpoint")
        samples = agents.steps_ms("true", steps)
        report.add("the same: `true`, sandbox, checkpoint", samples, limit=TRUE_MS, judged="p50")
    with _agents(STOP_FILES) as agents:
        _stops(report, agents, stops)
    report.finish(as_json, f"Project: {files:,} files; sandbox: {level}")
