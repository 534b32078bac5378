"""A conversation with a foreign agent: it is opened or resumed, prompted, cancelled and closed.

Source: version 1 of the protocol, https://agentclientprotocol.com/protocol/. The client offers
neither its files nor terminals: the agent uses its own tools in the copy of the project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lcursor import __version__
from lcursor.acp.client.connection import Connection, Handle, Message
from lcursor.errors import AgentFailed, AgentRequestFailed

VERSION: Final = 1
CAPABILITIES: Final = {
    "fs": {"readTextFile": False, "writeTextFile": False},
    "terminal": False,
    "elicitation": {"form": {}},
}
OPEN_S: Final = 60.0
"""Time limit of each request before the first prompt; a busy machine needs half of it."""
LOAD_S: Final = 120.0
"""Time limit to load a session with its history."""
CANCEL_S: Final = 0.3
"""Time limit for the end of a turn that was cancelled; then the agent is killed."""
KEY: Final = "lcursor"
"""A key for agents that want one; the address is what is secret."""
NEEDS_LOGIN: Final = -32000


@dataclass(slots=True)
class Session:
    """A session of an agent. Thread: that of the run."""

    connection: Connection
    cwd: Path
    """Never changes: agents lose answers to permissions otherwise."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    modes: Sequence[str] = ()
    """Names of the modes that it has."""
    options: Sequence[str] = ()
    """Names of the other options that it has."""
    _option: str = ""
    """The option that sets the mode; "" if another request does."""

    def open(
        self,
        handle: Handle,
        known_id: str,
        servers: Sequence[Mapping[str, Any]],
        model_url: str,
    ) -> bool:
        """Open the session, or resume an earlier one; return whether the agent knows the latter.

        Args:
            handle: called with what comes, except for the history of an earlier session.
            known_id: of the earlier session; "" for none.
            servers: MCP servers for the agent.
            model_url: address of the user's model without the version, for an agent that lets its
                client choose; "" for none.

        Raises:
            AgentFailed: it cannot be opened.
        """
        about = {"name": "lcursor", "title": "lcursor", "version": __version__}
        found = self._call(
            "initialize",
            {
                "protocolVersion": VERSION,
                "clientCapabilities": CAPABILITIES,
                "clientInfo": about,
            },
            handle,
        )
        if found.get("protocolVersion") != VERSION:
            raise AgentFailed(
                f"the agent speaks version {found.get('protocolVersion')} of ACP, not {VERSION}"
            )
        self.capabilities = _table(found.get("agentCapabilities"))
        if model_url and "providers" in self.capabilities:
            self._set_provider(handle, model_url)
        where = {"cwd": str(self.cwd), "mcpServers": self._servers(servers)}
        if known_id and self._reopen(handle, known_id, where):
            return True
        opened = self._call("session/new", where, handle)
        self.id = str(opened.get("sessionId") or "")
        if not self.id:
            raise AgentFailed("the agent opened a session without an id")
        self._read_modes(opened)
        return False

    def set_mode(self, mode: str, handle: Handle) -> None:
        """Set the mode.

        Raises:
            AgentFailed: it cannot be set.
        """
        if self._option:
            self.set_option(self._option, mode, handle)
        else:
            self._call("session/set_mode", {"sessionId": self.id, "modeId": mode}, handle)

    def set_option(self, name: str, value: str, handle: Handle) -> None:
        """Set another option.

        Raises:
            AgentFailed: it cannot be set.
        """
        row = {"sessionId": self.id, "configId": name, "value": value}
        self._call("session/set_config_option", row, handle)

    def send_prompt(self, text: str) -> int:
        """Let the agent begin a turn; return what `wait_for_end` needs.

        Raises:
            AgentEnded: it has ended.
        """
        row = {"sessionId": self.id, "prompt": [{"type": "text", "text": text}]}
        return self.connection.send("session/prompt", row)

    def wait_for_end(self, number: int, handle: Handle, max_s: float) -> Mapping[str, Any]:
        """Wait for the end of a turn, and return its result.

        Raises:
            AgentFailed: it failed, or has ended.
        """
        return _table(self.connection.wait(number, "session/prompt", handle, max_s=max_s))

    def cancel(self) -> None:
        """Ask the agent to end its turn."""
        self.connection.notify("session/cancel", {"sessionId": self.id})

    # Parts of the above.

    def _call(
        self, method: str, params: Mapping[str, Any], handle: Handle, max_s: float = 0.0
    ) -> Mapping[str, Any]:
        try:
            return _table(self.connection.call(method, params, handle, max_s=max_s or OPEN_S))
        except AgentRequestFailed as error:
            if error.number == NEEDS_LOGIN:
                raise AgentFailed(
                    f"{error.message}",
                    "Let it use your model, or log in with it and set login = true in agents",
                ) from error
            raise

    def _set_provider(self, handle: Handle, url: str) -> None:
        """Let the agent use the user's model with each of its providers."""
        listed = self._call("providers/list", {}, handle).get("providers")
        for row in listed if isinstance(listed, list) else ():
            supported = row.get("supported") or [""]
            kind = str(supported[0])
            address = url if kind == "anthropic" else f"{url}/v1"
            given = {
                "providerId": row.get("providerId"),
                "apiType": kind,
                "baseUrl": address,
                "headers": {"authorization": f"Bearer {KEY}"},
            }
            self._call("providers/set", given, handle)

    def _servers(self, servers: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the MCP servers that the agent can connect to."""
        can = _table(self.capabilities.get("mcpCapabilities"))
        return [each for each in servers if "type" not in each or can.get(str(each["type"]))]

    def _reopen(self, handle: Handle, known_id: str, where: Mapping[str, Any]) -> bool:
        """Resume a session, or load it; its history is read and not shown again."""
        row = {"sessionId": known_id, **where}
        can_resume = "resume" in _table(self.capabilities.get("sessionCapabilities"))
        ways = [("session/resume", handle)] if can_resume else []
        ways += [("session/load", _unshown(handle))] if self.capabilities.get("loadSession") else []
        for method, listen in ways:
            try:
                opened = self._call(method, row, listen, LOAD_S)
            except AgentRequestFailed:  # it has forgotten the session, or cannot do this
                continue
            self.id = known_id
            self._read_modes(opened)
            return True
        return False

    def _read_modes(self, opened: Mapping[str, Any]) -> None:
        found = opened.get("configOptions")
        options = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
        self.options = [str(option.get("id")) for option in options]
        for option in options:
            if option.get("category") == "mode":
                self._option = str(option.get("id"))
                rows = option.get("options") or []
                grouped = [row for each in rows for row in each.get("options") or [each]]
                self.modes = _names(grouped, "value")
                return
        self.modes = _names(_table(opened.get("modes")).get("availableModes"), "id")


def _unshown(handle: Handle) -> Handle:
    """Return a listener that passes on all but updates."""

    def listen(message: Message | None) -> None:
        if message is None or message.method != "session/update":
            handle(message)

    return listen


def _names(rows: object, key: str) -> list[str]:
    found = rows if isinstance(rows, list) else []
    return [str(row[key]) for row in found if isinstance(row, dict) and key in row]


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
