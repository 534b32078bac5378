"""Carry out the calls of tools by a model.

toolbox = make_toolbox(tree, sandbox, codebase, config.agent, config.edit, dialect=Native(),
                       count=model.count, budget_tokens=limit_tokens(model.context_tokens))
toolbox.run(ToolCall("grep", {"pattern": "def main"}), cancel)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NoReturn

from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.observe import MAX_TOKENS, Outputs, TokenLimit
from lcursor.agent.records import Known, Observation, Shown, ToolCall
from lcursor.agent.tools import mcp
from lcursor.agent.tools.editor import FileEditor
from lcursor.agent.tools.finish_checks import FinishChecks
from lcursor.agent.tools.lookup import Lookup
from lcursor.agent.tools.read_lines import ReadLines
from lcursor.agent.tools.tool import Rewrite, Tool, ToolContext
from lcursor.code import estimate
from lcursor.config import AgentConfig, EditConfig
from lcursor.context.codebase import Codebase
from lcursor.context.servers import AskUser, ServerTools
from lcursor.errors import Cancelled, LcursorError
from lcursor.process.run import Cancel
from lcursor.process.sandbox import Sandbox
from lcursor.workspace.files import Denied, Files
from lcursor.workspace.outputs import cut_line, printable
from lcursor.workspace.shell import Shell
from lcursor.workspace.tree import Tree

OUTPUTS: Final = "outputs"
"""Folder of a run with the full outputs."""


def make_toolbox(
    tree: Tree,
    sandbox: Sandbox,
    codebase: Codebase,
    config: AgentConfig,
    edit: EditConfig,
    *,
    dialect: Dialect,
    count: Callable[[str], int],
    budget_tokens: int,
    rewrite: Rewrite | None = None,
    servers: ServerTools | None = None,
    task: str = "",
    test: str = "",
    cancel: Cancel = lambda: False,
    log: Callable[[Exception], None] | None = None,
) -> ToolboxOfTree:
    """Return the tools of a run.

    Args:
        codebase: of `lookup.open_codebase`.
        count: returns the number of tokens of a text.
        budget_tokens: limit of an observation, see `observe.limit_tokens`.
        rewrite: for small models.
        servers: with further tools; None for none.
        task: for small models, which are offered the tools of servers that fit it.
        test: the only failing test that has to be corrected; "" for all.
        log: writes an unexpected error of a tool to the log; None raises it.
    """
    limit, outputs, seen = (
        TokenLimit(budget_tokens, count),
        Outputs(tree.folder / OUTPUTS),
        ReadLines(),
    )
    shell = Shell(tree, sandbox, config, (edit.test, edit.lint, *config.allow))
    names = tuple(dict.fromkeys((tree.root, tree.path)))
    files = Files(tree.path, names, tree.secret_reason, tree.folder)
    pages = dialect.pages(seen)
    gate = FinishChecks(tree, shell, edit, limit, outputs, test)
    context = ToolContext(
        tree=tree,
        files=files,
        seen=seen,
        pages=pages,
        editor=FileEditor(files, tree.include, seen, pages, outputs, gate, limit),
        lookup=Lookup(tree, files, codebase, seen, pages, limit),
        gate=gate,
        shell=shell,
        outputs=outputs,
        limit=limit,
        config=config,
        edit=edit,
        rewrite=rewrite,
        servers=servers,
    )
    if servers is not None and not dialect.searches_servers:
        context.schemas.update(mcp.suited(servers, task, cancel))
    return ToolboxOfTree(context, dialect, log or _raise)


def checks_of(tree: Tree, sandbox: Sandbox, config: AgentConfig, edit: EditConfig) -> FinishChecks:
    """Return the user's linter and tests, for an agent that has no tools of ours."""
    shell = Shell(tree, sandbox, config, (edit.test, edit.lint, *config.allow))
    limit = TokenLimit(MAX_TOKENS, estimate.tokens)
    return FinishChecks(tree, shell, edit, limit, Outputs(tree.folder / OUTPUTS))


class ToolboxOfTree:
    """Tools on a tree; a `parts.Toolbox`."""

    def __init__(
        self, context: ToolContext, dialect: Dialect, log: Callable[[Exception], None]
    ) -> None:
        self._context, self._dialect, self._log = context, dialect, log
        self.tools: Sequence[Tool] = dialect.tools
        if context.servers is not None:
            added = mcp.TOOLS if dialect.searches_servers else (mcp.CALL,)
            self.tools = (*dialect.tools, *added)

    def run(
        self,
        call: ToolCall,
        cancel: Cancel,
        *,
        is_unconfined: bool = False,
        ask: AskUser | None = None,
    ) -> Observation:
        """Run a call; an error is an observation, not an exception.

        Raises:
            Cancelled: `cancel` returned true.
        """
        given, limit = call.arguments, self._context.limit
        context = replace(self._context, cancel=cancel, is_unconfined=is_unconfined, ask=ask)
        target = str(given.get("path") or given.get("command") or "")
        try:
            observation = self._tool(call).run(given, context)
        except Cancelled:
            raise
        except Denied as error:
            text = limit.cut(printable(str(error)))
            reason = text.partition("\n")[0].removeprefix(f"{target}: ")
            return Observation(text, True, cut_line(target), f"not possible: {reason}")
        except (LcursorError, OSError) as error:
            text = limit.cut(f"{call.tool} failed: {printable(str(error))}")
            return Observation(text, True, cut_line(target), "failed")
        except Exception as error:  # noqa: BLE001 - the root of a tool
            self._log(error)
            text = f"{call.tool} failed because of a bug in it. Do this in another way."
            return Observation(text, True, cut_line(target), "failed")
        self._dialect.observe(call, observation, context)
        return observation

    def remember(self, shown: Sequence[Shown]) -> None:
        """Restore what an earlier observation showed, in the order of the run's log."""
        context = self._context
        for part in shown:
            try:
                lines = context.files.read(part.path).text.lines
            except Denied:
                lines = ()
            at = context.seen.show(part.path, lines, part.first_row, part.last_row)
            context.pages.add_region(lines, at)

    def known(self) -> Known:
        """Return what the model may name."""
        return replace(self._dialect.known(self._context), schemas={**self._context.schemas})

    def _tool(self, call: ToolCall) -> Tool:
        """Return the tool of a call, which has the arguments that it needs.

        Raises:
            Denied: there is no such tool, or an argument is missing.
        """
        tool = next((each for each in self.tools if each.name == call.tool), None)
        if tool is None:
            raise Denied(f"there is no tool {printable(call.tool)}")
        further = tool.needs.get(str(call.arguments.get("command")), ())
        for name in (*tool.required, *further):
            if name not in call.arguments:
                raise Denied(f"{call.tool} needs the argument {name!r}")
        return tool


def _raise(error: Exception) -> NoReturn:
    raise error
