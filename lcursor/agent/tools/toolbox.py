"""Carry out the calls of tools by a model.

toolbox = make_toolbox(tree, sandbox, codebase, config.agent, config.edit, dialect="native",
                       count=model.count, budget_tokens=limit_tokens(model.context_tokens))
toolbox.run(Call("grep", {"pattern": "def main"}), cancel)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NoReturn

from lcursor.agent.observe import Limit, Outputs, command_observation
from lcursor.agent.records import Call, DialectName, Known, Observation, Shown, Tool
from lcursor.agent.tools.editor import Editor, Rewrite
from lcursor.agent.tools.gate import Gate
from lcursor.agent.tools.lookup import Lookup
from lcursor.agent.tools.pages import Pages
from lcursor.agent.tools.seen import Seen
from lcursor.code import languages, symbols
from lcursor.config import AgentConfig, EditConfig
from lcursor.context.codebase import Codebase
from lcursor.errors import Cancelled, LcursorError
from lcursor.process.run import Cancel
from lcursor.process.sandbox import Sandbox
from lcursor.workspace import shell
from lcursor.workspace.commands import with_path
from lcursor.workspace.files import Denied, Files
from lcursor.workspace.outputs import cut_line, printable
from lcursor.workspace.shell import DEFAULT_S, MAX_S, Shell
from lcursor.workspace.tree import Tree

OUTPUTS: Final = "outputs"
"""Folder of a run with the full outputs."""
MAX_KNOWN_PATHS: Final = 60
MAX_KNOWN_FILES: Final = 20
"""Files of which the definitions may be named."""
MAX_KNOWN_SYMBOLS: Final = 40
"""Of each of these files."""
MAX_NAMED: Final = 200
"""Words of an output that are tested for being a path."""
_PATH: Final = re.compile(r"[\w./+-]*\w\.\w+")

EDIT = Tool(
    "str_replace_editor",
    "View, create and change text files. To change one, view its lines first.",
    {
        "command": "view, create, str_replace or insert",
        "path": "a file; to view, also a folder or a stored output out:N",
    },
    {
        "view_range": "[first, last]; last -1 is the end",
        "file_text": "for create: the whole text",
        "old_str": "for str_replace: text that occurs once",
        "new_str": "the text instead, or to insert",
        "insert_line": "for insert: the line before new_str; 0 for the start",
    },
    integers=frozenset({"insert_line"}),
    lists=frozenset({"view_range"}),
)
BASH = Tool(
    "bash",
    "Run a shell command in the project's folder, without network, input and background "
    "processes. Git is read-only.",
    {"command": "the command"},
    {
        "timeout_s": f"at most {MAX_S}; {DEFAULT_S} by default",
        "escalate": "only to leave the sandbox: the reason, for the user",
    },
    integers=frozenset({"timeout_s"}),
)
GREP = Tool(
    "grep",
    "Find lines by a regular expression.",
    {"pattern": "a Perl-like expression"},
    {"path": "a file or folder", "glob": "only in paths like *.py"},
)
GLOB = Tool("glob", "List files by a pattern, newest first.", {"pattern": "like src/**/*.py"})
SEARCH = Tool(
    "search",
    "Find code by its meaning.",
    {"query": "a question or some words"},
    {"path": "only below this folder"},
)
REWRITE = Tool(
    "rewrite",
    "Rewrite a region that was read.",
    {"path": "its file", "region": "its id", "instruction": "what to change"},
)
FINISH = Tool(
    "finish", "End the task; the user's tests are run.", {"summary": "what was done, in short"}
)
EDIT_NEEDS: Final[Mapping[str, Sequence[str]]] = {
    "create": ("file_text",),
    "str_replace": ("old_str",),
    "insert": ("insert_line", "new_str"),
}
"""The further arguments that commands of `EDIT` need."""
TOOLS: Final = (EDIT, BASH, GREP, GLOB, SEARCH, FINISH)
CHOICE_TOOLS: Final = (EDIT, SEARCH, GREP, REWRITE, BASH, FINISH)


def make_toolbox(
    tree: Tree,
    sandbox: Sandbox,
    codebase: Codebase,
    config: AgentConfig,
    edit: EditConfig,
    *,
    dialect: DialectName,
    count: Callable[[str], int],
    budget_tokens: int,
    rewrite: Rewrite | None = None,
    log: Callable[[Exception], None] | None = None,
) -> ToolboxOfTree:
    """Return the tools of a run.

    Args:
        codebase: of `lookup.open_codebase`.
        count: returns the number of tokens of a text.
        budget_tokens: limit of an observation, see `observe.limit_tokens`.
        rewrite: for the dialect "choice".
        log: writes an unexpected error of a tool to the log; None raises it.
    """
    limit = Limit(budget_tokens, count)
    return ToolboxOfTree(
        tree, sandbox, codebase, config, edit, dialect, limit, rewrite, log or _raise
    )


class ToolboxOfTree:
    """Tools on a tree; a `records.Toolbox`."""

    def __init__(
        self,
        tree: Tree,
        sandbox: Sandbox,
        codebase: Codebase,
        config: AgentConfig,
        edit: EditConfig,
        dialect: DialectName,
        limit: Limit,
        rewrite: Rewrite | None,
        log: Callable[[Exception], None],
    ) -> None:
        self._tree, self._config, self._edit, self._limit = tree, config, edit, limit
        self._log = log
        self._is_choice = dialect == "choice"
        self.tools: Sequence[Tool] = CHOICE_TOOLS if self._is_choice else TOOLS
        self._shell = Shell(tree, sandbox, config, (edit.test, edit.lint, *config.allow))
        self._outputs = Outputs(tree.folder / OUTPUTS)
        names = dict.fromkeys((tree.root, tree.path))
        self._files = Files(tree.path, tuple(names), tree.secret_reason, tree.folder)
        self._seen = Seen()
        self._pages = Pages(self._seen, has_regions=self._is_choice)
        self._gate = Gate(tree, self._shell, edit, limit, self._outputs)
        self._editor = Editor(
            self._files, self._seen, self._pages, self._outputs, self._gate, limit, rewrite
        )
        self._lookup = Lookup(tree, self._files, codebase, self._seen, self._pages, limit)
        self._symbols: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        """Lines and definitions of files."""

    def run(self, call: Call, cancel: Cancel, *, is_unconfined: bool = False) -> Observation:
        """Run a call; an error is an observation, not an exception.

        Raises:
            Cancelled: `cancel` returned true.
        """
        given = call.arguments
        handlers: Mapping[str, Callable[[], Observation]] = {
            "str_replace_editor": partial(self._edit_call, given, cancel),
            "bash": partial(self._bash, given, cancel, is_unconfined),
            "grep": lambda: self._lookup.grep(
                given["pattern"], given.get("path", ""), given.get("glob", ""), cancel
            ),
            "glob": lambda: self._lookup.glob(given["pattern"], cancel),
            "search": lambda: self._lookup.search(given["query"], given.get("path", ""), cancel),
            "rewrite": lambda: self._editor.rewrite(given["region"], given["instruction"], cancel),
            "finish": lambda: self._gate.finish(
                given["summary"], cancel, is_unconfined=is_unconfined
            ),
        }
        target = str(given.get("path") or given.get("command") or "")
        try:
            self._check_arguments(call)
            return handlers[call.tool]()
        except Cancelled:
            raise
        except Denied as error:
            text = self._limit.cut(printable(str(error)))
            reason = text.partition("\n")[0].removeprefix(f"{target}: ")
            return Observation(text, True, cut_line(target), f"not possible: {reason}")
        except (LcursorError, OSError) as error:
            text = self._limit.cut(f"{call.tool} failed: {printable(str(error))}")
            return Observation(text, True, cut_line(target), "failed")
        except Exception as error:  # noqa: BLE001 - the root of a tool
            self._log(error)
            text = f"{call.tool} failed because of a bug in it. Do this in another way."
            return Observation(text, True, cut_line(target), "failed")

    def remember(self, shown: Sequence[Shown]) -> None:
        """Restore what an earlier observation showed, in the order of the run's log."""
        for each in shown:
            try:
                lines = self._files.read(each.path).text.lines
            except Denied:
                lines = ()
            at = self._seen.show(each.path, lines, each.first_row, each.last_row)
            self._pages.add_region(lines, at)

    def known(self) -> Known:
        """Return what the model may name."""
        commands = self._commands()
        if not self._is_choice:
            return Known(commands=commands)
        if not self._seen.paths:  # all files of a small project, the newest of a large one
            self._lookup.glob("**", lambda: False)
        for path in {region.path for region in self._seen.regions.values()}:
            self._seen.update(path, self._lines(path))
        try:
            top = [name.rstrip("/") for name in self._files.names(".")]
        except Denied:
            top = []
        newest = [path for path in reversed(self._seen.paths) if self._files.exists(path)]
        paths = tuple(dict.fromkeys([*newest[:MAX_KNOWN_PATHS], *top[:MAX_KNOWN_PATHS]]))
        found = {path: self._definitions(path) for path in newest[:MAX_KNOWN_FILES]}
        regions = {
            key: region
            for key, region in self._seen.regions.items()
            if region.first_row < region.last_row
        }
        named = {path: names for path, names in found.items() if names}
        return Known(paths, named, regions, commands)

    def _check_arguments(self, call: Call) -> None:
        """Check that a call names a tool of this run and has the arguments that this needs.

        Raises:
            Denied: there is no such tool, or an argument is missing.
        """
        tool = next((each for each in self.tools if each.name == call.tool), None)
        if tool is None:
            raise Denied(f"there is no tool {printable(call.tool)}")
        further = EDIT_NEEDS.get(str(call.arguments.get("command"))) if tool is EDIT else None
        for name in (*tool.required, *(further or ())):
            if name not in call.arguments:
                raise Denied(f"{call.tool} needs the argument {name!r}")

    def _edit_call(self, given: Mapping[str, Any], cancel: Cancel) -> Observation:
        command, path = given["command"], given["path"]
        if command == "view":
            return self._editor.view(path, given.get("view_range") or ())
        if command == "create":
            return self._editor.create(path, given["file_text"], cancel)
        if command == "str_replace":
            return self._editor.str_replace(
                path, given["old_str"], given.get("new_str", ""), cancel
            )
        if command == "insert":
            return self._editor.insert(path, given["insert_line"], given["new_str"], cancel)
        raise Denied(f"command is {command!r}, but must be view, create, str_replace or insert")

    def _bash(self, given: Mapping[str, Any], cancel: Cancel, is_unconfined: bool) -> Observation:
        command = given["command"]
        max_s = min(max(given.get("timeout_s") or DEFAULT_S, 1), MAX_S)
        result = self._shell.run(command, cancel, max_s=max_s, is_unconfined=is_unconfined)
        found = command_observation(result, command, self._limit, self._outputs)
        lines = found.text.split("\n")
        self._seen.print(lines)
        if self._is_choice:
            self._name_paths(found.text)
        if self._edit.test and command == self._commands().get("test"):
            reason = shell.obstacle(result, command, self._tree.root)
            if reason and not self._tree.changed():  # else it may be for a change
                return replace(found, obstacle=reason)
        return found

    def _name_paths(self, text: str) -> None:
        """Record the files that an output names."""
        words = dict.fromkeys(_PATH.findall(text))
        for word in list(words)[:MAX_NAMED]:
            try:
                name = self._files.relative(word)
            except Denied:
                continue
            if self._files.exists(name) and not self._files.is_folder(name):
                self._seen.name([name])

    def _definitions(self, path: str) -> tuple[str, ...]:
        """Return the names of a file's definitions."""
        lines = tuple(self._lines(path))
        known = self._symbols.get(path)
        if known is None or known[0] != lines:
            language = languages.detect(path, lines[0] if lines else "")
            names = dict.fromkeys(each.name for each in symbols.all_of(lines, language))
            known = self._symbols[path] = (lines, tuple(names)[:MAX_KNOWN_SYMBOLS])
        return known[1]

    def _lines(self, path: str) -> Sequence[str]:
        try:
            return self._files.read(path).text.lines
        except Denied:
            return ()

    def _commands(self) -> dict[str, str]:
        """Return the user's commands by name; one with `{path}` is for the file changed last."""
        named = {"test": self._edit.test, "lint": self._edit.lint}
        named.update((command, command) for command in self._config.allow)
        found = {}
        for name, command in named.items():
            if command and ("{path}" not in command or self._editor.changed):
                found[name] = with_path(command, self._editor.changed)
        return found


def _raise(error: Exception) -> NoReturn:
    raise error
