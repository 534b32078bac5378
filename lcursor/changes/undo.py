"""Undo, redo and resume turns, and keep later changes of the user.

Each is a three-way merge of the text after the turn, the current text, and the text before. A file
with conflicts stays unchanged, with a message. For files in buffers the changes are returned; the
others are written, all or none. Blocks for the disk; any thread.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lcursor.changes import diff, text, write
from lcursor.changes.history import History
from lcursor.changes.merge import inverse, merge, rebase
from lcursor.changes.records import Change, FileChange, Lines, digest, lines_of
from lcursor.changes.steps import FileOp, changed_paths, plan_steps
from lcursor.changes.text import Text
from lcursor.changes.turn import Action, FileTurn
from lcursor.errors import EditFailed, EditMissing
from lcursor.protocol.edit import EditBuffer

STAYS: Final = "stays as it is"
CHANGED: Final = f"was changed since, and {STAYS}"


@dataclass(frozen=True, slots=True)
class Reverted:
    """The result of undo or redo."""

    key: str
    title: str
    files: tuple[FileChange, ...] = ()
    """Changes that the editor must make in buffers."""
    paths: tuple[str, ...] = ()
    """Written, created or deleted files."""
    problems: tuple[str, ...] = ()
    """Messages about files that were not reverted."""


@dataclass(frozen=True, slots=True)
class ResumedTurn:
    """The open hunks of a turn, for the current texts."""

    files: tuple[FileChange, ...]
    problems: tuple[str, ...] = ()
    """Messages about left-out hunks."""


class _Unchanged(Exception):
    """A file stays unchanged, for the reason in the message."""


def revert(history: History, key: str, do: Action, buffers: Sequence[EditBuffer]) -> Reverted:
    """Undo or redo a turn on disk, and return the changes for buffers.

    Raises:
        EditMissing: there is no such turn, or nothing of it can be reverted.
        EditUnsaved: the files or the history cannot be written; nothing has changed.
        EditFailed: a file must not be written; nothing has changed.
    """
    loaded = _loaded(buffers)
    is_undo, problems = do == "undo", list[str]()
    files, operations, changes = list[FileTurn](), list[FileOp](), list[FileChange]()
    with write.locked(history):
        key = key or (history.undo_key() if is_undo else history.redo_key())
        if not key:
            words = "undone" if is_undo else "redone"
            raise EditMissing(f"there is no edit that can be {words}", "See :LCursor edit list")
        found = history.turn(key)
        for file in found.files:
            if not file.has_effect or file.is_undone == is_undo:
                continue
            try:
                operation, change = _reverted(history, file, is_undo, loaded)
            except (_Unchanged, EditFailed) as error:
                problems.append(str(error))
                continue
            files.append(replace(file, is_undone=is_undo))
            operations += [operation] if operation is not None else []
            changes += [change] if change is not None else []
        if not files and not problems:
            words = "applied" if is_undo else "undone"
            raise EditMissing(f"nothing of this edit is {words}", "See :LCursor edit list")
        if files:
            steps = plan_steps(operations, history.root, outside=True)
            write.commit(steps, history, key, do, files)
    paths = changed_paths(operations)
    return Reverted(key, found.title, tuple(changes), paths, tuple(problems))


def _loaded(buffers: Sequence[EditBuffer]) -> dict[str, Lines]:
    return {os.path.realpath(each["path"]): lines_of(each["text"]) for each in buffers}


def _reverted(
    history: History, file: FileTurn, is_undo: bool, loaded: Mapping[str, Lines]
) -> tuple[FileOp | None, FileChange | None]:
    """Return the operation on a file on disk, and the change for its buffer."""
    kind = file.change.kind
    if file.is_made and kind in ("create", "delete"):
        return _whole(history, file, loaded, is_there=(kind == "create") == is_undo)
    here, there = file.change.path, ""
    if file.is_made and kind == "rename":
        here, there = (file.change.to, here) if is_undo else (here, file.change.to)
        if os.path.lexists(there):
            if is_undo and _was_interrupted(history, file):
                is_left = os.path.lexists(here)
                return (FileOp("delete", here, before=text.read(here)) if is_left else None), None
            raise _Unchanged(f"{there} exists, so {here} cannot get that name; it {STAYS}")
    lines = loaded.get(os.path.realpath(here))
    operation, change = None, None
    if lines is None or there:
        operation = _on_disk(history, file, (here, there), is_undo, has_buffer=lines is not None)
    if lines is not None:
        made = _merged(history, file, lines, is_undo)
        if made is None:
            raise _Unchanged(f"{here} {CHANGED}")
        kind = "rename" if there else "edit"
        change = FileChange(here, kind, there, digest(lines), diff.changes(lines, made))
    return operation, change


def _was_interrupted(history: History, file: FileTurn) -> bool:
    """Return whether an interrupted rename has left the file under both names."""
    path, to = file.change.path, file.change.to
    if file.removed and Path(path).read_bytes() != history.images.get(file.removed):
        return False
    if not os.path.lexists(to) or not file.removed:
        return not os.path.lexists(to)
    made = _merged(history, file, text.read(to).lines, True)
    return made is not None and made == text.read(path).lines


def _whole(
    history: History, file: FileTurn, loaded: Mapping[str, Lines], *, is_there: bool
) -> tuple[FileOp | None, FileChange | None]:
    """Return the operation that deletes or creates a file."""
    path = file.change.path
    if file.change.kind == "create":
        left = Text(tuple(line for each in file.change.changes for line in each.new))
    else:
        data = history.images.get(file.removed)
        if data is None:
            raise _Unchanged(f"the old content of {path} is no longer stored")
        left = text.from_bytes(data, path)
    lines = loaded.get(os.path.realpath(path))
    current = text.read(path) if os.path.lexists(path) else None
    is_same = current is None or current.encode() == left.encode()
    if not is_there:
        if not is_same:
            raise _Unchanged(f"{path} exists with a different text, and {STAYS}")
        made = FileOp("create", path, after=left, like=file.attributes)
        return (made if current is None else None), None
    if not is_same or (lines is not None and digest(lines) != left.digest):
        raise _Unchanged(f"{path} {CHANGED}")
    operation = FileOp("delete", path, before=current) if current is not None else None
    if lines is None:
        return operation, None
    return operation, FileChange(path, "delete", "", digest(lines), diff.changes(lines, ()))


def _on_disk(
    history: History, file: FileTurn, names: tuple[str, str], is_undo: bool, *, has_buffer: bool
) -> FileOp | None:
    here, there = names
    is_created = file.change.kind == "create"
    if not os.path.lexists(here):
        data_after = _merged(history, file, (), is_undo) if is_created else None
        if data_after is None:
            raise _Unchanged(f"the file {here} no longer exists")
        return FileOp("create", here, after=Text(data_after)) if data_after else None
    if there and not file.applied() and not file.before:
        return FileOp("rename", here, there)
    before = text.read(here)
    data_after = _merged(history, file, before.lines, is_undo)
    if data_after is None:
        if has_buffer:
            return FileOp("rename", here, there)  # the buffer has its text
        raise _Unchanged(f"{here} {CHANGED}")
    if is_created and is_undo and data_after in ((), ("",)):
        return FileOp("delete", here, before=before)  # created from a buffer
    if data_after in ((), ("",)) and (file.was_empty is None or (is_undo and file.was_empty)):
        data_after = ()  # of the editor: more likely an empty file than a blank line
    return FileOp("rename" if there else "edit", here, there, before, before.with_lines(data_after))


def _merged(history: History, file: FileTurn, lines: Lines, is_undo: bool) -> Lines | None:
    """Return a text with a file's changes undone or redone; None if they conflict."""
    base = history.base_of(file)
    if base is None or file.is_lost:
        return None
    before, changes = base, file.applied()
    if file.before:
        found = history.images.get_lines(file.before)
        if found is None:
            return None
        before, changes = found, [*diff.changes(found, diff.apply(base, changes))]
    if is_undo:
        return merge(inverse(changes), diff.apply(before, changes), lines)
    return merge(changes, before, lines)


