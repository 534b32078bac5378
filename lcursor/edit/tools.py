"""What all edits of an editor share, and the steps that they have in common.

Owns the way from an instruction to what the model reads besides the region, from a name to a model
that can be asked, and from changes to a turn that is proposed. Blocks; on an edit's thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from lcursor.code import languages
from lcursor.config import EditConfig
from lcursor.context import gather, layout, prompts
from lcursor.context.codebase import Codebase
from lcursor.context.items import Item, Seen
from lcursor.edit import diagnostics, diff
from lcursor.edit.histories import Histories
from lcursor.edit.job import Job, Teller
from lcursor.edit.permission import Permissions
from lcursor.edit.records import Check, FileChange, Format, Lines, Region
from lcursor.edit.rewriting import checks, region
from lcursor.edit.rewriting.attempts import Attempts, Made
from lcursor.edit.rewriting.rewrite import Rewriter
from lcursor.edit.rewriting.task import Failed, Task
from lcursor.edit.rewriting.trial import Trial
from lcursor.edit.sources import Sources, project_of
from lcursor.llm.pool import Connection, ModelPool
from lcursor.protocol_chat import ChatAttachment
from lcursor.protocol_edit import EditBuffer

T = TypeVar("T")
Retrieve = Callable[[Path], "Codebase"]
Sees = Callable[[str, int], "Sequence[Seen]"]
CONTEXT_SHARE = 2
"""One part in so many of the model's context is for what is attached, where that is known."""
REGION_TIMES = 2.3
"""A region is read once and written once, and what is written may be longer."""
FIXED_TOKENS = 600
"""Of the prompt: what the model is told, and the instruction."""
CODEBASE_SHARE = 4
UNKNOWN_TOKENS = 8192
"""Of a context that nobody knows."""
TITLE_CHARS = 60


@dataclass(frozen=True, slots=True)
class Tools:
    """What all edits share."""

    config: EditConfig
    models: ModelPool
    codebase: Retrieve
    secrets: tuple[str, ...]
    histories: Histories
    permissions: Permissions
    using: Callable[[], None]
    """Called when a model's cache is filled with an edit."""
    seen: Sees = lambda _chat, _message: ()
    """Returns what a model had read when it wrote a message of a chat, the newest first."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An instruction with what belongs to it."""

    text: str
    """With its command written out."""
    items: tuple[Item, ...] = ()
    note: str = ""

    def context(self, limit_tokens: int, count: Callable[[str], int]) -> tuple[str, str]:
        """Return what is attached as the model reads it, and a note on what has no room.

        Args:
            limit_tokens: of all of it; 0 where nobody knows.
            count: of a text's tokens.
        """
        kept, out, left = list[Any](), list[str](), limit_tokens or UNKNOWN_TOKENS
        for item in self.items:
            cost = 0 if item.is_left_out else count(layout.block(item))
            if cost > left:
                out.append(item.name)
                continue
            left -= cost
            kept.append(item)
        told = [f"{each.name}: {each.note}" for each in kept if each.is_left_out and each.note]
        told += [f"{name}: there is no room for it in the model's context" for name in out]
        note = "\n".join(filter(None, (self.note, *told)))
        return clean(layout.write(kept)), note


@dataclass(slots=True)
class Alternatives:
    """What was proposed for one edit before."""

    turns: list[str] = field(default_factory=list)
    lines: Lines = ()
    """Of the last one's region."""


def sources(
    tools: Tools, path: str, buffers: Sequence[EditBuffer], here: str = "", root: Path | None = None
) -> Sources:
    """Return the texts that an edit may read."""
    return Sources(root or project_of(path), buffers, here, tools.secrets)


