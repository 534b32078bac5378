"""Servers for tests: a program that does what it is asked, in the real sandbox and helper."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.config import McpConfig
from lcursor.config_table import mcp_servers
from lcursor.mcp.client import launch
from lcursor.mcp.client.servers import ProjectServers, Servers
from lcursor.process.sandbox import open_sandbox
from tests.fakes import mcp_server

SCRIPT = Path(mcp_server.__file__)


def never() -> bool:
    return False


def fake(*behaviour: str, **settings: Any) -> dict[str, Any]:
    """Return the settings of the fake server."""
    readable = [str(SCRIPT), *settings.pop("readable", ())]
    command = [sys.executable, str(SCRIPT), *behaviour]
    return {"command": command, "readable": readable, **settings}


class World:
    """A project, its servers, and the user, who answers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.servers = Servers(McpConfig())
        self.project: ProjectServers

    def configure(self, mode: str = "auto", **table: Any) -> ProjectServers:
        """Start again with other settings; answers stay."""
        self.servers.close()
        self.servers = Servers(McpConfig(mcp_servers(table)), mode=mode)
        self.project = self.servers.of(self.root)
        return self.project

    def allow(self, *names: str) -> None:
        """Allow servers, then the tools that they show."""
        for name in names:
            row = self.project.show(name)
            for _ in range(2):
                row = self.project.decide(name, row["shown"], is_allowed=True)

    def states(self, name: str) -> dict[str, str]:
        """Return the states of the tools of a server."""
        return {each["name"]: each["state"] for each in self.project.show(name)["tools"]}

    def call(self, key: str, text: str) -> str:
        return self.project.call(key, {"text": text}, never)[0]

    def starts(self, name: str) -> int:
        """Return how often a server has started."""
        path = launch.folder_of(self.root, name) / "starts"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    if open_sandbox().level not in ("bubblewrap", "unshare"):
        pytest.skip("no sandbox with a network works here")
    pytest.importorskip("mcp")
    monkeypatch.setenv("LCURSOR_DATA", str(tmp_path / "data"))
    root = tmp_path / "project"
    root.mkdir()
    made = World(root)
    yield made
    made.servers.close()