# Open hunks after a restart.


def resume(history: History, key: str, buffers: Sequence[EditBuffer] = ()) -> ResumedTurn:
    """Return the open hunks of a turn, for the current texts in buffers or on disk."""
    loaded = _loaded(buffers)
    files, problems = list[FileChange](), list[str]()
    turn = history.turn(key)
    for file in [each for each in turn.files if each.open]:
        change = file.change
        if change.kind == "create" and not os.path.lexists(change.path):
            files.append(change)
            continue
        lines = loaded.get(os.path.realpath(change.path))
        try:
            lines = text.read(change.path).lines if lines is None else lines
        except EditFailed as error:
            problems.append(str(error))
            continue
        resumed, lost = _resumed(history, key, file, lines)
        if resumed is None:
            problems.append(f"{change.path} was changed since: no hunk applies any more")
            continue
        files.append(resumed)
        if lost:
            many = "hunk no longer applies" if lost == 1 else "hunks no longer apply"
            problems.append(f"{change.path} was changed since: {lost} {many}")
    return ResumedTurn(tuple(files), tuple(problems))


def rebase_saved(history: History, key: str, paths: Sequence[str]) -> None:
    """Rebase the open hunks of files on disk whose accepted hunks were saved there."""
    for file in history.turn(key).files:
        if file.open and file.applied() and file.change.path in paths:
            lines = text.read(file.change.path).lines
            if digest(lines) != file.change.base:
                _resumed(history, key, file, lines, must_fit=True)