def asked(
    job: Job,
    tools: Tools,
    texts: Sources,
    instruction: str,
    attachments: Sequence[ChatAttachment] = (),
    buffers: Sequence[EditBuffer] = (),
    limit_tokens: int = 0,
) -> Asked:
    """Return an instruction with all that it mentions, each thing with a note why, or why not."""
    job.progress("context")
    offered: list[ChatAttachment] = [
        {
            "kind": "buffer",
            "name": texts.name(each["path"]),
            "path": each["path"],
            "first_row": 0,
            "text": each["text"] + "\n",
            "is_offered": True,
        }
        for each in buffers
        if each["path"]
    ]
    sent = {os.path.realpath(each["path"]) for each in attachments if each["kind"] == "buffer"}
    offered = [each for each in offered if os.path.realpath(each["path"]) not in sent]
    share = limit_tokens // CODEBASE_SHARE if limit_tokens else gather.CODEBASE_TOKENS
    items = gather.gather(
        instruction,
        root=texts.root,
        path=texts.current(),
        attachments=[*attachments, *offered],
        retriever=tools.codebase(texts.root),
        secrets=tools.secrets,
        cancel=job.cancel.is_set,
        with_rules=tools.models.config.rules,
        codebase_tokens=min(gather.CODEBASE_TOKENS, share),
    )
    expanded = prompts.expand(instruction, texts.root)
    job.check()
    return Asked(clean(expanded.text), tuple(items), expanded.note)


def reach(job: Job, tools: Tools, wished: str, own: str = "") -> Connection:
    """Return a model that can be asked, after its server was found or started.

    Args:
        job: that asks.
        tools: as they are.
        wished: name of the model; "" for the one of the settings.
        own: the setting of this kind of work.
    """
    name = tools.models.choose(wished or own or tools.config.model, "", "")
    if tools.models.known(name) is None:
        job.progress("server")
    reached = tools.models.connect(name, job.cancel)
    job.check()
    tools.using()
    return reached


def surely(job: Job, tools: Tools, reached: Connection, ask: Callable[[Connection], T]) -> T:
    """Ask a model that was reached; once more where our own server went before it was asked."""
    return tools.models.with_retry(reached, ask, lambda: reach(job, tools, reached.name))


