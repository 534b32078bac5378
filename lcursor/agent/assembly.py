"""Assemble the parts of a run: the copy of the project, the sandbox, the tools and the model.

Blocks; on the run's thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

from lcursor.agent import attempts, minimal, observe, queue, result
from lcursor.agent.approvals import Approvals
from lcursor.agent.dialects.api import Api
from lcursor.agent.dialects.select import dialect_for
from lcursor.agent.guided.rewrite import RegionRewriter
from lcursor.agent.loop import ModelWork
from lcursor.agent.model import ToolModel, open_model
from lcursor.agent.parts import (
    AssembledRun,
    ForeignAgents,
    ForeignRequest,
    RecordedTurn,
    RunLimits,
    RunParts,
    RunRequest,
    Work,
)
from lcursor.agent.records import Policy
from lcursor.agent.run_log import RunState
from lcursor.agent.shell_rules import ShellRules
from lcursor.agent.summary import summarize
from lcursor.agent.tools import lookup
from lcursor.agent.tools.toolbox import checks_of, make_toolbox
from lcursor.changes.records import FileChange, Lines
from lcursor.config import Config
from lcursor.context import prompts, rules
from lcursor.context.servers import ServerTools
from lcursor.errors import AgentMissing, Cancelled
from lcursor.llm.pool import ModelPool
from lcursor.llm.records import ToolSpec
from lcursor.llm.tokens import BYTES_PER_TOKEN
from lcursor.process.run import Cancel
from lcursor.process.sandbox import open_sandbox
from lcursor.project.names import quoted
from lcursor.project.reading import Reader
from lcursor.project.root import relative_name
from lcursor.protocol.agent import AgentModel, AgentTask
from lcursor.stop import Stop
from lcursor.workspace import shell
from lcursor.workspace.content import content_id
from lcursor.workspace.edit_checks import EditChecks
from lcursor.workspace.files import Denied, Files
from lcursor.workspace.outputs import counted, failed_tests
from lcursor.workspace.tree import Tree

MAX_TOP: Final = 40
"""Number of names of the project's top level in the system text."""
MAX_SKILLS: Final = 20
SKILLS: Final = "Before you do what one of these files is about, read it:"
RULES_SHARE: Final = 0.15
"""Share of the context for the project's rules files."""
NO_SANDBOX: Final = (
    "No sandbox works here, so each command needs your approval: python -m lcursor sandbox check"
)

ServersOf = Callable[[Path], ServerTools | None]
"""Returns the servers with further tools of a project; None for none."""
Record = Callable[[Path, str, Sequence[FileChange], Mapping[str, Lines], str], str]
"""Stores changes as a turn of edits, given root, title, changes, old lines and the key of the run;
returns its key."""


def content_of(tree: Tree) -> str:
    """Return the id of all present files of a run; see `approval.content_id`."""
    return content_id(tree.path, tree.folder, tree.checkpoint())


