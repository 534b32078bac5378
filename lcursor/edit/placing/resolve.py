"""From the blocks of a reply to changes of files: all of them, or none, or a question.

Knows no editor, no disk and no model: texts come from `Files`. Pure but for what that reads; any
thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lcursor.code import languages
from lcursor.context.items import Seen
from lcursor.edit import diff
from lcursor.edit.placing import infos, settle
from lcursor.edit.placing.paths import Paths
from lcursor.edit.placing.pieces import Block, Files
from lcursor.edit.placing.settle import Choice, Doubt, Refusal
from lcursor.edit.records import Change, FileChange, Lines, digest

SHELLS = frozenset({"bash", "fish", "powershell", "batch"})

Sees = Callable[[str], Sequence[Seen]]
"""Returns what of a file the writer of a reply had read, the newest first."""

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
    """Nothing of it can be done."""

    reason: str


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
    sees: Sees = lambda _: (),
) -> Resolved | Ask | Refused:
    """Return what a reply does to files.

    Args:
        blocks: of `reply.blocks`.
        files: what is there.
        chosen: of `Ask.chosen`, after the user answered.
        sees: what its writer had read, where that is known.
    """
    known = dict(chosen or {})
    blocks, note = _meant(blocks, files)
    if not blocks:
        return Refused(note or "There is no code in it")
    paths = Paths(files)
    drafts: dict[str, _Draft] = {}
    for number, block in enumerate(blocks):
        problem = _problem(block)
        if problem:
            return Refused(problem)
        try:
            _take(f"{number}", block, files, paths, drafts, known, sees)
        except Doubt as doubt:
            return Ask(doubt.text, doubt.choices, doubt.key, known)
        except Refusal as refusal:
            return Refused(str(refusal))
    changes = tuple(made for draft in drafts.values() if (made := _change(draft, paths)))
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
            and (has_named or not infos.are_related(block.language, own) or _is_run(block, own))
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


def _take(
    key: str,
    block: Block,
    files: Files,
    paths: Paths,
    drafts: dict[str, _Draft],
    known: Mapping[str, Choice],
    sees: Sees,
) -> None:
    """Do what a block says to the draft of its file.

    Raises:
        Doubt: its file, or its place, is not sure.
        Refusal: it cannot be done.
    """
    renamed = {draft.to: path for path, draft in drafts.items() if draft.to}
    path = renamed.get(paths.written(block.path)) or paths.find(f"{key}.path", block, known)
    draft, seen = drafts.get(path), sees(path)
    if draft is None:
        base = files.read(path)
        draft = drafts[path] = _Draft(path, base, base)
    if block.kind == "delete":
        if draft.lines is None:
            raise Refusal(f"There is no file {block.path} to be deleted")
        if block.pairs:
            left = settle.pairs(key, block, path, draft.lines, known, seen)
            if any(line.strip() for line in left):
                raise Refusal(f"{block.path} has more in it than what is deleted")
        draft.lines = None
        return
    if block.kind == "rename":
        to = paths.new(block.to)
        if draft.lines is None:
            raise Refusal(f"There is no file {block.path} to be renamed")
        if files.read(to) is not None or to in drafts:
            raise Refusal(f"{block.to} is there already")
        draft.to = to
    if draft.lines is None:
        draft.lines = settle.created(block, path)
    elif block.kind == "create":
        if [line for line in draft.lines if line.strip()]:
            if tuple(draft.lines) != tuple(block.lines):
                raise Refusal(f"{block.path} is there already")
        else:
            draft.lines = block.lines
    elif block.pairs:
        draft.lines = settle.pairs(key, block, path, draft.lines, known, seen)
    elif block.form == "fence":
        if draft.fenced:
            _refuse_again(key, block, draft, known)
        before = draft.lines
        draft.lines = settle.fence(key, block, path, draft.lines, known, seen)
        if draft.base is not None and before == draft.base:
            draft.fenced = diff.changes(draft.base, draft.lines)


def _refuse_again(key: str, block: Block, draft: _Draft, known: Mapping[str, Choice]) -> None:
    """Raise `Refusal` where another piece of code is for the same lines: one is a draft."""
    assert draft.base is not None
    try:
        alone = settle.fence(key, block, draft.path, draft.base, known)
    except (Doubt, Refusal):
        return
    for change in diff.changes(draft.base, alone):
        for other in draft.fenced:
            if change.first_row <= other.last_row and other.first_row <= change.last_row:
                raise Refusal(f"Two pieces of code differ about the same lines of {block.path}")


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
