"""What a project's MCP servers offer to questions and agents. Types only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from lcursor.process.run import Cancel

AskUser = Callable[[str], str]
"""Shows a form; returns it as the user filled it in, "" if the user rejects it."""


class ServerText(NamedTuple):
    """A resource or a prompt that a server offers."""

    name: str
    """`SERVER/ADDRESS` of a resource, `SERVER:PROMPT` of a prompt."""
    description: str


class ServerTools(Protocol):
    """The tools of the servers of a project. Any thread."""

    def find(self, words: str, cancel: Cancel) -> tuple[str, Mapping[str, Mapping[str, Any]]]:
        """Return the tools that fit some words, one a line, and the schemas of their arguments.

        Raises:
            Cancelled: `cancel` returned true.
        """

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

    def risk(self, key: str) -> str:
        """Return why a call needs approval; "" if it has no effect outside of the sandbox."""

    def content(self, key: str) -> str:
        """Return an id of a tool as it is now; "" if it is unknown."""

    def notes(self) -> Sequence[str]:
        """Return which servers cannot be used before the user has done something."""

    def names(self) -> Sequence[str]:
        """Return the names of the servers that the user has allowed."""


class ServerTexts(Protocol):
    """The resources and prompts of the servers of a project. Any thread."""

    @property
    def tools(self) -> ServerTools:
        """Their tools."""

    def start(self) -> None:
        """Start the allowed servers that have not run yet. Does not wait for them."""

    def resources(self) -> Sequence[ServerText]:
        """Return the resources of the servers that run. Does not block."""

    def prompts(self) -> Sequence[ServerText]:
        """Return the prompts of the servers that run. Does not block."""

    def is_prompt(self, command: str) -> bool:
        """Return whether a command, without its slash, begins with the name of a server."""

    def read(self, name: str, cancel: Cancel) -> str:
        """Return the text of a resource; starts its server if it is allowed. Blocks.

        Raises:
            McpFailed: there is no such text, or the server is not allowed.
            DependencyMissing: the package of the protocol is not installed.
            Cancelled: `cancel` returned true.
        """

    def prompt(self, command: str, words: str, cancel: Cancel) -> str:
        """Return the text of a prompt; starts its server if it is allowed. Blocks.

        Args:
            words: what the user typed after the command.

        Raises:
            McpFailed: no such prompt, an argument is missing, or its server is not allowed.
            DependencyMissing: the package of the protocol is not installed.
            Cancelled: `cancel` returned true.
        """


ServersOf = Callable[[Path], ServerTexts | None]
"""Returns the servers of a project; None if none are configured."""


def no_servers(_: Path) -> None:
    """Return None, as a `ServersOf`."""
