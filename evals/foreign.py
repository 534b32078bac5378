"""`python -m lcursor eval foreign`: agents of others in twelve situations, with a scripted model.

The agents are real, in the sandbox and the copy; only the model is scripted, on the loopback
interface, so that no account is needed. After each run: the hunks are those of the copy's
difference, no process is left, and the user's files are as before.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from evals.scripted_api import ENDLESS, MODEL, Action, Script, serving
from lcursor.acp.client import catalog
from lcursor.acp.client.agents import ForeignAgentsOf
from lcursor.agent import runs
from lcursor.agent.assembly import Assembly
from lcursor.agent.run_log import RunLog
from lcursor.agent.service import AgentService
from lcursor.changes.histories import Histories
from lcursor.config import AgentConfig, ChatConfig, Config, ForeignAgentConfig, ModelConfig
from lcursor.llm.pool import ModelPool
from lcursor.workspace.tree import Tree

FILES: Final = {"a.py": "x = 1\ny = 1\n", "Makefile": ""}
RUN_S: Final = 240.0
CANCEL_S: Final = 1.0
SITUATIONS: Final = (
    "answer", "edit", "two", "command", "allow", "reject", "cancel", "question", "plan", "crash",
    "resume", "network",
)  # fmt: skip


NOT_OFFERED: Final = {("opencode", "question"): "it has no questions over ACP"}
"""What an agent cannot do in the version that was tried."""


class Problem(Exception):
    """A situation did not go as meant."""


@dataclass
class World:
    """A project, a service and a scripted model."""

    name: str
    command: Sequence[str]
    readable: Sequence[str]
    folder: Path
    url: str
    script: Script
    messages: queue.SimpleQueue[tuple[str, Mapping[str, Any]]] = field(
        default_factory=queue.SimpleQueue
    )
    seen: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.root = self.folder / "project"
        self.root.mkdir()
        for name, text in FILES.items():
            (self.root / name).write_text(text)
        self.histories = Histories(self.folder / "edits", self._raise)

    @contextlib.contextmanager
    def service(self, policy: Any = "auto") -> Iterator[AgentService]:
        """Run a service, as a host does."""
        server = ModelConfig(name="server", url=self.url, model=MODEL, api="openai")
        config = Config(
            chat=ChatConfig(model="server", models=(server,), server="off"),
            agent=AgentConfig(
                policy=policy,
                model=self.name,
                readable=tuple(self.readable),
                foreign=(ForeignAgentConfig(self.name, command=tuple(self.command)),),
            ),
        )
        pool = ModelPool(config.chat)
        foreign = ForeignAgentsOf(config, pool)
        assembly = Assembly(config, pool, self._record, foreign=foreign)
        folder = self.folder / "agents"
        service = AgentService(config, self._receive, assembly, folder=folder)
        try:
            yield service
        finally:
            service.close()
            pool.close()

    def start(self, service: AgentService, situation: str, policy: str = "") -> None:
        """Start a run."""
        self.number += 1
        row = {"id": self.number, "task": f"SITUATION {situation}", "path": str(self.root)}
        row |= {"policy": policy, "model": "", "context": "", "buffers": []}
        service.handlers()["agent.start"](row)

    def resume(self, service: AgentService, situation: str) -> None:
        """Continue the last run with a message."""
        self.number += 1
        row = {"id": self.number, "run": "last", "path": str(self.root), "continues": True}
        row |= {"text": f"SITUATION {situation}", "seen": 0}
        service.handlers()["agent.resume"](row)

    def wait(
        self, method: str, accept: Callable[[Mapping[str, Any]], bool] = lambda _: True
    ) -> Mapping[str, Any]:
        """Wait for a message.

        Raises:
            Problem: the run ended before, or took too long.
        """
        end_s = time.monotonic() + RUN_S
        while time.monotonic() < end_s:
            with contextlib.suppress(queue.Empty):
                name, params = self.messages.get(timeout=0.5)
                self.seen.append((name, params))
                if name == method and accept(params):
                    return params
                if name == "agent.done":
                    raise Problem(f"ended as {params['state']}: {params['message'][-300:]}")
        raise Problem(f"no {method} in {RUN_S:.0f} s")

    def done(self, state: str = "done") -> Mapping[str, Any]:
        """Wait for the end of a run.

        Raises:
            Problem: it has another state.
        """
        found = self.wait("agent.done")
        if found["state"] != state:
            raise Problem(f"ended as {found['state']}, not {state}: {found['message'][-300:]}")
        return found

    @property
    def run_folder(self) -> Path:
        """The folder of the newest run."""
        return runs.find(self.root, "last", self.folder / "agents")

    def changes(self, done: Mapping[str, Any]) -> dict[str, str]:
        """Return the changed files with all hunks accepted."""
        found = dict[str, str]()
        for file in self.histories.proposed(done["turn"]) if done["turn"] else ():
            path = Path(file.path)
            lines = path.read_text().splitlines() if path.exists() else []
            for change in reversed(file.changes):
                lines[change.first_row : change.last_row] = change.new
            found[path.name] = "".join(f"{line}\n" for line in lines)
        return found

    def check_end(self, done: Mapping[str, Any]) -> None:
        """Check what must hold after each run.

        Raises:
            Problem: hunks differ from the copy's difference, or something is left.
        """
        tree = Tree.open(self.root, self.run_folder)
        in_copy = {
            each.path: (tree.path / each.path).read_text()
            for each in tree.changed()
            if each.kind != "delete"
        }
        if self.changes(done) != in_copy:
            raise Problem(f"hunks {self.changes(done)}, but the copy has {in_copy}")
        if {name: (self.root / name).read_text() for name in FILES} != FILES:
            raise Problem("the user's files have changed")
        if left := processes(str(self.folder)):
            raise Problem(f"processes are left: {left}")

    def _receive(self, method: str, params: Any) -> None:
        self.messages.put((method, dict(params)))

    def _record(self, root: Path, title: str, files: Any, bases: Any, run: str) -> str:
        return self.histories.begin(root, title, files, "", bases, run)

    def _raise(self, error: Exception) -> None:
        raise error


def processes(mark: str) -> list[str]:
    """Return the command lines of other processes whose environment has a word."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (entry / "environ").read_bytes()
            if mark.encode() in environment and int(entry.name) != os.getpid():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:80])
    return found


