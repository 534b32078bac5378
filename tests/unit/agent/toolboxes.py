"""A toolbox on a project with a real tree and the sandbox of this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lcursor.agent.dialects.native import Native
from lcursor.agent.guided.choice import Choice
from lcursor.agent.observe import Outputs
from lcursor.agent.records import DialectName, Observation, ToolCall
from lcursor.agent.tools.tool import Rewrite
from lcursor.agent.tools.toolbox import OUTPUTS, ToolboxOfTree, make_toolbox
from lcursor.config import AgentConfig, EditConfig
from lcursor.context.codebase import Codebase, GrepSearch
from lcursor.process.run import Cancel
from lcursor.process.sandbox import Level, Sandbox, open_sandbox
from lcursor.workspace.tree import Tree
from tests.unit.workspace.projects import Project

TOKENS = 600


def count(text: str) -> int:
    """Return a number of tokens like that of a tokenizer."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def never() -> bool:
    """Cancel nothing."""
    return False


class ToolUser:
    """A toolbox, its tree and short ways to call it."""

    def __init__(
        self,
        project: Project,
        *,
        dialect: DialectName = "native",
        edit: EditConfig | None = None,
        config: AgentConfig | None = None,
        rewrite: Rewrite | None = None,
        level: Level | None = None,
        codebase: Callable[[Tree], Codebase] = lambda tree: GrepSearch(tree.path),
        folder: str = "",
        log: Callable[[Exception], None] | None = None,
    ) -> None:
        self.tree = project.tree(folder)
        self.tools: ToolboxOfTree = make_toolbox(
            self.tree,
            open_sandbox() if level is None else Sandbox(level),
            codebase(self.tree),
            config or AgentConfig(),
            edit or EditConfig(),
            dialect=Choice() if dialect == "choice" else Native(),
            count=count,
            budget_tokens=TOKENS,
            rewrite=rewrite,
            log=log,
        )
        self.cancel: Cancel = never

    def call(self, tool: str, **given: Any) -> Observation:
        """Call a tool; check that the observation is within the limit."""
        found = self.tools.run(ToolCall(tool, given), self.cancel)
        assert count(found.text) <= TOKENS
        return found

    def bash(self, command: str, **given: Any) -> Observation:
        """Run a command."""
        return self.call("bash", command=command, **given)

    def view(self, path: str, view_range: Sequence[int] = ()) -> Observation:
        """View a file."""
        more: Mapping[str, Any] = {"view_range": [*view_range]} if view_range else {}
        return self.call("str_replace_editor", command="view", path=path, **more)

    def replace(self, path: str, old: str, new: str) -> Observation:
        """Replace a text."""
        return self.call(
            "str_replace_editor", command="str_replace", path=path, old_str=old, new_str=new
        )

    def text(self, path: str) -> str:
        """Return a file of the tree."""
        return (self.tree.path / path).read_text()

    def output(self, name: str) -> list[str] | None:
        """Return a stored output."""
        return Outputs(self.tree.folder / OUTPUTS).read(name)
