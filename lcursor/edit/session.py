"""The steps that all kinds of edits share.

Gather the prompt's context, connect to a model, rewrite a region, check, and propose the changes as
a turn. Blocks; on the run's thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lcursor.changes import diff
from lcursor.changes.histories import Histories
from lcursor.changes.records import FileChange, Lines, Region
from lcursor.changes.sources import Sources
from lcursor.code import languages
from lcursor.config import AgentConfig, EditConfig
from lcursor.context import gather, layout, prompts
from lcursor.context.codebase import Codebase
from lcursor.context.items import Item, Seen
from lcursor.context.servers import ServersOf, no_servers
from lcursor.edit.rewriting import region
from lcursor.edit.rewriting.retry import RetryLoop, RewriteResult
from lcursor.edit.rewriting.rewriter import Rewriter
from lcursor.edit.rewriting.task import FailedAttempt, Task
from lcursor.edit.run import EditRun, RunListener
from lcursor.llm.pool import Connection, ModelPool
from lcursor.project.redaction import encodable
from lcursor.protocol.chat import ChatAttachment
from lcursor.protocol.edit import EditBuffer
from lcursor.workspace import checks
from lcursor.workspace.approval import CheckApprovals
from lcursor.workspace.edit_checks import CheckResults, EditChecks

T = TypeVar("T")
CONTEXT_SHARE = 2
"""Maximum part of a model's context for attachments, as a divisor."""
REGION_FACTOR = 2.3
"""Tokens per token of a region: it is read and then written, perhaps longer."""
FIXED_TOKENS = 600
"""Tokens of the system prompt and the instruction."""
CODEBASE_SHARE = 4
UNKNOWN_TOKENS = 8192
"""Assumed context if the server does not report it."""
TITLE_CHARS = 60


@dataclass(frozen=True, slots=True)
class EditDeps:
    """The dependencies that all edits of an editor share."""

    config: EditConfig
    models: ModelPool
    codebase: Callable[[Path], Codebase]
    secrets: tuple[str, ...]
    histories: Histories
    approvals: CheckApprovals
    on_model_use: Callable[[], None]
    """Called when an edit uses a model, and so replaces its KV cache."""
    agent: AgentConfig = field(default_factory=AgentConfig)
    """What commands in a sandbox see."""
    seen: Callable[[str, int], Sequence[Seen]] = lambda _chat, _message: ()
    """Returns the text in the prompt of a chat message, the newest first."""
    servers_of: ServersOf = no_servers
    """Returns the MCP servers whose resources and prompts an instruction may use."""
    chat_root: Callable[[str], str] = lambda _chat: ""
    """Returns the root of a chat's project; "" if there is no such chat."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction and the context of its mentions."""

    text: str
    items: tuple[Item, ...] = ()
    note: str = ""

    def context(self, connection: Connection, old: Lines = ()) -> tuple[str, str]:
        """Return the attachments for a model's prompt, and a note on omitted ones."""
        used, dropped, count = list[Item](), list[str](), counter(connection)
        left = context_budget(connection, old) or UNKNOWN_TOKENS
        for item in self.items:
            cost = 0 if item.is_left_out else count(layout.block(item))
            if cost > left:
                dropped.append(item.name)
                continue
            left -= cost
            used.append(item)
        notes = [f"{each.name}: {each.note}" for each in used if each.is_left_out and each.note]
        notes += [f"{name}: it does not fit into the model's context" for name in dropped]
        return encodable(layout.write(used)), "\n".join(filter(None, (self.note, *notes)))


