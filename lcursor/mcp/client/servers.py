"""The servers of a host: which of them may run for a project, their tools, and calls of these.

    servers = Servers(config.mcp)
    servers.of(root).find("commits of a branch", cancel)  # at most five tools, as text
    servers.of(root).call("git__git_log", {"repo_path": "."}, cancel)

Nothing starts before the user has allowed it for the project. A server starts with its first use,
and again after it has ended. Blocks; on any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from lcursor.config import SERVER_SEPARATOR, McpConfig
from lcursor.context.servers import AskUser
from lcursor.errors import Cancelled, LcursorError, McpFailed
from lcursor.index.client import Client
from lcursor.mcp.client import forms, launch, policy
from lcursor.mcp.client.consent import Consent
from lcursor.mcp.client.process import Event, HelperProcess, Question
from lcursor.mcp.client.ranking import rank, text_of
from lcursor.mcp.client.records import ServerTool, one_line, tool_of
from lcursor.mcp.client.similar import similarities
from lcursor.mcp.client.status import ServerStatus
from lcursor.process.run import Cancel
from lcursor.project import redaction
from lcursor.protocol.mcp import McpServer, McpState, McpTool
from lcursor.workspace.approval import AnswerState

OPEN_S: Final = 60.0
"""Time limit for a server to start: it may have to be fetched."""
FIND_S: Final = 8.0
"""How long a search waits for servers that start while others are ready."""
CALL_S: Final = 120.0
MAX_FOUND: Final = 5
MAX_NAMED: Final = 10
"""Further tools of which a search names only the names."""
SEEN_FIRST: Final = "the user has not allowed this; it is in :LCursor mcp"


class Servers:
    """All servers of a host, by project.

    Args:
        index_of: returns the index of a project, which compares words in meaning; None for none.
        mode: see `connection.Connection`.
    """

    def __init__(
        self,
        config: McpConfig,
        *,
        folder: Path | None = None,
        index_of: Callable[[Path], Client | None] = lambda _: None,
        mode: str = "auto",
    ) -> None:
        self.config, self.mode = config, mode
        self._folder, self.index_of = folder, index_of
        self.helper = HelperProcess(self._on_event)
        self._lock = threading.Lock()
        self._projects: dict[Path, ProjectServers] = {}

    def of(self, root: Path) -> ProjectServers:
        """Return the servers of a project."""
        with self._lock:
            if root not in self._projects:
                self._projects[root] = ProjectServers(self, root, Consent(root, self._folder))
            return self._projects[root]

    def close(self) -> None:
        """End all servers."""
        self.helper.close()

    def _on_event(self, event: Event) -> None:
        """Handle an event of the helper. Thread: its reader's."""
        for project in [*self._projects.values()]:
            project.mark_changed(str(event["server"]))