def _resumed(
    history: History, key: str, file: FileTurn, lines: Lines, *, must_fit: bool = False
) -> tuple[FileChange | None, int]:
    """Return the open hunks of a file for its current text, and the number of lost hunks.

    With `must_fit`, none may be lost.
    """
    change, base = file.change, history.base_of(file)
    if digest(lines) == change.base:
        wanted = file.wanted()  # accepted hunks were lost with the buffer
        if change.changes and not wanted:
            return None, 0
        made = replace(change, changes=wanted)
        if wanted != change.changes or file.applied():
            before = history.images.get_lines(file.before) if file.before else lines
            history.rebase(key, made, lines, before)
        return made, 0
    if base is None or file.is_lost:
        return None, 0
    earlier = _left_before(history, key, file, diff.apply(base, change.changes))
    if earlier is None:
        after, rest = diff.apply(base, file.applied()), _rest_after(file)
    else:  # an agent continued after the user accepted hunks
        after, rest = earlier, list(diff.changes(earlier, diff.apply(base, file.wanted())))
        change = replace(change, kind="edit" if change.kind == "create" else change.kind)
    found = [each for each in rebase(rest, after, lines) if each is not None]
    lost = len(rest) - len(found)
    found = [each for each in found if each.old or each.new]
    is_crossed = any(a.last_row > b.first_row for a, b in itertools.pairwise(found))
    if not found or is_crossed or (lost and (must_fit or change.kind != "edit")):
        return None, 0
    # Earlier check results are valid only if nothing but the edit has changed the text.
    checks = tuple(each for each in change.checks if lines == after or not each.is_ok)
    made = replace(change, base=digest(lines), changes=tuple(found), checks=checks)
    before = _merged(history, file, lines, is_undo=True) if earlier is None else lines
    history.rebase(key, made, lines, before)
    return made, lost


def _left_before(history: History, key: str, file: FileTurn, made: Lines) -> Lines | None:
    """Return how an agent had left a file in its last turn that the user accepted, even partly.

    Args:
        made: the base with the changes of this turn.

    Returns:
        None if there is no such turn, or the changes refer to a newer text of the user already.
    """
    run, path = history.turn(key).run, file.change.path
    if not run or file.has_effect or made != history.images.get_lines(file.left):
        return None
    turns = [turn for turn in history.turns() if turn.run == run]  # the newest first
    for turn in turns[[turn.key for turn in turns].index(key) + 1 :]:
        for each in turn.files:
            is_taken = each.applied() and not (each.is_undone or each.is_lost)
            if is_taken and each.left and path in (each.change.path, each.change.to):
                return history.images.get_lines(each.left)
    return None


def _rest_after(file: FileTurn) -> list[Change]:
    """Return the open changes, as changes of the text with the applied ones."""
    rest, changes_left, grown = (
        {(each.first_row, each.old) for each in file.rest()},
        list[Change](),
        0,
    )
    for each, piece in zip(file.change.changes, file.pieces, strict=True):
        if (each.first_row, each.old) in rest:
            first = each.first_row + grown
            changes_left.append(Change(first, first + len(each.old), each.old, each.new))
        grown += len(piece) - len(each.old)
    return changes_left
