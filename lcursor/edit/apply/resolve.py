"""From the blocks of a reply to changes of files: all of them, or none, or a question.

Knows no editor, no disk and no model: texts come from `Files`. Pure but for what that reads; any
thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lcursor.code import languages
from lcursor.context.items import Seen
from lcursor.edit import diff
from lcursor.edit.apply import fence_info
from lcursor.edit.apply.blocks import Block, Files
from lcursor.edit.apply.paths import Paths
from lcursor.edit.apply.place import (
    LEAVES_OUT,
    Ambiguous,
    CannotApply,
    Choice,
    LeavesOut,
    Target,
    create,
    place_fence,
    place_pairs,
)
from lcursor.edit.records import Change, FileChange, Lines, digest

SHELLS = frozenset({"bash", "fish", "powershell", "batch"})

Attached = Callable[[str], Sequence[Seen]]
"""Returns which rows of a file the writer of a reply had read, the newest first."""

__all__ = ["Ask", "Choice", "Refused", "Resolved", "resolve"]


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a reply does to files."""

    files: tuple[FileChange, ...]
    note: str = ""
    """What of it was left out, and why."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A block could go to several places, or its place is not sure."""

    text: str
    choices: tuple[Choice, ...]
    key: str
    known: Mapping[str, Choice]

    def chosen(self, choice: int) -> Mapping[str, Choice]:
        """Return what to resolve with once the user chose."""
        return {**self.known, self.key: self.choices[choice]}


@dataclass(frozen=True, slots=True)
class Refused:
    """A reply cannot be applied; not by rules, if there are sketches."""

    reason: str
    sketches: tuple[tuple[str, Lines], ...] = ()
    """Files and code that leaves something out, which a model could fill in."""
    files: tuple[FileChange, ...] = ()
    """What the rest of the reply does."""
    note: str = ""


@dataclass(slots=True)
class _Draft:
    """What has become of one file so far."""

    path: str
    base: Lines | None
    lines: Lines | None
    to: str = ""
    fenced: tuple[Change, ...] = ()
    """What the first piece of code changed."""


def resolve(
    blocks: Sequence[Block],
    files: Files,
    chosen: Mapping[str, Choice] | None = None,
    attached: Attached = lambda _: (),
) -> Resolved | Ask | Refused:
    """Return what a reply does to files.

    Args:
        blocks: of `reply.blocks`.
        files: what is there.
        chosen: of `Ask.chosen`, after the user answered.
        attached: what its writer had read, where that is known: it tells equal places apart.
    """
    known = dict(chosen or {})
    blocks, note = _meant(blocks, files)
    if not blocks:
        return Refused(note or "There is no code in it")
    paths = Paths(files)
    drafts = _Drafts(files, paths, known, attached)
    sketches: list[tuple[str, Lines]] = []
    for number, block in enumerate(blocks):
        problem = _problem(block)
        if problem:
            return Refused(problem)
        try:
            drafts.do(f"{number}", block)
        except Ambiguous as doubt:
            return Ask(doubt.text, doubt.choices, doubt.key, known)
        except LeavesOut as error:
            sketches.append((paths.absolute(drafts.path), error.code))
        except CannotApply as error:
            return Refused(str(error))
    changes = tuple(made for draft in drafts.drafts.values() if (made := _change(draft, paths)))
    if sketches:
        return Refused(LEAVES_OUT, tuple(sketches), changes, note)
    return Resolved(changes, note)


def _problem(block: Block) -> str:
    """Return why a block cannot be used, whatever is in the files."""
    if not block.is_closed:
        return "It was cut off before its end"
    return f"A block cannot be read: {block.problem}" if block.problem else ""


