"""The user's answers about servers and their tools, in the project's folder of edit histories.

An answer is bound to what was shown (`workspace.approval`): the text of `policy.describe` for a
server, and all that a server says of a tool. A changed server does not start, and a changed tool is
not offered, until the user has seen the difference.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from lcursor.changes import history
from lcursor.errors import LcursorError
from lcursor.mcp.client.records import ServerTool, tool_of
from lcursor.storage import folders, json_text, stored
from lcursor.workspace.approval import Answer, Answers, AnswerState

NAME: Final = "servers.json"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the user saw of a server, and the answer."""

    is_allowed: bool
    policy: list[str]
    tools: list[dict[str, Any]] = field(default_factory=list)
    """Those that were seen, as JSON."""


class Consent:
    """The answers for a project. Thread: any.

    Args:
        folder: of all histories; None for the default.
    """

    def __init__(self, root: Path, folder: Path | None = None) -> None:
        self._path = history.project_folder(root, folder) / NAME
        self._lock = threading.Lock()
        self._seen = self._read()

    def server_state(self, name: str, policy: Sequence[str]) -> AnswerState:
        """Return what the user said of a server."""
        seen = self._seen.get(name)
        answers = Answers()
        if seen:
            answers.remember(name, Answer(seen.is_allowed, _digest(seen.policy)))
        return answers.state(name, _digest(policy))

    def tool_state(self, tool: ServerTool) -> AnswerState:
        """Return whether the user has seen a tool as it is now."""
        old = self._tool(tool)
        answers = Answers({tool.key: Answer(True, old.digest)} if old else None)
        return answers.state(tool.key, tool.digest)

    def difference(self, name: str, policy: Sequence[str]) -> list[str]:
        """Return what has changed of a server since it was seen, as lines with + and -."""
        seen = self._seen.get(name)
        return _changed(seen.policy, policy) if seen else []

    def tool_difference(self, tool: ServerTool) -> list[str]:
        """Return what has changed of a tool since it was seen."""
        old = self._tool(tool)
        if old is None:
            return []
        lines = _changed(old.lines(), tool.lines())
        return lines or _changed(_schema(old), _schema(tool))

    def remember(
        self, name: str, *, is_allowed: bool, policy: Sequence[str], tools: Sequence[ServerTool]
    ) -> None:
        """Store an answer, with the tools that the user saw.

        Raises:
            LcursorError: it cannot be stored.
        """
        seen = Seen(is_allowed, [*policy], [each.stored() for each in tools])
        with self._lock:
            self._seen = {**self._read(), name: seen}  # another Neovim may have answered
            folder = self._path.parent
            try:
                folders.make_private(folder.parent)
                folders.make_private(folder)
                rows = {key: asdict(each) for key, each in self._seen.items()}
                folders.write_file(self._path, json.dumps(rows, indent=1).encode())
            except OSError as error:
                raise LcursorError(f"{self._path} cannot be written: {error.strerror}") from error

    def _tool(self, tool: ServerTool) -> ServerTool | None:
        """Return a tool as it was seen."""
        seen = self._seen.get(tool.server)
        for row in seen.tools if seen else ():
            with contextlib.suppress(KeyError, ValueError):
                if row["name"] == tool.name:
                    return tool_of(tool.server, row)
        return None

    def _read(self) -> dict[str, Seen]:
        with contextlib.suppress(OSError, *stored.DAMAGE):
            rows = json_text.parse(self._path.read_bytes())
            if not isinstance(rows, dict):
                return {}
            return {str(name): stored.load(Seen, row) for name, row in rows.items()}
        return {}


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _schema(tool: ServerTool) -> list[str]:
    return json.dumps(tool.stored(), indent=1, sort_keys=True).splitlines()


def _changed(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return [line for line in difflib.ndiff(old, new) if line[:2] in ("+ ", "- ")]