class EditSession:
    """One edit and its dependencies; `current` is the path of the current file, "" for none."""

    def __init__(
        self,
        run: EditRun,
        services: EditDeps,
        path: str,
        buffers: Sequence[EditBuffer],
        current: str = "",
    ) -> None:
        self.run, self.services, self.config = run, services, services.config
        self.sources = Sources.for_path(path, buffers, current, services.secrets)
        self.commands = self._edit_checks(self.config)
        self.connection: Connection
        """The model, after `connect`."""
        self.is_whole_edit = True
        """Whether one rewritten region is the whole edit. Otherwise linter, tests and language
        servers would see only a part of it, and `check_together` runs them at the end."""

    def allow_commands(self) -> str:
        """Remove lint and test commands that must not run; return a note about them."""
        sources = self.sources
        config, note = self.services.approvals.allowed(
            sources.root, self.config, self.run.ask, self.run.stopped, sources.unsaved()
        )
        self.commands = self._edit_checks(config)
        return note

    def _edit_checks(self, config: EditConfig) -> EditChecks:
        services, sources = self.services, self.sources
        return EditChecks(sources.root, config, sources.unsaved(), services.secrets, services.agent)

    def question(
        self,
        instruction: str,
        attachments: Sequence[ChatAttachment] = (),
        buffers: Sequence[EditBuffer] = (),
        old: Lines = (),
    ) -> Instruction:
        """Return an instruction with its mentions and attachments."""
        self.run.progress("context")
        services, root = self.services, self.sources.root
        attached = {
            os.path.realpath(each["path"]) for each in attachments if each["kind"] == "buffer"
        }
        offered = [
            ChatAttachment(
                kind="buffer",
                name=self.sources.name(each["path"]),
                path=each["path"],
                first_row=0,
                text=each["text"] + "\n",
                is_offered=True,
            )
            for each in buffers
            if each["path"] and os.path.realpath(each["path"]) not in attached
        ]
        limit = context_budget(self.connection, old)
        share = limit // CODEBASE_SHARE if limit else gather.CODEBASE_TOKENS
        servers, cancel = services.servers_of(root), self.run.stopped.is_set
        expanded = prompts.expand(instruction, root, servers, cancel)
        items = gather.gather(
            instruction,
            root=root,
            path=self.sources.current(),
            attachments=[*attachments, *offered],
            codebase=services.codebase(root),
            servers=servers,
            expanded=expanded,
            secrets=services.secrets,
            cancel=cancel,
            with_rules=services.models.config.rule_files,
            codebase_tokens=min(gather.CODEBASE_TOKENS, share),
        )
        self.run.check()
        return Instruction(encodable(expanded.text), tuple(items), expanded.note)

    def connect(self, model: str, setting: str = "") -> Connection:
        """Connect to a model, starting its server if necessary."""
        services = self.services
        name = services.models.choose(model or setting or self.config.model, "")
        if services.models.known(name) is None:
            self.run.progress("server")
        report = partial(self.run.progress, "server")
        connection = services.models.connect(name, self.run.stopped, report)
        self.run.check()
        services.on_model_use()
        self.connection = connection
        return connection

    def with_retry(self, ask: Callable[[Connection], T]) -> T:
        """Call the model; retry once if our own server had ended."""
        name = self.connection.name
        return self.services.models.with_retry(self.connection, ask, lambda: self.connect(name))

    def region(self, lines: Lines, language: str, first_row: int, last_row: int) -> Region:
        """Return the rows to rewrite for a selection or a cursor."""
        limit, count = region.MAX_REGION_TOKENS, counter(self.connection)
        return region.grow(lines, language, first_row, last_row, limit, count)

    def task(
        self, path: str, lines: Lines, region: Region, instruction: str, **fields: Any
    ) -> Task:
        """Return the task to rewrite a region of a file."""
        name, language = self.sources.name(path), language_of(path, lines)
        defaults = {"path": path, "name": name, "language": language, "lines": lines}
        return Task(**{**defaults, "region": region, "instruction": instruction, **fields})

    def rewrite(
        self,
        task: Task,
        prefix: str = "",
        *,
        tick: int | None = None,
        remark: str = "",
        before: Lines = (),
        temperature: float = 0.0,
    ) -> RewriteResult:
        """Rewrite and check a region, with retries.

        Args:
            prefix: prefix of the progress, if the edit has several rewrites.
            tick: tick of the text, if it is not from `sources`.
            remark: the user's comment on an earlier alternative.
            before: the earlier alternative.
            temperature: temperature of the first attempt.
        """
        run, config, commands = self.run, self.config, self.commands
        if not self.is_whole_edit:
            commands = EditChecks(self.sources.root, replace(config, lint="", test=""))
        tick = self.sources.tick(task.path) if tick is None else tick
        listener = RunListener(run, task.path, tick, prefix)
        run.check()
        self.services.on_model_use()
        failed = (FailedAttempt((), before),) if before else ()

        def write(model: Connection) -> RewriteResult:
            loop = RetryLoop(Rewriter(model, config), commands, config)
            return loop.run(
                task, listener, run.stopped, remark, before=failed, temperature=temperature
            )

        result = self.with_retry(write)
        run.add_cost(result.usage, result.attempts)
        run.check()
        return result

    def check_together(self, files: Sequence[FileChange]) -> tuple[list[FileChange], str]:
        """Run linter and tests once on all changes of an edit; add the results, return a note."""
        after, results = dict[str, Lines | None](), CheckResults()
        for change in files:
            old = self.sources.read(change.path) or ()
            new = diff.apply(old, change.changes)
            after[change.path] = None if change.kind in ("delete", "rename") else new
            if change.kind == "rename":
                after[change.to] = new
        if files and self.commands.has_any:
            self.run.progress("checking")
            results = self.commands.run(after, self.run.stopped)
        checked = [replace(each, checks=(*each.checks, *results.checks)) for each in files]
        return checked, results.note

    def checked(self, change: FileChange) -> FileChange:
        """Return a change that is not from a rewrite, with its static checks."""
        old = self.sources.read(change.path)
        if change.kind not in ("edit", "rename") or not change.changes or old is None:
            return change
        new = diff.apply(old, change.changes)
        rows = Region(change.changes[0].first_row, change.changes[-1].last_row, "")
        new_checks = checks.check(old, new, rows, language_of(change.path, old))
        return replace(change, checks=(*change.checks, *new_checks))

    def propose(
        self,
        files: Sequence[FileChange],
        *,
        title: str,
        notes: Sequence[str] = (),
        chat: str = "",
        alternative: int = 1,
        ticks: Mapping[str, int] | None = None,
    ) -> str:
        """Record a turn and show it; return its key."""
        self.run.check()
        sources, short = self.sources, short_title(title)
        bases = {each.path: sources.base(each.path) for each in files if each.base}
        histories = self.services.histories
        key = histories.begin(sources.root, short, files, chat, bases)
        changes = histories.proposed(key)
        self.run.send(
            "edit.proposed",
            turn=key,
            title=short,
            alternative=alternative,
            files=[sources.to_wire(each, (ticks or {}).get(each.path)) for each in changes],
            note=encodable("\n".join(dict.fromkeys(filter(None, notes)))),
            attempts=self.run.max_attempts,
            chat=chat,
        )
        return key


def context_budget(connection: Connection, old: Lines = ()) -> int:
    """Return the maximum tokens of the attachments; 0 if unknown."""
    total = connection.context_tokens
    if not total:
        return 0
    region_tokens = int(counter(connection)("\n".join(old)) * REGION_FACTOR)
    return max(min(total // CONTEXT_SHARE, total - region_tokens - FIXED_TOKENS), 1)


def counter(connection: Connection) -> Callable[[str], int]:
    """Return a function that counts the tokens of a text without querying a server."""
    return lambda text: connection.client.count(text, may_ask=False)[0]


def language_of(path: str, lines: Lines, filetype: str = "") -> str:
    """Return the language of a text by its path, or else by the editor's filetype."""
    detected = languages.detect(path, lines[0] if lines else "")
    if detected == languages.TEXT and filetype in languages.EXTENSIONS:
        return filetype
    return detected


def short_title(text: str) -> str:
    """Return the start of a text on one line."""
    words = encodable(" ".join(text.split()))
    return words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 1].rstrip() + "…"