class Assembly:
    """Makes the parts of runs, and stores their results.

    Args:
        secrets: globs of files that are never read, in addition to the built-in ones.
        foreign: agents of others; None for none.
    """

    def __init__(
        self,
        config: Config,
        models: ModelPool,
        record: Record,
        secrets: Sequence[str] = (),
        servers_of: ServersOf = lambda _: None,
        foreign: ForeignAgents | None = None,
    ) -> None:
        self._config, self._models, self._record = config, models, record
        self._secrets, self._servers_of = tuple(secrets), servers_of
        self._foreign = foreign

    def assemble(self, wanted: RunRequest) -> AssembledRun:
        """Return the parts of a run.

        Raises:
            Cancelled: it was stopped.
            LcursorError: there is no model, the project cannot be copied, a setting is invalid.
        """
        config, agent = self._config, self._config.agent
        approval_rules = ShellRules.of(agent, self._secrets, (config.edit.test, config.edit.lint))
        tree = self._open_tree(wanted)
        sandbox = open_sandbox()
        approvals_with = partial(
            Approvals,
            wanted.policy,
            sandbox.level,
            approval_rules,
            tree.root,
            partial(content_of, tree),
            tree.base,
        )
        limits = RunLimits(agent.max_steps, agent.max_minutes * 60.0)
        later: Policy = "ask" if agent.policy == "ask" else "auto"
        name = wanted.model or agent.model
        if self._foreign is not None and self._foreign.has(name):
            has_checks = bool(config.edit.test or config.edit.lint)
            checks = checks_of(tree, sandbox, agent, config.edit) if has_checks else None
            check = checks.finish if checks else None
            work, note = self._foreign.open(
                ForeignRequest(name, wanted, tree, sandbox, approvals_with(), limits, later, check)
            )
            return AssembledRun(work, name, sandbox.level, note)
        name = self._models.choose(wanted.model, agent.model)
        connection = self._models.connect(name, wanted.stopped)
        served = connection.served.model or name
        dialect = dialect_for(served, is_hosted=connection.client.target.is_hosted)
        model = open_model(
            self._models,
            name,
            wanted.folder.name,
            wanted.stopped,
            calls_tools=dialect.name == "native",
        )
        if isinstance(model, ToolModel):
            dialect = Api()
        if wanted.policy == "plan" and not dialect.can_plan:
            raise AgentMissing(
                f"{served} is too small to plan a change of the project",
                "Select lines and use :LCEdit, or set agent.model to a larger model",
            )
        servers = self._servers_of(wanted.root)
        rewriter = RegionRewriter(
            self._models,
            name,
            config.edit,
            wanted.root,
            wanted.task,
            wanted.stopped,
            model.add_usage,
            lambda: model.rank,
            wanted.temperature,
        )
        codebase = lookup.open_codebase(tree, self._secrets)
        toolbox = make_toolbox(
            tree,
            sandbox,
            codebase,
            agent,
            config.edit,
            dialect=dialect,
            count=model.count,
            budget_tokens=observe.limit_tokens(model.context_tokens),
            rewrite=rewriter,
            servers=servers,
            task=wanted.task,
            test=wanted.test,
            cancel=wanted.stopped.is_set,
            log=wanted.log,
        )
        if isinstance(model, ToolModel):
            model.tools = tuple(
                ToolSpec(each.name, each.what, each.schema) for each in toolbox.tools
            )
        is_free = sandbox.level == "none" or wanted.policy == "full"
        where = tree.path if is_free else sandbox.visible_path(tree.confinement(agent))
        of_project = partial(self._facts, wanted, tree, where, model.context_tokens)
        system = dialect.system(toolbox.tools, dialect.facts(toolbox.known(), of_project))
        parts = RunParts(
            model=model,
            dialect=dialect,
            toolbox=toolbox,
            tree=tree,
            approvals=approvals_with(servers=servers),
            summarize=partial(summarize, model, system, tree),
            system=system,
            limits=limits,
            policy=later,
            temperature=wanted.temperature,
            on_end=codebase.close,
        )
        notes = [NO_SANDBOX] if sandbox.level == "none" else []
        notes += [dialect.note] if dialect.note else []
        notes += tree.hidden(agent)
        notes += servers.notes() if servers else []
        return AssembledRun(ModelWork(parts), name, sandbox.level, "\n".join(notes))

    def tasks(self, root: Path, cancel: Cancel) -> tuple[list[AgentTask], str]:
        """Return what agents could do in a project, and a note; see `queue.find`."""
        return queue.find(root, self._config, self._secrets, cancel)

    def check(
        self, root: Path, unsaved: Mapping[str, str], stopped: Stop
    ) -> tuple[Literal["passed", "failed", ""], str]:
        """Return what the user's tests say of a project, in the sandbox; see `AgentChecked`.

        Args:
            unsaved: the editor's texts by path.
        """
        if open_sandbox().level == "none":
            return "", shell.NO_SANDBOX
        texts = {path: tuple(text.split("\n")) for path, text in unsaved.items()}
        config = replace(self._config.edit, lint="", evidence=False)
        with EditChecks(root, config, texts, self._secrets, self._config.agent) as checks:
            results = checks.run({}, stopped)
        for found in results.checks:
            names = ", ".join(sorted(failed_tests(found.text)))
            return "passed" if found.is_ok else "failed", names or found.text
        return "", results.note

    def offered(self) -> list[AgentModel]:
        """Return the models and agents that may work on a task, the default first."""
        default = self._config.agent.model or self._models.names()[0]
        rows: list[AgentModel] = [
            {"name": name, "title": "", "missing": "", "is_agent": False}
            for name in self._models.names()
        ]
        rows += self._foreign.rows() if self._foreign is not None else []
        return sorted(rows, key=lambda row: row["name"] != default)

    def record(
        self, state: RunState, work: Work, stopped: Stop, *, is_checked: bool = False
    ) -> RecordedTurn:
        """Store the changes of a run as a turn of edits.

        Args:
            is_checked: the user's tests pass with them; those that no test needs are marked.

        Raises:
            AgentFailed: the changes cannot be read.
        """
        tree = work.tree
        assert isinstance(tree, Tree)
        changes = result.file_changes(tree)
        notes = [*changes.notes, *tree.problems]
        if not changes.files:
            return RecordedTurn(notes=tuple(notes))
        files = changes.files
        if is_checked:
            with contextlib.suppress(Cancelled):
                files = self._without_unneeded(tree, changes, stopped)
        if number := minimal.count(files):
            notes.append(f"{counted(number, 'change')} that no test needs: marked, and folded")
        tests = result.changed_tests(tree.root, files)
        if is_checked and tests:
            notes.append(
                f"The tests passed, but these tests were changed: {', '.join(map(quoted, tests))}"
            )
        key = self._record(tree.root, state.task, files, changes.bases, state.key)
        paths = [each.to or each.path for each in files]
        made = [change for each in files for change in each.changes]
        return RecordedTurn(
            key,
            tuple(paths),
            tuple(notes),
            attempts.digest(files),
            sum(len(each.new) for each in made),
            sum(len(each.old) for each in made),
            bool(tests),
        )

    def _without_unneeded(
        self, tree: Tree, changes: result.RunChanges, stopped: Stop
    ) -> tuple[FileChange, ...]:
        """Return the changes of a run, with those that no test needs marked.

        Raises:
            Cancelled: the run was stopped.
        """
        config = self._config
        checks = checks_of(tree, open_sandbox(), config.agent, config.edit)
        names = tuple(dict.fromkeys((tree.root, tree.path)))
        files = Files(tree.path, names, tree.secret_reason, tree.folder)

        def write(name: str, lines: Lines) -> None:
            file = files.read(name)
            files.write(name, file.text.with_lines(lines), file.mode)

        try:
            with tree.restoring():
                return minimal.marked(
                    tree.root, changes.files, changes.bases, write, checks, stopped.is_set
                )
        except Denied:  # a test has changed a file
            return changes.files

    def _open_tree(self, wanted: RunRequest) -> Tree:
        if not wanted.is_new:
            return Tree.open(wanted.root, wanted.folder)
        return Tree.create(
            wanted.root,
            wanted.folder,
            unsaved=wanted.unsaved,
            secrets=self._secrets,
            cancel=wanted.stopped.is_set,
        )

    def _facts(self, wanted: RunRequest, tree: Tree, where: Path, context_tokens: int) -> str:
        """Return what a model should know of the project at the start.

        Args:
            where: the path at which commands see the copy.
        """
        names = sorted(each.name + "/" * each.is_dir() for each in tree.path.iterdir())
        top = [name for name in names if name != ".git/"]
        more = f" and {len(top) - MAX_TOP} more" if len(top) > MAX_TOP else ""
        lines = [f"The project is in {where}. Its top level: {', '.join(top[:MAX_TOP])}{more}."]
        edit = self._config.edit
        if edit.test:
            lines.append(f"Its tests: {edit.test}")
        listed = [
            f"- {relative_name(wanted.root, skill.path)}: {skill.description}"
            for skill in prompts.skills(wanted.root)[:MAX_SKILLS]
        ]
        if listed:
            lines.append("\n".join([SKILLS, *listed]))
        reader = Reader(wanted.root, self._secrets, wanted.unsaved)
        left = int(context_tokens * RULES_SHARE * BYTES_PER_TOKEN)
        for item in rules.applicable(reader):
            if not item.is_left_out and len(item.text) <= left:
                left -= len(item.text)
                lines.append(f"Rules of the user ({os.path.basename(item.path)}):\n{item.text}")
        return "\n\n".join(lines)
