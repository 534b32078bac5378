"""Resources and prompts of the servers of a project, for questions; see `context.servers`.

A resource becomes an item of the context, a prompt the question. They are text: mentions and
commands in them have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lcursor.context.servers import ServerText
from lcursor.errors import McpFailed
from lcursor.mcp.client.records import one_line
from lcursor.mcp.client.servers import ProjectServers
from lcursor.process.run import Cancel
from lcursor.project import redaction

READ_S: Final = 30.0
MAX_ADDRESS: Final = 500
_COMMAND: Final = re.compile(r"[a-z][\w-]*:[\w:.-]+")
"""A command that can be typed."""
_PAIR: Final = re.compile(r'(?<!\S)(?P<name>[^\s="]+)=(?:"(?P<quoted>[^"]*)"|(?P<bare>\S*))\s*')


class ProjectTexts:
    """The resources and prompts of a project's servers."""

    def __init__(self, servers: ProjectServers) -> None:
        self._servers = servers

    @property
    def tools(self) -> ProjectServers:
        """Their tools."""
        return self._servers

    def start(self) -> None:
        """Start the allowed servers that have not run yet. Does not wait for them."""
        self._servers.start()

    def resources(self) -> list[ServerText]:
        """Return the resources of the servers that run, except addresses with odd characters."""
        return [
            ServerText(name, one_line(row["description"] or row["name"]))
            for server, status in self._servers.running()
            for row in status.resources
            if (name := f"{server}/{row['uri']}") == one_line(name, MAX_ADDRESS)
        ]

    def prompts(self) -> list[ServerText]:
        """Return the prompts of the servers that run, except those that cannot be typed."""
        return [
            ServerText(name, one_line(_about(row)))
            for server, status in self._servers.running()
            for row in status.prompts
            if _COMMAND.fullmatch(name := f"{server}:{row['name']}")
        ]

    def is_prompt(self, command: str) -> bool:
        """Return whether a command begins with the name of a server."""
        server, colon, _ = command.partition(":")
        return bool(colon) and self._servers.has(server)

    def read(self, name: str, cancel: Cancel) -> str:
        """Return the text of a resource.

        Raises:
            McpFailed: it cannot be read, is not text, or its server is not allowed.
            DependencyMissing: the package of the protocol is not installed.
            Cancelled: `cancel` returned true.
        """
        server, _, uri = name.partition("/")
        if not uri:
            raise McpFailed("write the server and the address: @mcp:SERVER/ADDRESS")
        self._servers.connected(server, cancel)
        found = self._servers.request(server, "read", READ_S, cancel, uri=uri)
        text = str(found["text"])
        if text and not found["is_text"]:
            raise McpFailed(f"{server}: it is not text: {one_line(text)}")
        return text

    def prompt(self, command: str, words: str, cancel: Cancel) -> str:
        """Return the text of a prompt.

        Raises:
            McpFailed: there is none, an argument is missing, or its server is not allowed.
            DependencyMissing: the package of the protocol is not installed.
            Cancelled: `cancel` returned true.
        """
        server, _, name = command.partition(":")
        rows = {row["name"]: row for row in self._servers.connected(server, cancel).prompts}
        if name not in rows:
            known = one_line(", ".join(rows)) or "none"
            raise McpFailed(f"the server {server} has no prompt {name}; its prompts: {known}")
        arguments = arguments_of(command, words, rows[name]["arguments"])
        found = self._servers.request(
            server, "prompt", READ_S, cancel, prompt=name, arguments=arguments
        )
        text = redaction.redact(str(found["text"]))[0]
        if not text.strip():
            raise McpFailed(f"the text of /{command} is empty")
        return text


def arguments_of(command: str, words: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the arguments of a prompt from what was typed after its command.

    `name=value` and `name="some words"` set an argument; the other words are the first argument
    that is not set so.

    Raises:
        McpFailed: a required argument is missing, or there are more words than arguments.
    """
    names = [str(row["name"]) for row in rows]
    found = dict[str, str]()

    def take(pair: re.Match[str]) -> str:
        if pair["name"] not in names:
            return pair[0]
        found[pair["name"]] = pair["bare"] if pair["quoted"] is None else pair["quoted"]
        return ""

    rest = _PAIR.sub(take, words).strip()
    if rest:
        free = next((name for name in names if name not in found), None)
        if free is None:
            raise McpFailed(f"/{command} has no argument for: {one_line(rest)}")
        found[free] = rest
    missing = [name for row, name in zip(rows, names, strict=True) if row["required"] is True]
    missing = [f"{one_line(name, 40)}=…" for name in missing if not found.get(name)]
    if missing:
        raise McpFailed(f"/{command} needs {' and '.join(missing)}")
    return found


def _about(row: Mapping[str, Any]) -> str:
    """Return the description of a prompt, after its arguments."""
    names = [
        each["name"] if each["required"] is True else f"[{each['name']}]"
        for each in row["arguments"]
    ]
    return ": ".join(filter(None, (" ".join(names), row["description"])))
