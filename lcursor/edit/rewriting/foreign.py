"""A region's new text from a reply that is no rewrite: blocks to replace, or a diff. Pure.

What is looked for is looked for in the region alone, so that nothing else can be changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lcursor.edit import diff
from lcursor.edit.apply.parse import blocks
from lcursor.edit.apply.resolve import Ask, Refused, resolve
from lcursor.edit.records import Lines
from lcursor.edit.rewriting.task import Task
from lcursor.errors import ReplyUnusable


class _Region:
    """The region as the one file that there is."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def read(self, path: str) -> Lines | None:
        """Return its text."""
        return self._task.old if path == self._task.path else None

    def current(self) -> str:
        """Return its path."""
        return self._task.path

    def all(self) -> Sequence[str]:
        """Return its path alone."""
        return (self._task.path,)

    def absolute(self, path: str) -> str:
        """Return a path as it is: there is no other file."""
        return path


def merged(task: Task, reply: str, is_cut: bool) -> tuple[Lines, str]:
    """Return the region after what a reply says is done to it, and what was said besides.

    Raises:
        ReplyUnusable: it says nothing that can be done, or not clearly where.
    """
    if is_cut:
        raise ReplyUnusable("cut", "The answer was cut off before its end")
    found = [
        replace(each, path=task.path) if _is_same(each.path, task) else each
        for each in blocks(reply, task.path)
    ]
    if not found:
        raise ReplyUnusable("prose", "The answer has no block of code")
    resolved = resolve(found, _Region(task))
    if isinstance(resolved, Ask):
        raise ReplyUnusable("form", f"It is not clear where a change belongs: {resolved.text}")
    if isinstance(resolved, Refused):
        raise ReplyUnusable("form", resolved.reason)
    new = task.old
    for file in resolved.files:
        if file.path != task.path or file.kind not in ("edit", "create"):
            raise ReplyUnusable("form", "The answer changes other files than the one it was shown")
        new = diff.apply(new, file.changes)
    return new, ""


def _is_same(path: str, task: Task) -> bool:
    """Whether a path that a model wrote is the file it was shown."""
    path = path.removeprefix("a/").removeprefix("b/").removeprefix("./")
    return not path or path == task.name or task.path.endswith(f"/{path}")