# Situations.


def actions(root: Path, port: int) -> dict[str, Sequence[Action]]:
    """Return what the model does in each situation."""
    options = [{"label": "Small", "description": "s"}, {"label": "Large", "description": "l"}]
    question = {
        "id": "size", "question": "Which size?", "header": "Size", "options": options,
        "multiSelect": False,
    }  # fmt: skip
    asked = {"command": "touch made", "sandbox_permissions": "require_escalated",
             "justification": "May I?"}  # fmt: skip
    connect = f"cat < /dev/tcp/127.0.0.1/{port} && touch reached; true"
    return {
        "edit": [
            ("read", {"path": f"{root}/a.py"}),
            ("edit", {"path": f"{root}/a.py", "old": "x = 1", "new": "x = 2"}),
        ],
        "two": [
            ("write", {"path": f"{root}/b.py", "text": "b = 1\n"}),
            ("write", {"path": f"{root}/c.py", "text": "c = 1\n"}),
        ],
        "command": [("command", {"command": f"ls {Path.home()}/.ssh; echo hi > made"})],
        "allow": [("command", asked)],
        "reject": [("command", asked)],
        "question": [("question", {"questions": [question]})],
        "crash": [
            ("write", {"path": f"{root}/b.py", "text": "b = 1\n"}),
            ("command", {"command": "kill -9 -1; sleep 60"}),
        ],
        "resume": [("write", {"path": f"{root}/b.py", "text": "b = 1\n"})],
        "network": [("command", {"command": f"bash -c '{connect}'"})],
    }


