"""What questions use of the MCP servers of a project: resources and prompts. Types only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from lcursor.process.run import Cancel


class ServerText(NamedTuple):
    """A resource or a prompt that a server offers."""

    name: str
    """`SERVER/ADDRESS` of a resource, `SERVER:PROMPT` of a prompt."""
    description: str


class ServerTexts(Protocol):
    """The servers of a project. Any thread."""

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
