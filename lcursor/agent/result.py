"""Turn what an agent changed into changes of files for the edit history. Blocks.

A file whose change cannot be lines of text is left out, with a note that says how to take it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lcursor.changes import diff, guards, text
from lcursor.changes.lines import without_returns
from lcursor.changes.records import Change, FileChange, Lines, digest
from lcursor.changes.text import Text
from lcursor.code.languages import is_test
from lcursor.errors import EditRejected
from lcursor.project.guarded import runs_by_itself
from lcursor.project.names import has_controls, quoted
from lcursor.workspace.tree import Tree, TreeChange


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The changes of a run."""

    files: tuple[FileChange, ...] = ()
    """Those that run code by themselves are marked as guarded, and come first."""
    bases: Mapping[str, Lines] = field(default_factory=dict)
    """The lines that the changes refer to, by absolute path."""
    notes: tuple[str, ...] = ()
    """Messages about changes that are left out."""


def file_changes(tree: Tree) -> RunChanges:
    """Return what changed since the start of a run.

    Raises:
        AgentFailed: the changes cannot be read.
    """
    parts = [part for change in tree.changed() for part in _parts(change)]
    texts = [change for change in parts if not change.is_link and not change.is_binary]
    keys = [key for change in texts for key in change.keys if key.strip("0")]
    contents = tree.contents(keys, text.MAX_BYTES)
    files, bases, notes = list[FileChange](), dict[str, Lines](), list[str]()
    for change in parts:
        old, new = (contents.get(key) for key in change.keys)
        is_read = all(key in contents for key in change.keys if key.strip("0"))
        try:
            file, lines, note = _file(
                tree, change, old, new, is_text=is_read and not change.is_binary
            )
        except EditRejected:
            shown = quoted(change.to or change.path)
            note = f"{shown} is not text, or too large: {_by_hand(tree, change)}"
            file, lines = None, ()
        notes += [note] if note else []
        if file is not None:
            files.append(file)
            if file.base:
                bases[file.path] = lines
    files = sorted(guards.marked(tree.root, files), key=lambda file: not file.is_guarded)
    return RunChanges(tuple(files), bases, tuple(notes))


def changed_tests(root: Path, files: Iterable[FileChange]) -> list[str]:
    """Return the names of test files with changed or deleted lines, or that are no longer there."""

    def is_changed(file: FileChange) -> bool:
        is_gone = file.kind == "delete" or (file.kind == "rename" and not is_test(name(file.to)))
        return is_gone or any(change.old for change in file.changes)

    def name(path: str) -> str:
        return os.path.relpath(path, root)

    return [name(file.path) for file in files if is_test(name(file.path)) and is_changed(file)]


def _parts(change: TreeChange) -> Sequence[TreeChange]:
    """Return a rename of a guarded file, or to one, as a new file and a deletion."""
    names = (change.path, change.to)
    if change.kind != "rename" or not any(map(runs_by_itself, names)):
        return [change]
    (old, new), (old_key, new_key) = change.modes, change.keys
    none = "0" * len(old_key)
    return [
        replace(change, kind="delete", to="", modes=(old, 0), keys=(old_key, none)),
        replace(change, path=change.to, kind="create", to="", modes=(0, new), keys=(none, new_key)),
    ]


def _file(
    tree: Tree, change: TreeChange, old: bytes | None, new: bytes | None, *, is_text: bool
) -> tuple[FileChange | None, Lines, str]:
    """Return the change of a file, its old lines, and a note.

    Raises:
        EditRejected: it is not text.
    """
    path = str(tree.root / change.path)
    to = str(tree.root / change.to) if change.to else ""
    name = change.to or change.path
    shown = quoted(name)
    if why := tree.secret_reason(name):
        return None, (), f"{shown} is left out: {why}"
    if has_controls(change.path + name):
        why = f"its name has a control character: {_by_hand(tree, change)}"
        return None, (), f"{shown} is left out: {why}"
    if change.is_link:
        return None, (), f"{shown} is a link: {_by_hand(tree, change)}"
    if not is_text:
        raise EditRejected(f"{name} is not text")
    note = ""
    if change.is_made_executable:
        note = f"{shown} is executable for the agent: chmod +x {shown}"
    before, after = _text(old, change.path), _text(new, name)
    if before.newline == "\r\n" != after.newline:  # an added line gets the line end of the others
        after = replace(after, lines=without_returns(after.lines))
    base = digest(before.lines) if old is not None else ""
    if change.kind == "delete":
        gone = (Change(0, len(before.lines), before.lines, ()),)
        return FileChange(path, "delete", "", base, gone), before.lines, ""
    guarded = change.is_made_executable
    if change.kind == "create":
        end = "\r" if after.newline == "\r\n" else ""
        new_lines = (Change(0, 0, (), tuple(line + end for line in after.lines)),)
        written = () if after.is_empty else new_lines
        return FileChange(path, "create", changes=written, is_guarded=guarded), (), note
    changes = diff.changes(before.lines, after.lines)
    if not changes and change.kind == "edit":
        if old != new:
            note = f"only line ends of {shown} have changed: {_by_hand(tree, change)}"
        return None, (), note
    file = FileChange(path, change.kind, to, base, changes, is_guarded=guarded)
    return file, before.lines, note


def _text(data: bytes | None, name: str) -> Text:
    if data is not None and len(data) > text.MAX_BYTES:
        raise EditRejected(f"{name} is too large")
    return text.from_bytes(data or b"", name)


def _by_hand(tree: Tree, change: TreeChange) -> str:
    """Return the command that makes a change in the user's project."""
    target = quoted(str(tree.root / (change.to or change.path)))
    if change.kind == "delete":
        return f"rm {target}"
    if change.kind == "rename":
        return f"mv {quoted(str(tree.root / change.path))} {target}"
    source = quoted(os.fspath(Path(tree.path, change.to or change.path)))
    return f"cp -P {source} {target}"