def _meant(blocks: Sequence[Block], files: Files) -> tuple[list[Block], str]:
    """Leave out what is no change: commands to be run, what a program prints."""
    current = files.current()
    own = languages.detect(current) if current else languages.TEXT
    found: list[Block] = []
    left: list[str] = []
    has_named = any(block.path and block.is_path_sure for block in blocks)
    for block in blocks:
        is_shown = (
            block.form == "fence"
            and not block.path
            and (
                has_named or not fence_info.are_related(block.language, own) or _is_run(block, own)
            )
        )
        if is_shown:
            left.append(block.language or "code")
        else:
            found.append(block)
    if not left:
        return found, ""
    count = f"{len(left)} blocks that name" if len(left) > 1 else "1 block that names"
    return found, f"Left out: {count} no file ({', '.join(sorted({*left}))})"


def _is_run(block: Block, own: str) -> bool:
    """Return whether a block is for a shell, and the file is none."""
    return block.language in SHELLS and own not in SHELLS


@dataclass(slots=True)
class _Drafts:
    """The files of a reply, as far as its blocks are done."""

    files: Files
    paths: Paths
    answers: Mapping[str, Choice]
    attached: Attached
    drafts: dict[str, _Draft] = field(default_factory=dict)
    path: str = ""
    """Of the last block."""

    def do(self, key: str, block: Block) -> None:
        """Do what a block says to the draft of its file.

        Raises:
            Ambiguous: its file, or its place, is not certain.
            CannotApply: it cannot be done.
        """
        renamed = {draft.to: path for path, draft in self.drafts.items() if draft.to}
        path = renamed.get(self.paths.written(block.path))
        path = path or self.paths.find(f"{key}.path", block, self.answers)
        if path not in self.drafts:
            base = self.files.read(path)
            self.drafts[path] = _Draft(path, base, base)
        self.path, draft = path, self.drafts[path]
        if draft.lines is None:
            if block.kind in ("delete", "rename"):
                raise CannotApply(f"There is no file {block.path} to {block.kind}")
            draft.lines = create(block, path)
            return
        it = Target(key, block, path, draft.lines, self.answers, self.attached(path))
        if block.kind == "delete":
            if block.pairs and any(line.strip() for line in place_pairs(it)):
                raise CannotApply(f"{block.path} has more in it than what is deleted")
            draft.lines = None
            return
        if block.kind == "rename":
            to = self.paths.new(block.to)
            if self.files.read(to) is not None or to in self.drafts:
                raise CannotApply(f"{block.to} is there already")
            draft.to = to
        if block.kind == "create":
            if any(line.strip() for line in draft.lines):
                if draft.lines != block.lines:
                    raise CannotApply(f"{block.path} is there already")
            else:
                draft.lines = block.lines
        elif block.pairs:
            draft.lines = place_pairs(it)
        elif block.form == "fence":
            if draft.fenced:
                _refuse_again(it, draft)
            draft.lines = place_fence(it)
            if draft.base is not None and it.lines == draft.base:
                draft.fenced = diff.changes(draft.base, draft.lines)


def _refuse_again(it: Target, draft: _Draft) -> None:
    """Raise `CannotApply` where another piece of code is for the same lines: one is a draft."""
    assert draft.base is not None
    try:
        alone = place_fence(replace(it, lines=draft.base, attached=()))
    except (Ambiguous, CannotApply):
        return
    for change in diff.changes(draft.base, alone):
        for other in draft.fenced:
            if change.first_row <= other.last_row and other.first_row <= change.last_row:
                raise CannotApply(f"Two pieces of code differ about the same lines of {it.name}")


def _change(draft: _Draft, paths: Paths) -> FileChange | None:
    """Return what was done to a file, None for nothing."""
    path = paths.absolute(draft.path)
    base, lines = draft.base, draft.lines
    if lines is None:
        if base is None:
            return None
        return FileChange(path, "delete", base=digest(base), changes=diff.changes(base, ()))
    if base is None:
        return FileChange(path, "create", changes=diff.changes((), lines))
    made = FileChange(path, base=digest(base), changes=diff.changes(base, lines))
    if draft.to:
        return replace(made, kind="rename", to=paths.absolute(draft.to))
    return made
