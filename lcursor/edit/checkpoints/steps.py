"""What is to be done to files on disk, checked before anything is touched. Reads files; any thread.

Each file must be what the change was made for, be in the project or allowed outside of it, and be
one that may be written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from lcursor.edit.checkpoints import text
from lcursor.edit.checkpoints.text import Text
from lcursor.edit.records import FileChange, FileKind
from lcursor.errors import EditMissing, EditOutside, EditRefused, EditStale, EditUnsaved

VCS_FOLDERS: Final = (".git", ".hg", ".svn", ".jj")
"""What is in such a folder is run or believed by version control, and never written."""


@dataclass(frozen=True, slots=True)
class Act:
    """One file as it is, and as it shall be."""

    kind: FileKind
    path: str
    """As the change has it."""
    to: str = ""
    before: Text | None = None
    """What it must be; None where that is not asked for, or there is no such file."""
    after: Text | None = None
    """What it shall be; None where that is nothing, or what it is."""
    mode: int = -1
    """Of a file that is created; -1 for what new files have."""


@dataclass(slots=True)
class Step:
    """One thing to do to one name."""

    do: Literal["put", "move", "remove"]
    path: str
    """Real."""
    data: bytes = b""
    """To be put there."""
    to: str = ""
    """Real; where it is moved."""
    mode: int = -1
    """Permissions; -1 for those that new files have."""
    seen: os.stat_result | None = None
    """What was found there; None for nothing."""
    before: bytes = b""
    """The bytes that were found."""
    temp: str = ""
    is_begun: bool = False
    """Whether it may have changed something."""
    made: list[str] = field(default_factory=list)
    """Folders made for it, the outermost first."""

    @property
    def is_in_place(self) -> bool:
        """Whether the file that is there gets the new bytes, and stays the same file."""
        seen = self.seen
        return self.do == "put" and seen is not None and not _can_be_replaced(seen)


def paths_of(acts: Iterable[Act]) -> tuple[str, ...]:
    """Return the paths that some acts change."""
    return tuple(path for act in acts for path in (act.path, act.to) if path)


def act_of(change: FileChange) -> Act:
    """Return what a change makes of a file as it is now.

    Raises:
        EditFailed: it is not what the change was made for.
    """
    if change.kind == "create":
        if any(each.old for each in change.changes):
            raise EditStale(
                f"{change.path} is to be created, but the edit was made for a file with text",
                "Ask for the edit again",
            )
        lines = tuple(line for each in change.changes for line in each.new)
        return Act("create", change.path, after=Text(lines))
    if change.kind == "rename" and not change.base and not change.changes:
        return Act("rename", change.path, change.to)  # also what is no text
    before = text.read(change.path)
    if before.digest != change.base:
        raise EditStale(
            f"{change.path} is not any more what the edit was made for", "Ask for the edit again"
        )
    if change.kind == "delete":
        return Act("delete", change.path, before=before)
    try:
        after = before.changed(change.changes)
    except EditStale as error:
        raise EditStale(f"{change.path}: {error.message}", error.hint) from error
    return Act(change.kind, change.path, change.to, before, after if change.changes else None)


def in_order(steps: Sequence[Step]) -> list[Step]:
    """Return steps so that of two names for one content one is always there."""
    gone = {step.path for step in steps if step.do != "put"}

    def rank(step: Step) -> int:
        if step.do == "put":
            return 3 if step.path in gone else int(step.seen is not None)
        return 2

    removals_first = sorted(steps, key=lambda step: step.do != "remove")
    return sorted(removals_first, key=rank)


def planned(acts: Sequence[Act], root: Path | str, *, outside: bool = False) -> list[Step]:
    """Return the steps for some acts, after everything about them was checked.

    Raises:
        EditFailed: something must not be done, or cannot.
    """
    top = os.path.realpath(root)
    places = [real_path(act, name) for act in acts for name in (act.path, act.to) if name]
    if not outside and (far := [path for path in places if not _is_in(path, top)]):
        raise EditOutside(
            f"outside of the project: {', '.join(far)}", "Say yes when you are asked, or leave it"
        )
    for path in places:
        if os.path.basename(path) in ("", ".", ".."):
            raise EditRefused(f"{path} is no name of a file", "Ask for the edit again")
        _refuse_place(path, top)
    steps = [step for act in acts for step in _steps(act)]
    names = [step.path for step in steps if step.do != "put" or step.seen is not None]
    if twice := {path for path in names if names.count(path) > 1}:
        words = ", ".join(sorted(twice))
        raise EditRefused(f"the edit changes one file twice: {words}", "Ask for the edit again")
    gone = {step.path for step in steps if step.do != "put"}
    new = [step.to or step.path for step in steps if step.do == "move" or step.seen is None]
    if len({*new}) < len(new):
        raise EditRefused("the edit makes one file twice", "Ask for the edit again")
    for path in new:
        if path not in gone and os.path.lexists(path):
            raise EditStale(
                f"there is a file {path} already",
                "Look at it, then delete it or ask for the edit again",
            )
        if any(above in places and above not in gone for above in _above(path)):
            raise EditRefused(f"{path} would be below a file", "Ask for the edit again")
    return steps


def _steps(act: Act) -> list[Step]:
    real = real_path(act)
    if act.kind == "create":
        assert act.after is not None
        return [Step("put", real, act.after.encode(), mode=act.mode)]
    seen, data = _found(act, real)
    if act.kind == "delete":
        return [Step("remove", real, seen=seen, before=data)]
    made = act.after.encode() if act.after is not None else data
    mode = stat.S_IMODE(seen.st_mode)
    if act.kind == "edit":
        return [Step("put", real, made, mode=mode, seen=seen, before=data)] if made != data else []
    to = real_path(act, act.to)
    if to == real:
        raise EditRefused(f"{act.path} has that name already", "Ask for the edit again")
    if made == data:
        return [Step("move", real, to=to, seen=seen)]
    remove = Step("remove", real, seen=seen, before=data)
    return [remove, Step("put", to, made, mode=mode)]


def _found(act: Act, real: str) -> tuple[os.stat_result, bytes]:
    """Return a file as it is now; its bytes where they matter.

    Raises:
        EditFailed: it is not what it was, or must not be changed.
    """
    try:
        seen = os.lstat(real)
    except OSError as error:
        raise EditMissing(f"there is no file {act.path}", "Look whether it was moved") from error
    if stat.S_ISLNK(seen.st_mode):  # an edit is of what it points to; this takes it away
        raise EditRefused(
            f"{act.path} is a link, and it is not sure what is meant", "Do that by hand"
        )
    if not stat.S_ISREG(seen.st_mode):
        raise EditRefused(f"{act.path} is no regular file", "Only files can be edited")
    if not seen.st_mode & 0o222 or not os.access(real, os.W_OK):
        raise EditRefused(f"{act.path} is read-only", f"Allow it with: chmod u+w {act.path}")
    if act.before is None:
        return seen, b""
    data = text.read_bytes(real)
    if text.of_bytes(data, act.path) != act.before:
        raise EditStale(f"{act.path} was changed just now", "Ask for the edit again")
    return seen, data


def _refuse_place(path: str, top: str) -> None:
    """Refuse places where nothing may be written.

    Raises:
        EditRefused: it is one.
    """
    inner = os.path.relpath(path, top) if _is_in(path, top) else path
    if found := next((part for part in Path(inner).parts if part in VCS_FOLDERS), ""):
        raise EditRefused(f"{path} belongs to version control ({found})", "Change it by hand")
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise EditRefused(f"{folder} is no folder, so {path} cannot be", "Ask for the edit again")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise EditUnsaved(
            f"{path} cannot be written: no permission in {folder}; nothing was changed",
            f"See who may write there: ls -ld {folder}",
        )


def real_path(act: Act, name: str = "") -> str:
    """Return where a name leads; of what is taken away or made, the name's own place."""
    name = name or act.path
    if act.kind == "edit":
        return os.path.realpath(name)
    return os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))


def _is_in(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _above(path: str) -> Iterator[str]:
    while (folder := os.path.dirname(path)) != path:
        yield folder
        path = folder


def _can_be_replaced(seen: os.stat_result) -> bool:
    """Return whether a new file can have the owner, the group and all names of one."""
    user, groups = os.geteuid(), {os.getegid(), *os.getgroups()}
    is_ours = user == 0 or (seen.st_uid == user and seen.st_gid in groups)
    return is_ours and seen.st_nlink == 1
