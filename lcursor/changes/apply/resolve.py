"""Turn the blocks of a reply into changes of files: all of them, none, or a question.

Texts come from `TextSource`; independent of editor, disk and model. Any thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lcursor.changes import diff, fences
from lcursor.changes.apply.apply_block import (
    LEAVES_OUT,
    Ambiguous,
    CannotApply,
    Choice,
    LeavesOut,
    Target,
    apply_fence,
    apply_pairs,
    create,
)
from lcursor.changes.apply.blocks import Block, TextSource
from lcursor.changes.lines import has_text, without_returns
from lcursor.changes.records import Change, FileChange, FileKind, Lines, digest
from lcursor.code import languages
from lcursor.context.items import Seen
from lcursor.project.redaction import encodable, with_bytes

MAX_CHOICES = 12
"""Maximum number of files to choose from."""
SHELLS = frozenset({"bash", "fish", "powershell", "batch"})

__all__ = ["Ask", "Choice", "Resolved", "Unresolved", "resolve"]


@dataclass(frozen=True, slots=True)
class Resolved:
    """The changes of files in a reply."""

    files: tuple[FileChange, ...]
    note: str = ""
    """Note on left-out blocks."""


@dataclass(frozen=True, slots=True)
class Ask:
    """The file or the position of a block is uncertain, so the user chooses."""

    text: str
    choices: tuple[Choice, ...]
    key: str
    answers: Mapping[str, Choice]

    def chosen(self, choice: int) -> Mapping[str, Choice]:
        """Return the answers for `resolve` after the user chose."""
        return {**self.answers, self.key: self.choices[choice]}


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A reply cannot be applied, or, if there are sketches, not without a model."""

    reason: str
    sketches: tuple[tuple[str, Lines], ...] = ()
    """Files and incomplete code, which a model could complete."""
    files: tuple[FileChange, ...] = ()
    """The changes of the rest of the reply."""
    note: str = ""


def resolve(
    blocks: Sequence[Block],
    files: TextSource,
    answers: Mapping[str, Choice] | None = None,
    attached: Callable[[str], Sequence[Seen]] = lambda _: (),
) -> Resolved | Ask | Unresolved:
    """Return the changes of files in a reply, given the answers of `Ask.chosen`.

    `attached` returns the rows of a file that were in the model's prompt, the newest first; they
    decide between equal matches.
    """
    answers = dict(answers or {})
    blocks = [_with_path(block, files) for block in blocks]
    blocks, note = _without_examples(blocks, files)
    if not blocks:
        return Unresolved(note or "It contains no code")
    drafts = _Drafts(files, answers, attached)
    sketches: list[tuple[str, Lines]] = []
    for number, block in enumerate(blocks):
        if not block.is_closed:
            return Unresolved("It was cut off before its end")
        if block.problem:
            return Unresolved(f"A block cannot be read: {block.problem}")
        try:
            drafts.apply(f"{number}", block)
        except Ambiguous as doubt:
            return Ask(doubt.text, doubt.choices, doubt.key, answers)
        except LeavesOut as error:
            sketches.append((files.absolute(drafts.path), error.code))
        except CannotApply as error:
            return Unresolved(str(error))
    changes = drafts.changes()
    return (
        Unresolved(LEAVES_OUT, (*sketches,), changes, note) if sketches else Resolved(changes, note)
    )


def _without_examples(blocks: Sequence[Block], files: TextSource) -> tuple[list[Block], str]:
    """Leave out blocks that are not changes, such as shell commands and output."""
    current = files.current()
    own_language = languages.detect(current) if current else languages.TEXT
    has_named = any(block.path and block.is_path_sure for block in blocks)

    def is_example(block: Block) -> bool:
        is_shell = block.language in SHELLS and own_language not in SHELLS
        is_other = is_shell or not fences.are_related(block.language, own_language)
        return block.form == "fence" and not block.path and (has_named or is_other)

    left_out = [block.language or "code" for block in blocks if is_example(block)]
    answers = [block for block in blocks if not is_example(block)]
    if not left_out:
        return answers, ""
    count = f"{len(left_out)} blocks that name" if len(left_out) > 1 else "1 block that names"
    return answers, f"Left out: {count} no file ({', '.join(sorted({*left_out}))})"


@dataclass(slots=True)
class _Draft:
    """The draft of one file."""

    path: str
    base: Lines | None
    """The lines of the file as a model got them: without CR at their ends, and encodable."""
    lines: Lines | None
    to: str = ""
    fenced: tuple[Change, ...] = ()
    """Changes of the first block of code."""

    @property
    def kind(self) -> FileKind:
        """The kind of change."""
        if self.base is None:
            return "create"
        return "delete" if self.lines is None else "rename" if self.to else "edit"


