"""The messages about servers: lists them, shows one with its tools, stores answers about it.

Each request has a thread of its own, because a server may take a minute to start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lcursor.mcp.client import importing
from lcursor.mcp.client.servers import ProjectServers, Servers
from lcursor.project.root import root_of
from lcursor.protocol import mcp as wire
from lcursor.reporting import Notify, report_error


class McpService:
    """The servers of one editor.

    Args:
        send: sends a message, from any thread.
        servers: returns those of the present settings.
    """

    def __init__(self, send: Notify, servers: Callable[[], Servers]) -> None:
        self._send, self._servers = send, servers

    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Return the method for each message."""
        return {
            "mcp.list": self.list,
            "mcp.show": self.show,
            "mcp.decide": self.decide,
            "mcp.restart": self.restart,
            "mcp.import": self.read_others,
        }

    def list(self, params: wire.McpList) -> None:
        """List the servers."""
        self._answer(params, "mcp.listed", lambda servers: {"servers": servers.rows()})

    def show(self, params: wire.McpShow) -> None:
        """Show a server with its tools."""
        self._answer(
            params, "mcp.shown", lambda servers: {"server": servers.show(params["server"])}
        )

    def decide(self, params: wire.McpDecide) -> None:
        """Store the user's answer about a server."""
        name, shown, is_allowed = params["server"], params["shown"], params["is_allowed"]
        self._answer(
            params,
            "mcp.shown",
            lambda servers: {"server": servers.decide(name, shown, is_allowed=is_allowed)},
        )

    def restart(self, params: wire.McpRestart) -> None:
        """End a server, and start it again."""
        self._answer(
            params, "mcp.shown", lambda servers: {"server": servers.restart(params["server"])}
        )

    def read_others(self, params: wire.McpImport) -> None:
        """Show the servers of other programs."""
        root = root_of(Path(params["path"]))
        self._answer(params, "mcp.imported", lambda _: {"lines": importing.lua_text(root)})

    def _answer(
        self, params: Any, method: str, work: Callable[[ProjectServers], dict[str, Any]]
    ) -> None:
        def answer() -> None:
            try:
                servers = self._servers().of(root_of(Path(params["path"])))
                self._send(method, {"id": params["id"], **work(servers)})
            except Exception as error:  # noqa: BLE001 - the root of a request
                report_error(self._send, error, params["id"], "the request about a server failed")

        threading.Thread(target=answer, name="lcursor-mcp-request", daemon=True).start()