def play(world: World, situation: str) -> str:
    """Let an agent go through a situation; return what is remarkable.

    Raises:
        Problem: it did not go as meant.
    """
    policy = "ask" if situation in ("allow", "reject") else "auto"
    if situation == "plan":
        return _approve(world)
    with world.service(policy) as service:
        world.start(service, ENDLESS if situation == "cancel" else situation)
        if situation in ("allow", "reject"):
            return _decide(world, service, situation)
        if situation == "question":
            return _answer(world, service)
        if situation == "cancel":
            wait_until(lambda: any(each.situation == ENDLESS for each in world.script.asked))
            began_s = time.monotonic()
            service.handlers()["agent.stop"]({"id": world.number})
            world.done("stopped")
            took_s = time.monotonic() - began_s
            if took_s > CANCEL_S:
                raise Problem(f"idle {took_s:.2f} s after the stop")
            return f"{took_s:.2f} s"
        found = world.wait("agent.done") if situation == "crash" else world.done()
        world.check_end(found)
        return _check(world, situation, found)


def _check(world: World, situation: str, found: Mapping[str, Any]) -> str:
    changes, remark = world.changes(found), ""
    wanted: dict[str, dict[str, str]] = {
        "answer": {}, "edit": {"a.py": "x = 2\ny = 1\n"}, "network": {},
        "two": {"b.py": "b = 1\n", "c.py": "c = 1\n"}, "command": {"made": "hi\n"},
        "crash": {"b.py": "b = 1\n"}, "resume": {"b.py": "b = 1\n"},
    }  # fmt: skip
    if changes != wanted[situation]:
        raise Problem(f"hunks: {changes}")
    if situation == "answer" and "Done with answer." not in found["message"]:
        raise Problem(f"answered {found['message']!r}")
    if situation == "crash":
        remark = f"ended as {found['state']}"
    if situation == "resume":
        session = RunLog.open(world.run_folder).state.talk["session"]
        with world.service() as other:
            world.resume(other, "edit")
            again = world.done()
            world.check_end(again)
        if world.changes(again) != {"b.py": "b = 1\n", "a.py": "x = 2\ny = 1\n"}:
            raise Problem(f"hunks after it was continued: {world.changes(again)}")
        is_same = RunLog.open(world.run_folder).state.talk["session"] == session
        rows = world.script.asked[-1].rows
        if not is_same or not any("SITUATION resume" in text for _, text in rows):
            raise Problem("it was continued without its conversation")
    return remark


def _decide(world: World, service: AgentService, situation: str) -> str:
    """Answer a permission, and check what follows."""
    ask = world.wait("agent.asks")
    choice = "once" if situation == "allow" else "reject"
    row = {"id": world.number, "ask": ask["ask"], "choice": choice, "text": ""}
    service.handlers()["agent.decide"](row)
    found = world.wait("agent.done")
    world.check_end(found)
    if ("made" in world.changes(found)) != (situation == "allow"):
        raise Problem(f"after {choice}: {world.changes(found)}")
    return f"ended as {found['state']}" if found["state"] != "done" else "as asked"


def _answer(world: World, service: AgentService) -> str:
    """Answer a question."""
    planned = world.wait("agent.planned")
    lines = [
        f"{line.partition(':')[0]}: Small" if "Small" in line else line
        for line in planned["text"].splitlines()
    ]
    row = {"id": world.number, "text": "\n".join(lines)}
    service.handlers()["agent.approve_plan"](row)
    world.check_end(world.done())
    results = [text for role, text in world.script.asked[-1].rows if role == "tool"]
    if not any("Small" in text for text in results):
        raise Problem(f"the model read {results[-1:]}")
    return "as a form"


