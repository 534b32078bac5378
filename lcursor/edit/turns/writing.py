"""Writes a turn's changes into files: all of them, or none.

Checks everything before anything is touched: that each file is what the change was made for, that
it is in the project, and that it may be written. Keeps permissions, line ends and byte order marks.
A name that is a link stays one: what it points to is changed. A file with several names loses them,
as with any program that writes by renaming. Blocks for some milliseconds a file; any thread, also
of several Neovims: one at a time for a project.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lcursor import folders
from lcursor.edit.records import FileChange, FileKind
from lcursor.edit.turns import journal, text, turn
from lcursor.edit.turns.journal import Step
from lcursor.edit.turns.ledger import Ledger
from lcursor.edit.turns.text import Text
from lcursor.edit.turns.turn import Done, Turn
from lcursor.errors import (
    EditMissing,
    EditOutside,
    EditRefused,
    EditStale,
    EditUnsaved,
    LcursorError,
)
from lcursor.index.lock import Lock

LOCK = "write.lock"
LOCK_S = 10.0
"""Longest wait for another Neovim that writes."""
SEALED = (".git", ".hg", ".svn", ".jj")
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


def write(
    files: Sequence[FileChange],
    root: Path | str,
    *,
    outside: bool = False,
    record: Ledger | None = None,
    key: str = "",
    folder: Path | None = None,
) -> tuple[str, ...]:
    """Change files on disk, all of them or none; return the paths that are other than they were.

    Args:
        files: what to do; no buffer has them.
        root: of the project.
        outside: the user said yes to files outside of it.
        record: where it is noted that turn `key` was written, as part of all or nothing.
        key: of the turn.
        folder: of all ledgers, where there is no `record`.

    Raises:
        EditOutside: a file is outside of the project, and `outside` is not said.
        EditRefused: a file cannot be edited, or must not be.
        EditMissing, EditStale: a file is not what the changes were made for.
        EditUnsaved: something cannot be written.
    """
    known = record or Ledger(root, folder)
    with holding(known) as place:
        if record is not None:
            _refuse_refused(files, record.turn(key))
        acts = [act_of(change) for change in files]
        done: list[Done] = []
        settle: Callable[[str], None] | None = None
        if record is not None:

            def settle(name: str) -> None:
                record.wrote(key, done, name)

        steps = planned(acts, root, outside=outside)
        for change, act in zip(files, acts, strict=True):
            found = next((one for one in steps if one.path == _real(act) and one.seen), None)
            mode = stat.S_IMODE(found.seen.st_mode) if found and found.seen else act.mode
            hunks = turn.hunks_for(_rows(act), change.changes) if act.after else ()
            hunks = hunks if act.kind in ("edit", "rename") else ()
            done.append(Done(act.path, act.kind, act.to, act.before, act.after, mode, hunks))
        journal.carry_out(steps, place, settle)
    return tuple(path for act in acts for path in (act.path, act.to) if path)


def recover(
    root: Path | str, record: Ledger | None = None, folder: Path | None = None
) -> tuple[str, ...]:
    """Take back what a Neovim was writing when it was killed; return what to tell the user.

    Args:
        root: of the project.
        record: its ledger.
        folder: of all ledgers, where there is no `record`.
    """
    known = record or Ledger(root, folder)
    if not known.folder.is_dir():
        return ()
    try:
        lock = Lock.take(known.folder / LOCK)
    except OSError:
        return ()  # nothing can be written there: then nothing was, either
    if lock is None:
        return ()  # somebody writes now, and does this first
    try:
        return journal.recover(known.folder, known.is_settled)
    finally:
        lock.release()


@contextlib.contextmanager
def holding(record: Ledger) -> Iterator[Path]:
    """Be the only one who writes files of a project; take back first what was broken off.

    Args:
        record: the project's ledger, whose folder is given.

    Raises:
        EditUnsaved: the folder cannot be made, or somebody else writes for too long.
    """
    lock: Lock | None = None
    ends_s = time.monotonic() + LOCK_S
    while lock is None:
        try:
            folders.own(record.folder.parent)
            folders.own(record.folder)
            lock = Lock.take(record.folder / LOCK)
        except (OSError, LcursorError) as error:
            raise EditUnsaved(
                f"nothing can be noted in {record.folder}, and so nothing be written: {error}",
                "Make room, or see who may write there",
            ) from error
        if lock is None and time.monotonic() > ends_s:
            raise EditUnsaved(
                "another Neovim is writing files of this project", "Try again when it is done"
            )
        if lock is None:
            time.sleep(0.005)
    try:
        journal.recover(record.folder, record.is_settled)
        yield record.folder
    finally:
        lock.release()


# What is to be done.


def _refuse_refused(files: Sequence[FileChange], wanted: Turn) -> None:
    """Refuse a file where the user refused part of a hunk: what is left only the editor knows.

    Raises:
        EditRefused: there is one, or changes that the user refused are among those to be made.
        EditMissing: the turn has nothing about a file.
    """
    for change in files:
        try:
            file = wanted.file(change.path)
        except KeyError:
            raise EditMissing(
                f"the turn has nothing to do with {change.path}", "See :LCursor edits"
            ) from None
        if file.is_partly_refused or len(change.changes) > len(file.wanted()):
            raise EditRefused(
                f"some changes of {change.path} were refused",
                f"Take the others where they are shown: :edit {change.path}",
            )


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
            f"{change.path} is not any more what the edit was made for",
            "Ask for the edit again",
        )
    if change.kind == "delete":
        return Act("delete", change.path, before=before)
    try:
        after = before.changed(change.changes)
    except EditStale as error:
        raise EditStale(f"{change.path}: {error.message}", error.hint) from error
    return Act(change.kind, change.path, change.to, before, after if change.changes else None)


def _rows(act: Act) -> Sequence[str]:
    """Return the lines that changes are made in; an empty file has none."""
    if act.before is None or act.before.is_empty:
        return ()
    return act.before.lines


def planned(acts: Sequence[Act], root: Path | str, *, outside: bool = False) -> list[Step]:
    """Return the steps for some acts, after everything about them was checked.

    Raises:
        EditFailed: something must not be done, or cannot.
    """
    top = os.path.realpath(root)
    places = [_real(act, name) for act in acts for name in (act.path, act.to) if name]
    if not outside and (far := [path for path in places if not _is_in(path, top)]):
        raise EditOutside(
            f"outside of the project: {', '.join(far)}", "Say yes when you are asked, or leave it"
        )
    for path in places:
        if os.path.basename(path) in ("", ".", ".."):
            raise EditRefused(f"{path} is no name of a file", "Ask for the edit again")
        _look(path, top)
    steps: list[Step] = []
    for act in acts:
        steps += _steps(act)
    for do in ("put", "take"):
        paths = [step.path for step in steps if step.do == do]
        if twice := {path for path in paths if paths.count(path) > 1}:
            raise EditRefused(
                f"the edit changes one file twice: {', '.join(sorted(twice))}",
                "Ask for the edit again",
            )
    taken = {step.path for step in steps if step.do == "take"}
    for step in steps:
        if step.do != "put" or step.seen is not None:
            continue
        if step.path not in taken and os.path.lexists(step.path):
            raise EditStale(
                f"there is a file {step.path} already",
                "Look at it, then delete it or ask for the edit again",
            )
        if any(above in places and above not in taken for above in _above(step.path)):
            raise EditRefused(f"{step.path} would be below a file", "Ask for the edit again")
    clash = {step.path for step in steps if step.do == "put" and step.seen is not None} & taken
    if clash:
        raise EditRefused(
            f"the edit changes a file and takes it away: {', '.join(sorted(clash))}",
            "Ask for the edit again",
        )
    return steps


def _steps(act: Act) -> list[Step]:
    real = _real(act)
    if act.kind == "create":
        assert act.after is not None
        return [Step("put", real, act.after.encode(), mode=act.mode)]
    seen, data = _found(act, real)
    was = journal.digest_of(real) if data is None else journal.digest_of_bytes(data)
    mode = stat.S_IMODE(seen.st_mode)
    if act.kind == "edit":
        made = act.after.encode() if act.after else data
        if made is None or made == data:
            return []
        return [Step("put", real, made, mode=mode, seen=seen, was=was)]
    take = Step("take", real, seen=seen, was=was)
    if act.kind == "delete":
        return [take]
    to = _real(act, act.to)
    if to == real:
        raise EditRefused(f"{act.path} has that name already", "Ask for the edit again")
    if act.after is None:
        return [Step("put", to, source=real), take]
    return [Step("put", to, act.after.encode(), mode=mode), take]


def _found(act: Act, real: str) -> tuple[os.stat_result, bytes | None]:
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
        return seen, None
    data = text.read_bytes(real)
    if text.of_bytes(data, act.path) != act.before:
        raise EditStale(f"{act.path} was changed just now", "Ask for the edit again")
    return seen, data


def _look(path: str, top: str) -> None:
    """Refuse places where nothing may be written.

    Raises:
        EditRefused: it is one.
    """
    inner = os.path.relpath(path, top) if _is_in(path, top) else path
    if found := next((part for part in Path(inner).parts if part in SEALED), ""):
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


def _real(act: Act, name: str = "") -> str:
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
