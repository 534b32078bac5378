"""What a tool of an agent is: its description for the model, its kind, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lcursor.agent.observe import Outputs, TokenLimit
from lcursor.agent.records import Observation
from lcursor.agent.tools.editor import FileEditor
from lcursor.agent.tools.finish_checks import FinishChecks
from lcursor.agent.tools.lookup import Lookup
from lcursor.agent.tools.pages import Pages
from lcursor.agent.tools.read_lines import ReadLines
from lcursor.changes.records import Check
from lcursor.config import AgentConfig, EditConfig
from lcursor.context.servers import AskUser, ServerTools
from lcursor.process.run import Cancel
from lcursor.protocol.agent import StepKind
from lcursor.workspace.commands import with_path
from lcursor.workspace.files import Files
from lcursor.workspace.shell import Shell
from lcursor.workspace.tree import Tree

Arguments = Mapping[str, Any]


Test = Callable[[Sequence[str]], Check | None]
"""Returns what the user's tests say if a file has these lines; None without tests."""
Rewrite = Callable[[str, Sequence[str], int, int, str, str, Test], Sequence[str] | str]
"""Returns the new lines of some rows, or a problem; given path, lines, rows, an instruction, what
failed tests did, and the tests."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What tools work with."""

    tree: Tree
    files: Files
    seen: ReadLines
    pages: Pages
    editor: FileEditor
    lookup: Lookup
    gate: FinishChecks
    shell: Shell
    outputs: Outputs
    limit: TokenLimit
    """Of an observation."""
    config: AgentConfig
    edit: EditConfig
    rewrite: Rewrite | None = None
    """Rewrites regions for models that write no code in calls."""
    servers: ServerTools | None = None
    """Servers with further tools."""
    schemas: dict[str, Arguments] = field(default_factory=dict)
    """Schemas of the arguments of tools that were found there, by name."""
    cancel: Cancel = lambda: False
    is_unconfined: bool = False
    """Whether the user approved a command without the sandbox."""
    ask: AskUser | None = None
    """Asks the user what a server wants to know."""

    def commands(self) -> dict[str, str]:
        """Return the user's commands by name; one with `{path}` is for the file changed last."""
        named = {"test": self.edit.test, "lint": self.edit.lint}
        named.update((command, command) for command in self.config.allow)
        changed = self.editor.changed
        return {
            name: with_path(command, changed)
            for name, command in named.items()
            if command and ("{path}" not in command or changed)
        }


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. The modules of the tools have one each; `table` lists them."""

    name: str
    what: str
    """One line for the prompt."""
    required: Mapping[str, str]
    """Names of the arguments, in order, with their descriptions. All are strings, except for those
    in `integers`, `lists` and `objects`."""
    optional: Mapping[str, str] = field(default_factory=dict)
    integers: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    """Arguments that are lists of integers."""
    objects: frozenset[str] = frozenset()
    """Arguments that are JSON objects."""
    kind: StepKind = "read"
    """For the user. "edit" and "command" may change files: they are checkpointed, and need
    approval."""
    reads: frozenset[str] = frozenset()
    """Values of the argument `command` with which it only reads."""
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further arguments that it needs, by the value of `command`."""
    examples: Mapping[str, str] = field(default_factory=dict)
    """Its forms in the dialect "fenced", by the first word of the block."""
    run: Callable[[Arguments, ToolContext], Observation] = field(kw_only=True)

    def type_of(self, argument: str) -> str:
        """Return the JSON type of an argument."""
        if argument in self.integers:
            return "integer"
        if argument in self.objects:
            return "object"
        return "array" if argument in self.lists else "string"

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of the arguments."""
        properties: dict[str, Mapping[str, Any]] = {}
        for name, what in {**self.required, **self.optional}.items():
            kind = self.type_of(name)
            items = {"items": {"type": "integer"}} if kind == "array" else {}
            properties[name] = {"type": kind, **items, **({"description": what} if what else {})}
        return {"type": "object", "properties": properties, "required": [*self.required]}

    def kind_of(self, arguments: Arguments) -> StepKind:
        """Return the kind of a call."""
        return "read" if str(arguments.get("command")) in self.reads else self.kind

    def has_command(self, arguments: Arguments) -> bool:
        """Return whether the argument `command` has one of its values, if these are fixed."""
        command = str(arguments.get("command"))
        return not self.needs or command in self.needs or command in self.reads