def _approve(world: World) -> str:
    """Approve a plan, and check what follows."""
    with world.service() as service:
        world.start(service, "answer", "plan")
        planned = world.wait("agent.planned")
        if "Done with answer." not in planned["text"]:
            raise Problem(f"planned {planned['text']!r}")
        row = {"id": world.number, "text": "SITUATION edit"}
        service.handlers()["agent.approve_plan"](row)
        found = world.done()
    world.check_end(found)
    if world.changes(found) != {"a.py": "x = 2\ny = 1\n"}:
        raise Problem(f"hunks: {world.changes(found)}")
    return "approved"


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something holds.

    Raises:
        Problem: it took too long.
    """
    end_s = time.monotonic() + RUN_S
    while not condition():
        if time.monotonic() > end_s:
            raise Problem(f"nothing happened in {RUN_S:.0f} s")
        time.sleep(0.05)


# The command.


def commands_of(packages: Path, node: str) -> dict[str, list[str]]:
    """Return the commands of the agents that a folder of npm packages has."""
    found = dict[str, list[str]]()
    modules = packages / "node_modules"
    binary = modules / "opencode-linux-x64/bin/opencode"
    if binary.exists():
        found["opencode"] = [str(binary), "acp"]
    scoped = {
        "claude-code": "@agentclientprotocol/claude-agent-acp",
              "codex": "@agentclientprotocol/codex-acp",
              "qwen-code": "@qwen-code/qwen-code"}  # fmt: skip
    for name, package in scoped.items():
        about = modules / package / "package.json"
        if about.exists():
            program = json.loads(about.read_text())["bin"]
            path = program if isinstance(program, str) else next(iter(program.values()))
            more = catalog.KNOWN[name].command[1:]
            found[name] = [node, str((about.parent / path).resolve()), *more]
    return found


def command(
    packages: Annotated[
        Path | None, typer.Option(help="Folder in which npm installed the agents.")
    ] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Only these. Repeatable.")] = None,
    situation: Annotated[list[str] | None, typer.Option(help="Only these. Repeatable.")] = None,
    node: Annotated[str, typer.Option(help="Program of Node.js.")] = "node",
    keep: Annotated[bool, typer.Option(help="Keep the folders of failed runs.")] = False,
) -> None:
    """Let agents of others work in twelve situations, with a scripted model."""
    install = " ".join(each.install.split()[-1] for each in catalog.AGENTS)
    if packages is None or not (packages / "node_modules").is_dir():
        typer.echo(f"No packages. In an empty folder: npm install {install}", err=True)
        typer.echo("Then: python -m lcursor eval foreign --packages FOLDER", err=True)
        raise typer.Exit(2)
    commands = commands_of(packages, shutil.which(node) or node)
    failed = 0
    for name in agent or sorted(catalog.KNOWN):
        if name not in commands:
            typer.echo(f"{name}: not installed: {catalog.KNOWN[name].install}")
            continue
        for each in situation or SITUATIONS:
            if (name, each) in NOT_OFFERED:
                typer.echo(f"{name:11} {each:9}     -    {NOT_OFFERED[name, each]}")
                continue
            began_s = time.monotonic()
            result = attempt(name, commands[name], packages, each, keep=keep)
            failed += result.startswith("FAILED")
            took_s = time.monotonic() - began_s
            typer.echo(f"{name:11} {each:9} {took_s:6.1f} s  {result or 'passed'}")
    raise typer.Exit(1 if failed else 0)


def attempt(
    name: str, words: Sequence[str], packages: Path, situation: str, *, keep: bool = False
) -> str:
    """Let an agent go through a situation; return a remark, or why it failed."""
    import socket

    folder = Path(tempfile.mkdtemp(prefix="lcursor-foreign-"))
    other = socket.create_server(("127.0.0.1", 0))
    script = Script(actions(folder / "project", other.getsockname()[1]))
    try:
        with other, serving(script) as url:
            world = World(name, words, [str(packages / "node_modules")], folder, url, script)
            return play(world, situation)
    except Problem as problem:
        if keep:
            return f"FAILED: {problem} ({folder})"
        return f"FAILED: {problem}"
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
