"""Runs of a fake foreign agent: the real service, copy and sandbox, and a scripted model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lcursor.acp.client import catalog
from lcursor.acp.client.agents import ForeignAgentsOf
from lcursor.acp.client.catalog import KnownAgent
from lcursor.agent import runs
from lcursor.agent.assembly import Assembly
from lcursor.agent.run_log import RunLog
from lcursor.agent.service import AgentService
from lcursor.changes.histories import Histories
from lcursor.config import (
    AgentConfig,
    ChatConfig,
    Config,
    EditConfig,
    ForeignAgentConfig,
    ModelConfig,
)
from lcursor.llm.pool import ModelPool
from tests.fakes.chat_server import ChatServer, say
from tests.unit.agent.messages import Messages
from tests.waiting import wait_for

SCRIPT = Path(__file__).parents[2] / "fakes/acp_agent.py"
FAKE = KnownAgent(
    "fake",
    "Fake",
    (sys.executable, "-I", str(SCRIPT)),
    "pip install fake",
    tried="1.0",
    model_env={"MODEL_URL": "{url}"},
    asks=("default",),
    plans=("plan",),
)


class AgentRuns(Messages):
    """An editor whose runs a fake agent carries out."""

    def __init__(self, folder: Path, monkeypatch: Any, **options: Any) -> None:
        super().__init__(folder / "project")
        self.folder = folder / "agents"
        self.root.mkdir(exist_ok=True)
        (self.root / "a.py").write_text("x = 1\ny = 1\n")
        monkeypatch.setattr(catalog, "KNOWN", {"fake": FAKE})
        self.server = ChatServer(lambda _: say("from the model"), kind="openai")
        self.histories = Histories(folder / "edits", self._raise)
        self.open(**options)

    def open(
        self, fault: str = "", test: str = "", agent: AgentConfig | None = None, **env: str
    ) -> None:
        """Start a service, as a host does."""
        settings = ForeignAgentConfig("fake", env={"FAKE": fault, **env})
        model = ModelConfig(name="server", url=self.server.url)
        given = agent or AgentConfig()
        self.config = Config(
            chat=ChatConfig(model="server", models=(model,), server="off"),
            edit=EditConfig(test=test, check_seconds=5.0),
            agent=AgentConfig(
                model="fake",
                foreign=(settings,),
                policy=given.policy,
                max_steps=given.max_steps,
                forbid=given.forbid,
            ),
        )
        self.pool = ModelPool(self.config.chat)
        assembly = Assembly(
            self.config,
            self.pool,
            lambda root, title, files, bases, run: self.histories.begin(
                root, title, files, "", bases, run
            ),
            foreign=ForeignAgentsOf(self.config, self.pool),
        )
        self.service = AgentService(self.config, self.receive, assembly, folder=self.folder)

    def restart(self, **options: Any) -> None:
        """Start another service."""
        self.service.close()
        self.pool.close()
        self.open(**options)

    def close(self) -> None:
        self.service.close()
        self.pool.close()
        self.server.close()

    def finish(self, task: str, number: int = 1, policy: str = "") -> dict[str, Any]:
        """Start a run, and return its end."""
        self.start(number, task=task, policy=policy)
        return self.wait("agent.done", number)

    def go_on(self, said: str, number: int = 2) -> dict[str, Any]:
        """Continue the last run with a message, and return its end."""
        with runs.lock(self.run_folder):
            RunLog.open(self.run_folder).write("said", text=said)
        self.resume(number)
        return self.wait("agent.done", number)

    def wait_for_step(self, target: str, state: str = "running") -> None:
        """Wait for a step to be shown."""

        def is_shown() -> bool:
            rows = [row for name, row in list(self.messages) if name == "agent.step"]
            return any(target in row["target"] and row["state"] == state for row in rows)

        wait_for(is_shown, 30.0, f"step {target} {state}")

    @property
    def run_folder(self) -> Path:
        return runs.find(self.root, "last", self.folder)

    @property
    def log(self) -> RunLog:
        return RunLog.open(self.run_folder)

    def noted(self, name: str) -> list[Any]:
        """Return what the agent noted."""
        path = self.run_folder / "home/heard.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        return [value for key, value in rows if key == name]

    def steps(self) -> list[tuple[str, str, str]]:
        """Return kind, target and state of each step."""
        return [(each.kind, each.target, each.shown_state) for each in self.log.state.steps]

    def text_of(self, number: int) -> str:
        """Return the result of a step."""
        observation = self.log.state.steps[number - 1].observation
        assert observation
        return observation.text

    def hunks(self, done: dict[str, Any]) -> dict[str, str]:
        """Return the files as they are when all hunks are accepted."""
        found = dict[str, str]()
        for file in self.histories.proposed(done["turn"]) if done["turn"] else ():
            path = Path(file.path)
            lines = path.read_text().splitlines() if path.exists() else []
            for change in reversed(file.changes):
                lines[change.first_row : change.last_row] = change.new
            found[path.name] = "".join(f"{line}\n" for line in lines)
        return found

    def written(self) -> str:
        """Return what was shown as the agent's text."""
        return "".join(row["text"] for name, row in self.messages if name == "agent.delta")

    def _raise(self, error: Exception) -> None:
        raise error


def processes(mark: str) -> list[str]:
    """Return the processes that have a word in their command line or environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for name in ("cmdline", "environ"):
                if (
                    mark.encode() in Path("/proc", pid, name).read_bytes()
                    and int(pid) != os.getpid()
                ):
                    found.append(f"{pid} {Path('/proc', pid, 'cmdline').read_bytes()!r}")
        except OSError:
            continue
    return found


Make = Callable[..., AgentRuns]