class ProjectServers:
    """The servers of a project."""

    def __init__(self, owner: Servers, root: Path, consent: Consent) -> None:
        self._owner, self._root, self._consent = owner, root, consent
        self._servers: dict[str, ServerStatus] = {}
        for each in owner.config.servers:
            problem = policy.problem(each)
            self._servers[each.name] = ServerStatus(each, problem, is_broken=bool(problem))
        self._changed = threading.Condition()

    # For agents.

    def notes(self) -> list[str]:
        """Return which servers cannot be used before the user has done something."""
        notes = []
        for name in self._servers:
            state = self._state(name)
            if state in ("none", "changed"):
                why = "is new" if state == "none" else "has changed"
                notes.append(f"The MCP server {name} {why}: allow it with :LCursor mcp")
        return notes

    def find(self, words: str, cancel: Cancel) -> tuple[str, Mapping[str, Mapping[str, Any]]]:
        """Return the tools that fit some words, one a line, and the schemas of their arguments.

        Raises:
            Cancelled: `cancel` returned true.
        """
        self._connect_all(cancel)
        usable = [tool for name in self._servers for tool in self._usable(name)]
        index = self._owner.index_of(self._root)
        similar = similarities(index, words, [*map(text_of, usable)])
        found = rank(usable, words, MAX_FOUND + MAX_NAMED, similar)
        if len(usable) <= MAX_FOUND:  # so few that words need not choose
            found = [*found, *(each for each in usable if each not in found)]
        lines = [f"{each.signature} — {each.summary}" for each in found[:MAX_FOUND]]
        if others := ", ".join(each.key for each in found[MAX_FOUND:]):
            lines.append(f"Also: {others}")
        if not lines:
            lines = [f"No tool of {len(usable)} fits these words."]
        schemas = {each.key: each.schema for each in found}
        return "\n".join([*lines, *self._remarks()]), schemas

    def call(
        self,
        key: str,
        arguments: Mapping[str, Any],
        cancel: Cancel,
        ask: AskUser | None = None,
    ) -> tuple[str, bool]:
        """Call a tool; return the text of its result, and whether it failed.

        Args:
            ask: asks the user what the server wants to know; None declines.

        Raises:
            McpFailed: it could not be called.
            Cancelled: `cancel` returned true.
        """
        tool = self.tool(key, cancel)
        question = partial(forms.ask_user, ask, tool.server) if ask else None
        result = self.request(
            tool.server, "call", CALL_S, cancel, question, tool=tool.name, arguments=dict(arguments)
        )
        return redaction.redact(str(result["text"]))[0], bool(result["is_error"])

    def risk(self, key: str) -> str:
        """Return why a call needs approval; "" if it has no effect outside of the sandbox."""
        name = key.partition(SERVER_SEPARATOR)[0]
        status = self._servers.get(name)
        return policy.risk(status.settings) if status else f"there is no server {name}"

    def content(self, key: str) -> str:
        """Return an id of a tool as it is now; "" if it is unknown."""
        name, _, tool = key.partition(SERVER_SEPARATOR)
        status = self._servers.get(name)
        known = status.tools.get(tool) if status else None
        return known.digest if known else ""

    def tool(self, key: str, cancel: Cancel) -> ServerTool:
        """Return a tool that may be called.

        Raises:
            McpFailed: there is none.
            Cancelled: `cancel` returned true.
        """
        name, _, wanted = key.partition(SERVER_SEPARATOR)
        if name not in self._servers:
            raise McpFailed(f"there is no server {one_line(name)}; use mcp_find")
        status = self.connected(name, cancel)
        tool = status.tools.get(wanted)
        if tool is None:
            why = status.unusable.get(wanted)
            raise McpFailed(f"{name} has no tool {one_line(wanted)}" + (f": {why}" if why else ""))
        if self._consent.tool_state(tool) != "approved":
            raise McpFailed(f"{key}: {SEEN_FIRST}")
        return tool

    # For agents and chats.

    def names(self) -> list[str]:
        """Return the names of the servers that the user has allowed."""
        return [name for name in self._servers if self._state(name) == "approved"]

    def has(self, name: str) -> bool:
        """Return whether there is a server of this name."""
        return name in self._servers

    def start(self) -> None:
        """Start the allowed servers that have not run yet, in the background."""
        for name, status in self._servers.items():
            is_new = not (status.is_starting or status.problem or self._is_ready(name))
            if is_new and self._state(name) == "approved":
                status.is_starting = True
                threading.Thread(
                    target=self.show, args=(name,), name="lcursor-mcp-start", daemon=True
                ).start()

    def running(self) -> list[tuple[str, ServerStatus]]:
        """Return the servers that run and are allowed, with their names."""
        return [
            (name, status)
            for name, status in self._servers.items()
            if self._is_ready(name) and self._state(name) == "approved"
        ]

    def connected(self, name: str, cancel: Cancel) -> ServerStatus:
        """Return a server that the user has allowed; starts it unless it runs.

        Raises:
            McpFailed: there is none, or it cannot be used.
            Cancelled: `cancel` returned true.
        """
        status = self._known(name)
        self._check_allowed(name)
        self._connect(name, cancel)
        return status

    # For the list of servers.

    def rows(self) -> list[McpServer]:
        """Return all servers, without starting any."""
        return [self._row(name) for name in self._servers]

    def show(self, name: str, cancel: Cancel = lambda: False) -> McpServer:
        """Return a server with its tools; starts it if it is allowed.

        Raises:
            McpFailed: there is none.
        """
        self._known(name)
        if self._state(name) == "approved":
            with contextlib.suppress(LcursorError):  # the row says why
                self._connect(name, cancel)
        return self._row(name)

    def decide(self, name: str, shown: str, *, is_allowed: bool) -> McpServer:
        """Store the user's answer about a server and its tools, as they were shown.

        Raises:
            McpFailed: something has changed since, or there is no such server.
            LcursorError: it cannot be stored.
        """
        status = self._known(name)
        if status.is_broken:
            raise McpFailed(status.problem)
        if shown != self._row(name)["shown"]:
            raise McpFailed(f"{name} has changed since it was shown; look again")
        tools = [*status.tools.values()]
        self._consent.remember(name, is_allowed=is_allowed, policy=self._policy(name), tools=tools)
        if not is_allowed:
            self.stop(name)
        return self.show(name) if is_allowed else self._row(name)

    def restart(self, name: str) -> McpServer:
        """End a server and start it again."""
        self._known(name)
        self.stop(name)
        return self.show(name)

    def stop(self, name: str) -> None:
        """End a server."""
        status = self._servers[name]
        with status.lock:
            if status.is_ready or status.problem:
                with contextlib.suppress(LcursorError):
                    self._owner.helper.request("close", 1.0, server=self._connection(name))
            status.is_ready, status.problem, status.tools = False, "", {}
            status.resources, status.prompts = [], []

    def mark_changed(self, connection: str) -> None:
        """Note that a server has other tools now."""
        for name, status in self._servers.items():
            if self._connection(name) == connection:
                status.is_stale = True

    # Parts of the above.

    def _connect_all(self, cancel: Cancel) -> None:
        """Start the allowed servers that do not run, and wait a moment for them."""
        names = self.names()

        def connect(name: str) -> None:
            with contextlib.suppress(LcursorError):  # `_remarks` says why
                self._connect(name, cancel)
            with self._changed:
                self._changed.notify_all()

        waiting = [
            threading.Thread(target=connect, args=(name,), name="lcursor-mcp-start", daemon=True)
            for name in names
            if not self._is_ready(name) or self._servers[name].is_stale
        ]
        for each in waiting:
            each.start()
        begun_s = time.monotonic()
        while any(each.is_alive() for each in waiting):
            has_some = any(self._is_ready(name) for name in names)
            if has_some and time.monotonic() > begun_s + FIND_S:
                return
            if cancel():
                raise Cancelled("the search was stopped")
            with self._changed:
                self._changed.wait(0.05)

    def _connect(self, name: str, cancel: Cancel) -> None:
        """Start a server unless it runs, and list its tools.

        Raises:
            McpFailed: it cannot be started.
            Cancelled: `cancel` returned true.
        """
        status = self._servers[name]
        while not status.lock.acquire(timeout=0.05):
            if cancel():
                raise Cancelled("the call was stopped")
        try:
            if self._is_ready(name) and not status.is_stale:
                return
            if status.is_broken:
                raise McpFailed(status.problem)
            status.is_starting = True
            self._list(name, "list" if self._is_ready(name) else "open", cancel)
        finally:
            status.is_starting = False
            status.lock.release()

    def _list(self, name: str, op: str, cancel: Cancel) -> None:
        status = self._servers[name]
        status.is_stale = False
        settings = launch.settings_of(status.settings, self._root)
        try:
            offer = self._owner.helper.request(
                op,
                OPEN_S,
                cancel,
                server=self._connection(name),
                settings=settings,
                mode=self._owner.mode,
            )
            tools = [tool_of(name, row) for row in offer["tools"]]
        except (LcursorError, ValueError, KeyError) as error:
            status.is_ready = False
            if isinstance(error, Cancelled):
                raise
            status.problem = one_line(str(error), 500)
            raise McpFailed(f"{name}: {status.problem}") from error
        status.starts = self._owner.helper.starts
        status.tools = {each.name: each for each in tools}
        status.resources, status.prompts = offer["resources"], offer["prompts"]
        status.unusable = {str(key): str(why) for key, why in offer["problems"].items()}
        status.revision, status.problem, status.is_ready = str(offer["revision"]), "", True

    def request(
        self,
        name: str,
        op: str,
        max_s: float,
        cancel: Cancel,
        question: Question | None = None,
        **fields: Any,
    ) -> Mapping[str, Any]:
        """Return a server's answer to a request of the helper; see `HelperProcess.request`."""
        status = self._servers[name]
        try:
            found: Mapping[str, Any] = self._owner.helper.request(
                op, max_s, cancel, question, server=self._connection(name), **fields
            )
        except McpFailed as error:
            if "has ended" in error.message or "is not connected" in error.message:
                status.is_ready, status.problem = False, error.message
            raise McpFailed(f"{name}: {error.message}") from error
        return found

    def _check_allowed(self, name: str) -> None:
        state = self._state(name)
        if state == "rejected":
            raise McpFailed(f"{name}: the user has forbidden this server")
        if state != "approved":
            raise McpFailed(f"{name}: {SEEN_FIRST}")

    def _state(self, name: str) -> AnswerState:
        return self._consent.server_state(name, self._policy(name))

    def _policy(self, name: str) -> list[str]:
        return policy.describe(self._servers[name].settings, self._root)

    def _is_ready(self, name: str) -> bool:
        """Return whether a server runs: the helper that it belongs to may have ended."""
        status, helper = self._servers[name], self._owner.helper
        return status.is_ready and status.starts == helper.starts and helper.is_running()

    def _usable(self, name: str) -> Iterator[ServerTool]:
        if self._state(name) == "approved" and self._is_ready(name):
            for tool in self._servers[name].tools.values():
                if self._consent.tool_state(tool) == "approved":
                    yield tool

    def _remarks(self) -> list[str]:
        """Return why there are not more tools."""
        remarks = []
        for name, status in self._servers.items():
            state = self._state(name)
            if status.is_broken or state == "rejected":
                continue
            if state != "approved":
                remarks.append(f"{name} is not allowed yet: {SEEN_FIRST}.")
            elif status.is_starting:
                remarks.append(f"{name} is still starting; search again later.")
            elif not self._is_ready(name):
                remarks.append(f"{name} cannot be used: {status.problem}")
            else:
                count = len(status.tools) - len([*self._usable(name)])
                if count:
                    remarks.append(f"{name} has {count} more that the user has not allowed.")
        return remarks

    def _connection(self, name: str) -> str:
        return f"{self._root}:{name}"

    def _known(self, name: str) -> ServerStatus:
        if name not in self._servers:
            raise McpFailed(f"there is no server {one_line(name)} in mcp.servers")
        return self._servers[name]

    def _row(self, name: str) -> McpServer:
        """Return a server for the list."""
        status, lines = self._servers[name], self._policy(name)
        tools = [self._tool_row(tool) for tool in status.tools.values()]
        tools += [
            {
                "name": one_line(key),
                "state": "unusable",
                "lines": [f"{one_line(key)}: {why}"],
                "changes": [],
            }
            for key, why in status.unusable.items()
        ]
        digests = [each.digest for each in status.tools.values()]
        shown = hashlib.sha256("\n".join([*lines, *digests]).encode()).hexdigest()
        return {
            "name": name,
            "state": self._shown_state(name),
            "policy": lines,
            "changes": self._consent.difference(name, lines),
            "warning": policy.warning(status.settings),
            "problem": status.problem,
            "revision": status.revision if self._is_ready(name) else "",
            "tools": tools,
            "shown": shown,
        }

    def _tool_row(self, tool: ServerTool) -> McpTool:
        state = self._consent.tool_state(tool)
        return {
            "name": one_line(tool.name),
            "state": "allowed"
            if state == "approved"
            else "changed"
            if state == "changed"
            else "new",
            "lines": tool.lines(),
            "changes": self._consent.tool_difference(tool) if state == "changed" else [],
        }

    def _shown_state(self, name: str) -> McpState:
        status = self._servers[name]
        if status.is_broken:
            return "broken"
        answers: Mapping[AnswerState, McpState] = {
            "none": "new", "changed": "changed", "rejected": "denied"
        }  # fmt: skip
        if (answer := self._state(name)) in answers:
            return answers[answer]
        if status.is_starting:
            return "starting"
        if self._is_ready(name):
            return "ready"
        return "failed" if status.problem else "allowed"
