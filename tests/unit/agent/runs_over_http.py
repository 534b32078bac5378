"""Runs with everything real but the model's answers, for the tests of the loop over HTTP."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from lcursor.agent import runs
from lcursor.agent.assembly import Assembly, ServersOf
from lcursor.agent.dialects.native import Native
from lcursor.agent.records import ToolCall
from lcursor.agent.run_log import NOT_RUN, RunLog, RunState
from lcursor.agent.service import AgentService
from lcursor.agent.tools.table import has_effect
from lcursor.changes.histories import Histories
from lcursor.config import AgentConfig, ChatConfig, Config, EditConfig, ModelConfig
from lcursor.llm.pool import ModelPool
from tests.fakes.script_server import END, Entry, ScriptServer
from tests.unit.agent.messages import Messages

log = logging.getLogger(__name__)
MODEL = "qwen3-coder-30b-a3b"
FILES = {"a.py": "x = 1\n", "b.py": "def f():\n    return 2\n"}
DIALECT = Native("tags")


def call(tool: str, **arguments: Any) -> str:
    """Return an answer that calls a tool."""
    return DIALECT.render(ToolCall(tool, arguments))


def view(path: str = "a.py") -> str:
    return call("str_replace_editor", command="view", path=path)


def replace(old: str = "1", new: str = "2", path: str = "a.py") -> str:
    arguments = {"command": "str_replace", "path": path, "old_str": old, "new_str": new}
    return call("str_replace_editor", **arguments)


def bash(command: str, **more: Any) -> str:
    return call("bash", command=command, **more)


def finish(summary: str = "done") -> str:
    return call("finish", summary=summary)


Make = Callable[..., "Session"]


class Session(Messages):
    """A service of agents with a scripted server, for one project."""

    def __init__(
        self,
        place: Path,
        script: Sequence[Entry] | Callable[[str], Entry],
        *,
        test: str = "",
        agent: AgentConfig | None = None,
        server: ScriptServer | None = None,
        api: str = "auto",
        servers_of: ServersOf = lambda _: None,
        **options: Any,
    ) -> None:
        super().__init__(place / "project")
        self.folder, self.servers_of = place / "agents", servers_of
        self.root.mkdir(exist_ok=True)
        for name, text in FILES.items():
            (self.root / name).write_text(text)
        self.server = server or ScriptServer(script, **options)
        self.server.model = MODEL
        url = ModelConfig(name="server", url=self.server.url, api=api)
        self.config = Config(
            chat=ChatConfig(model="server", models=(url,), server="off"),
            edit=EditConfig(test=test, check_seconds=2.0),
            agent=agent or AgentConfig(),
        )
        self.histories = Histories(place / "edits", self._raise)
        self.open()

    def open(self) -> None:
        """Start a service, as a host does."""
        self.pool = ModelPool(self.config.chat)
        assembly = Assembly(
            self.config,
            self.pool,
            lambda root, title, files, bases, run: self.histories.begin(
                root, title, files, "", bases, run
            ),
            servers_of=self.servers_of,
        )
        self.service = AgentService(self.config, self.receive, assembly, folder=self.folder)

    def close(self) -> None:
        self.service.close()
        self.pool.close()
        self.server.close()

    def finish(self, number: int = 1, policy: str = "") -> dict[str, Any]:
        """Start a run, and return its end."""
        self.start(number, policy=policy)
        done = self.wait("agent.done", number)
        log.warning("%(state)s: %(message)s", done)  # pytest shows it if the test fails
        return done

    @property
    def run_folder(self) -> Path:
        return runs.find(self.root, "last", self.folder)

    @property
    def log(self) -> RunLog:
        return RunLog.open(self.run_folder)

    def files(self) -> dict[str, str]:
        """Return the files of the agent's copy."""
        tree = self.run_folder / "tree"
        return {each.name: each.read_text() for each in tree.iterdir() if each.is_file()}

    def texts(self) -> list[str]:
        """Return what the model read as results."""
        return [step.observation.text for step in self.log.state.steps if step.observation]

    def _raise(self, error: Exception) -> None:
        raise error


def check_log(folder: Path) -> None:
    """Check the order of the operations in the log of a run that has ended."""
    ops = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
    assert [ops[0]["op"], ops[-1]["op"]] == ["start", "done"]
    begun, ended, state = set[int](), set[int](), RunState()
    for op in ops:
        assert not state.is_over or op["op"] == "resume"
        state.apply(op)
        step = state.steps[op["step"] - 1] if op["op"] in ("begin", "end") else None
        if op["op"] == "begin":
            assert step
            assert step.number not in begun | ended
            assert not step.decision or step.decision == "allow"
            begun.add(step.number)
        elif op["op"] == "end":
            assert step
            assert step.number not in ended
            has_run = op["observation"]["result"] not in NOT_RUN
            assert not (has_effect(step.call) and has_run) or step.number in begun
            ended.add(step.number)
    assert len(ended) == len(state.steps)


def check_prompts(server: ScriptServer, rewrites: int = 0) -> None:
    """Check that each prompt continues the one before, but for some that begin again.

    As integers: only tokens that the server has not seen are new.
    """
    breaks = 0
    for before, after in pairwise(server.ids):
        if after[: len(before)] != before:
            breaks += 1
    assert breaks == rewrites
    for ids in server.ids:  # no file or output ends a message
        assert ids.count(END) == sum(1 for token in ids if token == 1) - 1
