"""Plan the writing of files, and check it before anything changes. Any thread.

Each file must have its expected content, be writable, and be in the project or permitted outside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from lcursor.changes import attributes, text
from lcursor.changes.attributes import Attributes
from lcursor.changes.records import FileChange, FileKind
from lcursor.changes.text import Text
from lcursor.errors import EditMissing, EditOutside, EditRejected, EditStale

VCS_FOLDERS: Final = (".git", ".hg", ".svn", ".jj")
"""Version control runs or trusts the files in these folders: they are never written."""


@dataclass(frozen=True, slots=True)
class FileOp:
    """A file before and after a change."""

    kind: FileKind
    path: str
    to: str = ""
    before: Text | None = None
    """Expected content; None for any, or if there is no such file."""
    after: Text | None = None
    """New content; None if it is deleted or unchanged."""
    like: Attributes | None = None
    """Attributes of a new file; None for the default."""


@dataclass(slots=True)
class WriteStep:
    """One operation on one path."""

    do: Literal["put", "move", "remove"]
    path: str
    """Real path, like `to`."""
    data: bytes = b""
    """New content."""
    to: str = ""
    like: Attributes | None = None
    """Attributes of the current file, or wanted for a new one; None for the default."""
    seen: os.stat_result | None = None
    """Status of the current file; None if there is none."""
    before: bytes = b""
    """Current content."""
    temp: str = ""
    is_begun: bool = False
    """Whether it may have changed something."""
    made: list[str] = field(default_factory=list)
    """Folders created for it, outermost first."""

    @property
    def is_in_place(self) -> bool:
        """Whether the current file is overwritten in place, not replaced."""
        seen = self.seen
        return self.do == "put" and seen is not None and not _can_be_replaced(seen)


def changed_paths(ops: Iterable[FileOp]) -> tuple[str, ...]:
    """Return the paths that some operations change."""
    return tuple(path for op in ops for path in (op.path, op.to) if path)


def operation_for(change: FileChange) -> FileOp:
    """Return the operation for a change of a file."""
    if change.kind == "create":
        if any(each.old for each in change.changes):
            raise EditStale(
                f"{change.path} is to be created, but the edit expects a file with text",
                "Ask for the edit again",
            )
        lines = tuple(line for each in change.changes for line in each.new)
        return FileOp("create", change.path, after=Text(lines))
    if change.kind == "rename" and not change.base and not change.changes:
        return FileOp("rename", change.path, change.to)  # binary files as well
    before = text.read(change.path)
    if before.digest != change.base:
        raise EditStale(
            f"{change.path} has changed since the edit was made", "Ask for the edit again"
        )
    if change.kind == "delete":
        return FileOp("delete", change.path, before=before)
    after = before.changed(change.changes)
    return FileOp(change.kind, change.path, change.to, before, after if change.changes else None)


def order_steps(steps: Sequence[WriteStep]) -> list[WriteStep]:
    """Return steps in an order in which every content always has a name.

    The exception is a file whose name another one gets: see `reused_paths`.
    """
    reused = reused_paths(steps)

    def rank(step: WriteStep) -> int:
        if step.path in reused:
            return 3 if step.do == "put" else 2
        return {"put": int(step.seen is not None), "move": 4, "remove": 5}[step.do]

    return sorted(steps, key=rank)


def reused_paths(steps: Sequence[WriteStep]) -> set[str]:
    """Return the paths of files that are removed or moved, and that other files get."""
    gone = {step.path for step in steps if step.do != "put"}
    return gone & {step.to or step.path for step in steps if step.do != "remove"}


def plan_steps(
    ops: Sequence[FileOp], root: Path | str, *, outside: bool = False
) -> list[WriteStep]:
    """Return the steps of some operations, after all checks."""
    top = os.path.realpath(root)
    paths = [real_path(op, name) for op in ops for name in (op.path, op.to) if name]
    if not outside and (far := [path for path in paths if not _is_in(path, top)]):
        raise EditOutside(
            f"outside of the project: {', '.join(far)}", "Confirm it when asked, or leave it"
        )
    for path in paths:
        inner = os.path.relpath(path, top) if _is_in(path, top) else path
        if found := next((part for part in Path(inner).parts if part.lower() in VCS_FOLDERS), ""):
            raise EditRejected(f"{path} belongs to version control ({found})", "Change it by hand")
    steps = [step for op in ops for step in _steps(op)]
    names = [step.path for step in steps if step.do != "put" or step.seen is not None]
    if twice := {path for path in names if names.count(path) > 1}:
        words = ", ".join(sorted(twice))
        raise EditRejected(f"the edit changes one file twice: {words}", "Ask for the edit again")
    gone = {step.path for step in steps if step.do != "put"}
    new = [step.to or step.path for step in steps if step.do == "move" or step.seen is None]
    if len({*new}) < len(new):
        raise EditRejected("the edit creates one file twice", "Ask for the edit again")
    for path in new:
        if path not in gone and os.path.lexists(path):
            raise EditStale(
                f"the file {path} already exists",
                "Check it, then delete it or ask for the edit again",
            )
    return steps


def _steps(op: FileOp) -> list[WriteStep]:
    real = real_path(op)
    if op.kind == "create":
        assert op.after is not None
        return [WriteStep("put", real, op.after.encode(), like=op.like)]
    seen, data = _found(op, real)
    like = attributes.read(real, seen)
    remove = WriteStep("remove", real, like=like, seen=seen, before=data)
    if op.kind == "delete":
        return [remove]
    data_after = op.after.encode() if op.after is not None else data
    if op.kind == "edit":
        return (
            [WriteStep("put", real, data_after, like=like, seen=seen, before=data)]
            if data_after != data
            else []
        )
    to = real_path(op, op.to)
    if to == real:
        raise EditRejected(f"{op.path} has that name already", "Ask for the edit again")
    if data_after == data:
        return [WriteStep("move", real, to=to, seen=seen)]
    return [remove, WriteStep("put", to, data_after, like=replace(like, mtime_ns=None))]


def _found(op: FileOp, real: str) -> tuple[os.stat_result, bytes]:
    """Return the status of a file, and its bytes if needed."""
    try:
        seen = os.lstat(real)
    except OSError as error:
        raise EditMissing(f"there is no file {op.path}", "Check whether it was moved") from error
    if stat.S_ISLNK(seen.st_mode):  # an edit must change its target, not the link
        raise EditRejected(f"{op.path} is a link, so the operation is ambiguous", "Do it by hand")
    if not stat.S_ISREG(seen.st_mode):
        raise EditRejected(f"{op.path} is not a regular file", "Only files can be edited")
    if not seen.st_mode & 0o222 or not os.access(real, os.W_OK):
        raise EditRejected(f"{op.path} is read-only", f"Allow it with: chmod u+w {op.path}")
    if op.before is None:
        return seen, b""
    data = text.read_bytes(real)
    if text.from_bytes(data, op.path) != op.before:
        raise EditStale(f"{op.path} was just changed", "Ask for the edit again")
    return seen, data


def real_path(op: FileOp, name: str = "") -> str:
    """Return the target of a path; for a created, moved or deleted file the path itself."""
    name = name or op.path
    if op.kind == "edit":
        return os.path.realpath(name)
    return os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))


def _is_in(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _can_be_replaced(seen: os.stat_result) -> bool:
    """Return whether a new file can have the same owner, group and links."""
    user, groups = os.geteuid(), {os.getegid(), *os.getgroups()}
    is_ours = user == 0 or (seen.st_uid == user and seen.st_gid in groups)
    return is_ours and seen.st_nlink == 1
