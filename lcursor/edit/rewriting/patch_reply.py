"""Apply a reply in search/replace or diff format to the region that it is about. Pure.

Only the region is searched, so nothing else can change.
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


class _RegionOnly:
    """The region as the only file."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def read(self, path: str) -> Lines | None:
        return self._task.old if path == self._task.path else None

    def current(self) -> str:
        return self._task.path

    def all(self) -> Sequence[str]:
        return (self._task.path,)

    def absolute(self, path: str) -> str:
        return path


def apply_to_region(task: Task, reply: str, is_cut: bool) -> Lines:
    """Return the region with the changes of a reply; raise `ReplyUnusable` if that is not clear."""
    if is_cut:
        raise ReplyUnusable("cut", "The answer was cut off before its end")
    found = [
        replace(each, path=task.path) if _names_task(each.path, task) else each
        for each in blocks(reply, task.path)
    ]
    if not found:
        raise ReplyUnusable("prose", "The answer has no block of code")
    resolved = resolve(found, _RegionOnly(task))
    if isinstance(resolved, Ask):
        raise ReplyUnusable("form", f"It is not clear where a change belongs: {resolved.text}")
    if isinstance(resolved, Refused):
        raise ReplyUnusable("form", resolved.reason)
    new = task.old
    for file in resolved.files:
        if file.path != task.path or file.kind not in ("edit", "create"):
            raise ReplyUnusable("form", "The answer changes other files than the one it was shown")
        new = diff.apply(new, file.changes)
    return new


def _names_task(path: str, task: Task) -> bool:
    path = path.removeprefix("a/").removeprefix("b/").removeprefix("./")
    return not path or path == task.name or task.path.endswith(f"/{path}")