def room(reached: Connection, old: Lines = ()) -> int:
    """Return how many tokens what is attached may have; 0 where nobody knows.

    Args:
        reached: the model.
        old: of the region, which is read and written.
    """
    total = reached.context_tokens
    if not total:
        return 0
    own = int(counter(reached)("\n".join(old)) * REGION_TIMES)
    return max(min(total // CONTEXT_SHARE, total - own - FIXED_TOKENS), 1)


def counter(reached: Connection) -> Callable[[str], int]:
    """Return what counts a text's tokens without waiting for a server."""
    return lambda text: reached.counter.known(text)[0]


def region_of(
    tools: Tools, reached: Connection, lines: Lines, language: str, first_row: int, last_row: int
) -> Region:
    """Return the rows that are written anew for a selection or a cursor."""
    return region.grow(
        lines, language, first_row, last_row, tools.config.region_tokens, counter(reached)
    )


def language_of(path: str, lines: Lines, filetype: str = "") -> str:
    """Return the language of a text, by its path, else by what the editor says."""
    found = languages.detect(path, lines[0] if lines else "")
    if found == languages.TEXT and filetype in languages.EXTENSIONS:
        return filetype
    return found


def format_of(tools: Tools, old: Lines) -> Format:
    """Return how the model shall write its change of a region; what is empty is written whole."""
    known: dict[str, Format] = {"search_replace": "search_replace", "udiff": "udiff"}
    return known.get(tools.config.format, "whole") if "".join(old).strip() else "whole"


def written(
    job: Job,
    tools: Tools,
    reached: Connection,
    texts: Sources,
    task: Task,
    teller: Teller,
    trial: Trial,
    remark: str = "",
    before: Lines = (),
    temperature: float | None = None,
    *,
    is_whole_edit: bool = True,
) -> Made:
    """Have a region written anew, checked, and tried again where it is not good.

    Args:
        job: that needs it.
        tools: as they are.
        reached: the model.
        texts: that it may read.
        task: what is written.
        teller: told how it goes on.
        trial: runs the commands that may run.
        remark: what was wrong with another alternative, in the user's words.
        before: the text that the remark is about.
        temperature: least; None for that of the settings.
        is_whole_edit: whether nothing else changes. Where something does, linter, tests and
            language servers would see a half of the edit: `checked_together` asks them at its end.

    Raises:
        ReplyUnusable: no try wrote code.
    """
    config = tools.config
    looks = diagnostics.checker(job, task.path) if is_whole_edit else None
    if not is_whole_edit:
        trial = Trial(texts.root, replace(config, lint="", test=""))  # the formatter alone
    if temperature is not None:
        config = replace(config, temperature=max(temperature, config.temperature))
    job.check()
    tools.using()
    failed = (Failed((), before),) if before else ()

    def write(model: Connection) -> Made:
        attempts = Attempts(Rewriter(model, config), trial, config, looks)
        return attempts.run(task, teller, job.cancel, remark, before=failed)

    made = surely(job, tools, reached, write)
    tools.models.record_usage(reached.name, made.usage)
    job.cost.add(made.usage, made.attempts, made.passes)
    job.check()
    return made


def checked_together(
    job: Job, texts: Sources, trial: Trial, files: Sequence[FileChange]
) -> tuple[list[FileChange], str]:
    """Run linter and tests once on all changes of an edit; return these with it, and a note.

    Language servers are asked where one file changes: of the others they would see the old text.

    Raises:
        Cancelled: the job was stopped meanwhile.
    """
    after: dict[str, Lines | None] = {}
    for each in files:
        old = texts.read(each.path) or ()
        new = tuple(diff.apply(old, each.changes))
        after[each.path] = None if each.kind in ("delete", "rename") else new
        if each.kind == "rename":
            after[each.to] = new
    found: list[Check] = []
    if len(files) == 1 and files[0].kind == "edit":
        path = files[0].path
        looks = diagnostics.checker(job, path)
        looked = looks(path, texts.read(path) or (), after[path] or ()) if looks else None
        found += [looked] if looked is not None else []
    note = ""
    if files and trial.has_commands:
        job.progress("checking")
        tried = trial.checks(after, job.cancel)
        found, note = [*found, *tried.checks], tried.note
    return [replace(each, checks=(*each.checks, *found)) for each in files], note


def propose(
    job: Job,
    tools: Tools,
    texts: Sources,
    files: Sequence[FileChange],
    *,
    title: str,
    note: str = "",
    chat: str = "",
    alternative: int = 1,
    ticks: Mapping[str, int] | None = None,
) -> str:
    """Keep a turn and show it; return its key."""
    job.check()
    short = title_of(title)
    bases = {each.path: texts.base(each.path) for each in files if each.base}
    key = tools.histories.begin(texts.root, short, files, chat, bases)
    job.say(
        "edit.proposed",
        turn=key,
        title=short,
        alternative=alternative,
        files=[texts.to_wire(each, (ticks or {}).get(each.path)) for each in files],
        note=clean(note),
        attempts=job.cost.most_attempts,
        chat=chat,
    )
    return key


def checked(texts: Sources, change: FileChange) -> FileChange:
    """Return a change with what its static checks say, where it was not written by a rewrite."""
    if change.kind not in ("edit", "rename") or not change.changes:
        return change
    old = texts.read(change.path)
    if old is None:
        return change
    new = diff.apply(old, change.changes)
    rows = Region(change.changes[0].first_row, change.changes[-1].last_row, "")
    language = language_of(change.path, old)
    found: tuple[Check, ...] = checks.check(old, new, rows, language)
    return replace(change, checks=(*change.checks, *found))


def title_of(text: str) -> str:
    """Return the beginning of a text on one line."""
    words = clean(" ".join(text.split()))
    return words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 1].rstrip() + "…"


def clean(text: str) -> str:
    """Return a text that can travel as UTF-8: other bytes become question marks."""
    return text.encode("utf-8", "replace").decode()