@dataclass(slots=True)
class _Drafts:
    """The files of a reply, with the blocks applied so far."""

    files: TextSource
    answers: Mapping[str, Choice]
    attached: Callable[[str], Sequence[Seen]]
    drafts: dict[str, _Draft] = field(default_factory=dict)
    path: str = ""
    """Path of the last block."""

    def apply(self, key: str, block: Block) -> None:
        """Apply a block to the draft of its file; raise `Ambiguous` or `CannotApply`."""
        renamed = {draft.to: path for path, draft in self.drafts.items() if draft.to}
        path = renamed.get(self.files.absolute(_clean_path(block.path))) if block.path else None
        path = path or _find_file(f"{key}.path", block, self.files, self.answers)
        if path not in self.drafts:
            read = self.files.read(path)
            base = None if read is None else without_returns([encodable(line) for line in read])
            self.drafts[path] = _Draft(path, base, base)
        self.path, draft = path, self.drafts[path]
        if draft.lines is None:
            if block.kind in ("delete", "rename"):
                raise CannotApply(f"There is no file {block.path} to {block.kind}")
            draft.lines = create(block, path)
            return
        it = Target(key, block, path, draft.lines, self.answers, self.attached(path))
        if block.kind == "delete":
            if block.pairs and any(map(has_text, apply_pairs(it))):
                raise CannotApply(f"{block.path} has other lines than the deleted ones")
            draft.lines = None
            return
        if block.kind == "rename":
            to = self.files.absolute(_clean_path(block.to))
            if self.files.read(to) is not None or to in self.drafts:
                raise CannotApply(f"{block.to} already exists")
            draft.to = to
        if block.kind == "create":
            if any(map(has_text, draft.lines)) and draft.lines != block.lines:
                raise CannotApply(f"{block.path} already exists")
            draft.lines = block.lines
        elif block.pairs:
            draft.lines = apply_pairs(it)
        elif block.form == "fence":
            if draft.fenced:
                _require_no_conflict(it, draft)
            draft.lines = apply_fence(it)
            if draft.base is not None and it.lines == draft.base:
                draft.fenced = diff.changes(draft.base, draft.lines)

    def changes(self) -> tuple[FileChange, ...]:
        """Return the changes of all files."""
        return tuple(
            self._change(draft, self.files.read(draft.path))
            for draft in self.drafts.values()
            if draft.base is not None or draft.lines is not None
        )

    def _change(self, draft: _Draft, old: Lines | None) -> FileChange:
        to = self.files.absolute(draft.to) if draft.to else ""
        new = diff.with_line_ends(old or (), with_bytes(draft.lines or (), old or ()))
        base = "" if old is None else digest(old)
        changes = diff.changes(old or (), new)
        return FileChange(self.files.absolute(draft.path), draft.kind, to, base, changes)


def _require_no_conflict(it: Target, draft: _Draft) -> None:
    """Raise `CannotApply` if an earlier block changed the same lines: one of them is a draft."""
    assert draft.base is not None
    try:
        alone = apply_fence(replace(it, lines=draft.base, attached=()))
    except (Ambiguous, CannotApply):
        return
    for change in diff.changes(draft.base, alone):
        for other in draft.fenced:
            if change.first_row <= other.last_row and other.first_row <= change.last_row:
                raise CannotApply(
                    f"Two blocks of code change the same lines of {it.name} differently"
                )


# Paths.


def _with_path(block: Block, files: TextSource) -> Block:
    """Return a block with the path that is only recognized because there is such a file."""
    for text in block.texts:
        path = _clean_path(text)
        is_of = fences.are_related(block.language, languages.detect(path))
        if is_of and files.read(path) is not None:
            first = block.lines[0] if block.form == "fence" and block.lines else ""
            heading = first if fences.comment_text(first) == text else block.heading
            return replace(block, path=path, heading=heading, is_path_sure=True)
    return block


def _find_file(key: str, block: Block, files: TextSource, answers: Mapping[str, Choice]) -> str:
    """Return the path of the file that a block changes; raise `Ambiguous` or `CannotApply`."""
    if key in answers:
        return answers[key].path
    if not block.path:
        if not files.current():
            raise CannotApply("It names no file")
        return files.current()
    candidates = _candidates(_clean_path(block.path), files)
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        shown = [(path, (files.read(path) or ())[:3]) for path in candidates[:MAX_CHOICES]]
        choices = (Choice(path, 0, 0, lines, "a file of that name") for path, lines in shown)
        raise Ambiguous(key, f"Which {block.path}?", tuple(choices))
    is_new = block.kind == "create" or block.form in {"fence", "search_replace"}
    if not is_new or block.kind not in {"edit", "create"} or block.is_elided:
        raise CannotApply(f"There is no file {block.path}")
    if not block.is_path_sure:
        raise CannotApply(f"There is no file {block.path}, and it is not marked as new")
    return files.absolute(_clean_path(block.path))


def _candidates(path: str, files: TextSource) -> list[str]:
    """Return the files that a path may mean; only the exact one if it exists."""
    if files.read(path) is not None:
        return [files.absolute(path)]
    if files.current().endswith(f"/{path}"):
        return [files.current()]
    paths = [one for one in files.all() if one.endswith(f"/{path}")]
    rest = path.partition("/")[2]  # without the project's own name in front
    is_named = "/" in rest or files.absolute(rest).endswith(f"/{path}")
    if not paths and rest and is_named and files.read(rest) is not None:
        paths = [rest]
    return sorted({files.absolute(one) for one in paths})


def _clean_path(path: str) -> str:
    """Return a path with slashes, and without `.` and `..`."""
    text = path.replace("\\", "/").strip()
    return os.path.normpath(text) if text else text
