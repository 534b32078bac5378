"""Writes a turn's changes into files: all of them, or none.

Checks everything before anything is touched: that each file is what the change was made for, that
it is in the project, and that it may be written. What files were is noted first; then each is
written beside its place and takes it at once. A file whose owner, group or other names a new file
could not have is written in place, as editors do. What fails is taken back; where we are killed
half-way the turn can be undone. Blocks for some milliseconds a file; any thread, also of several
Neovims: one at a time for a project.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from lcursor.edit.checkpoints.history import FileDeed, History
from lcursor.edit.checkpoints.steps import Step, act_of, in_order, paths_of, planned, real_path
from lcursor.edit.checkpoints.turn import Deed, Turn
from lcursor.edit.records import FileChange
from lcursor.errors import (
    EditMissing,
    EditRefused,
    EditStale,
    EditUnsaved,
    LcursorError,
)
from lcursor.storage import file_lock, folders

LOCK: Final = "write.lock"
LOCK_S: Final = 10.0
"""Longest wait for another Neovim that writes."""
MAX_NAME_CHARS: Final = 150
"""Of a file's name, in that of the temporary file beside it."""
WHOLE: Final = ".whole"
"""Ending of a temporary file from which a file is being written in place."""


def write(
    files: Sequence[FileChange], history: History, key: str, *, outside: bool = False
) -> tuple[str, ...]:
    """Change files on disk, all of them or none; return the paths that are other than they were.

    Args:
        files: what to do; no buffer has them.
        history: of the project, where it is noted.
        key: of the turn in it.
        outside: the user said yes to files outside of the project.

    Raises:
        EditOutside: a file is outside of the project, and `outside` is not said.
        EditRefused: a file cannot be edited, or must not be.
        EditMissing, EditStale: a file is not what the changes were made for.
        EditUnsaved: something cannot be written.
    """
    with locked(history):
        _refuse_rejected(files, history.turn(key))
        acts = [act_of(change) for change in files]
        steps = planned(acts, history.root, outside=outside)
        seen = {step.path: step for step in steps if step.seen is not None}
        deeds = []
        for change, act in zip(files, acts, strict=True):
            step = seen.get(real_path(act))
            mode = stat.S_IMODE(step.seen.st_mode) if step and step.seen else -1
            removed = ""
            if step is not None and step.do == "remove":
                removed = history.images.put(step.before, is_firm=True)
            lines = act.before.lines if act.before is not None else None
            base = "" if lines is None else history.images.put_lines(lines, is_firm=True)
            deeds.append(FileDeed(change.path, change.changes, base, removed, mode))
        commit(steps, history, key, "write", deeds)
    return paths_of(acts)


def commit(
    steps: Sequence[Step], history: History, key: str, do: Deed, deeds: Sequence[FileDeed]
) -> None:
    """Note what is done, and do all steps or none. The caller holds the lock.

    Raises:
        EditStale: a file was changed meanwhile.
        EditUnsaved: something cannot be written.
    """
    name = secrets.token_hex(8)
    history.writing(key, do, deeds, name)
    done: list[Step] = []
    try:
        for step in in_order(steps):
            step.temp = _temp_name(step.path, name)
            done.append(step)
            _do(step)
        _sync(steps)
        history.written(key, name)
    except BaseException as error:
        problems = [problem for step in reversed(done) if (problem := _take_back(step))]
        _sync(done)
        if not problems:  # otherwise an undo takes back what is left
            with contextlib.suppress(LcursorError):
                history.failed(key, name)
        if isinstance(error, OSError):
            raise _unsaved(error, done[-1].path, problems) from error
        raise


def recover(history: History) -> tuple[str, ...]:
    """Settle what a Neovim was writing when it was killed; return what to tell the user."""
    if not history.folder.is_dir():
        return ()
    try:
        lock = file_lock.try_lock(history.folder / LOCK)
    except OSError:
        return ()  # nothing can be written there: then nothing was, either
    if lock is None:
        return ()  # somebody writes now, and does this first
    try:
        return _settle(history)
    finally:
        os.close(lock)


@contextlib.contextmanager
def locked(history: History) -> Iterator[None]:
    """Be the only one who writes files of a project; settle first what was broken off.

    Raises:
        EditUnsaved: the folder cannot be made, or somebody else writes for too long.
    """
    lock: int | None = None
    ends_s = time.monotonic() + LOCK_S
    while lock is None:
        try:
            folders.make_private(history.folder.parent)
            folders.make_private(history.folder)
            lock = file_lock.try_lock(history.folder / LOCK)
        except (OSError, LcursorError) as error:
            raise EditUnsaved(
                f"nothing can be noted in {history.folder}, and so nothing be written: {error}",
                "Make room, or see who may write there",
            ) from error
        if lock is None and time.monotonic() > ends_s:
            raise EditUnsaved(
                "another Neovim is writing files of this project", "Try again when it is done"
            )
        if lock is None:
            time.sleep(0.005)
    try:
        _settle(history)
        yield
    finally:
        os.close(lock)


def _refuse_rejected(files: Sequence[FileChange], wanted: Turn) -> None:
    """Refuse a file where the user rejected part of a hunk: what is left only the editor knows.

    Raises:
        EditRefused: there is one, or changes that the user rejected are among those to be made.
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
                f"some changes of {change.path} were rejected",
                f"Accept the others where they are shown: :edit {change.path}",
            )


# Doing it.


def _do(step: Step) -> None:
    """Do a step.

    Raises:
        EditStale: what is there is not what was read.
    """
    place = step.to or step.path
    if step.do != "remove":
        _make_folders(step, os.path.dirname(place))
    if step.do == "put":
        _write_new(step.temp, step.data, 0o600 if step.is_in_place else step.mode, step)
    if step.is_in_place:
        os.rename(step.temp, step.temp + WHOLE)
        step.temp += WHOLE
    if step.seen is not None and not _is_same(step):
        raise EditStale(f"{step.path} was changed by something else just now", "Ask again")
    step.is_begun = True
    if step.do == "remove":
        os.unlink(step.path)
    elif step.is_in_place:
        _overwrite(step.path, step.data)
        os.unlink(step.temp)
    elif step.do == "put" and step.seen is not None:
        os.replace(step.temp, step.path)
    elif step.do == "put":
        _give_name(step.temp, place)
    elif os.path.lexists(place):
        raise _came_to_be(place)
    else:
        os.rename(step.path, place)


def _give_name(path: str, place: str) -> None:
    """Move a file to a name that nothing has.

    Raises:
        EditStale: something has it.
    """
    try:
        os.link(path, place, follow_symlinks=False)
    except FileExistsError as error:
        raise _came_to_be(place) from error
    except OSError:  # a file system without second names
        if os.path.lexists(place):
            raise
        os.rename(path, place)
    else:
        os.unlink(path)


def _came_to_be(place: str) -> EditStale:
    return EditStale(f"{place} came to be just now", "Look at it, then ask for the edit again")


def _make_folders(step: Step, folder: str) -> None:
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        os.mkdir(each)
        step.made.append(each)


def _write_new(temp: str, data: bytes, mode: int, step: Step) -> None:
    """Write a new file with the owner and the attributes of the one whose place it takes."""
    like = None if step.is_in_place else step.seen
    first = 0o666 if mode < 0 else 0o600
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, first)
    try:
        if like is not None:
            made = os.fstat(fd)
            if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
                os.fchown(fd, like.st_uid, like.st_gid)
            with contextlib.suppress(OSError):
                for name in os.listxattr(step.path):
                    os.setxattr(fd, name, os.getxattr(step.path, name))
        if mode >= 0:
            os.fchmod(fd, mode)
        _write_all(fd, data)
    finally:
        os.close(fd)


def _overwrite(path: str, data: bytes) -> None:
    """Put bytes into a file that is there, which stays the same file."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        _write_all(fd, data)
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
    os.fsync(fd)


def _is_same(step: Step) -> bool:
    """Return whether a file is the one that was read."""
    try:
        now = os.lstat(step.path)
    except OSError:
        return False
    return all(
        getattr(now, name) == getattr(step.seen, name)
        for name in ("st_dev", "st_ino", "st_size", "st_mtime_ns")
    )


def _sync(steps: Iterable[Step]) -> None:
    """Have names survive when the power fails, where the file system can do that."""
    places = [place for step in steps for place in (step.path, step.to, *step.made) if place]
    for name in {os.path.dirname(place) for place in places}:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, fd)
            os.fsync(fd)


# Taking it back.


def _take_back(step: Step) -> str:
    """Undo a step that was done, in part or not at all; return why that is not possible."""
    try:
        problem = _undo(step) if step.is_begun else ""
    except OSError as error:
        return f"{step.path} could not be taken back: {error.strerror or error}"
    for name in (step.temp, *reversed(step.made)):
        with contextlib.suppress(OSError):
            os.unlink(name) if name == step.temp else os.rmdir(name)
    return problem


def _undo(step: Step) -> str:
    if step.do == "move":
        if os.path.lexists(step.to) and not os.path.lexists(step.path):
            os.rename(step.to, step.path)
        return ""
    now = Path(step.path).read_bytes() if os.path.lexists(step.path) else None
    if step.do == "remove":
        if now is None:
            _write_again(step)
        return ""
    if now is None or (step.seen is not None and now == step.before):
        return ""
    if now != step.data and not (step.is_in_place and step.data.startswith(now)):
        return f"{step.path} was changed since, and stays as it is" if step.seen else ""
    if step.seen is None:
        if not os.path.lexists(step.temp) or os.path.samefile(step.temp, step.path):
            os.unlink(step.path)
    elif step.is_in_place:
        _overwrite(step.path, step.before)
    else:
        _write_again(step)
    return ""


def _write_again(step: Step) -> None:
    assert step.seen is not None
    with contextlib.suppress(FileNotFoundError):
        os.unlink(step.temp)
    mode = stat.S_IMODE(step.seen.st_mode)
    _write_new(step.temp, step.before, mode, Step("put", step.path))
    with contextlib.suppress(OSError):
        os.chown(step.temp, step.seen.st_uid, step.seen.st_gid)
    os.replace(step.temp, step.path)


def _settle(history: History) -> tuple[str, ...]:
    """Remove temporary files of what was broken off, and note its turn so that undo is offered."""
    for name, path in history.broken_off():
        folder = os.path.dirname(os.path.realpath(path))
        with contextlib.suppress(OSError):
            for each in [*os.scandir(folder)]:
                base, found, end = each.name.partition(f".lcursor-{name}")
                if found and end == WHOLE:
                    _finish(each.path, os.path.join(folder, base[1:]))
                if found:
                    os.unlink(each.path)
    return tuple(
        f"an edit was broken off while it was writing {names}; :LCursor undo takes it back"
        for names in history.settle_broken_off()
    )


def _finish(temp: str, path: str) -> None:
    """Write the rest of a file that was being written in place."""
    data, now = Path(temp).read_bytes(), Path(path).read_bytes()
    if now != data and data.startswith(now):
        _overwrite(path, data)


def _temp_name(path: str, name: str) -> str:
    folder, base = os.path.split(path)
    return os.path.join(folder, f".{base[:MAX_NAME_CHARS]}.lcursor-{name}")


def _unsaved(error: OSError, path: str, problems: Sequence[str]) -> EditUnsaved:
    words = f"{path} cannot be written: {error.strerror or error}"
    if problems:
        return EditUnsaved(f"{words}; {'; '.join(problems)}", ":LCursor undo takes back the rest")
    return EditUnsaved(f"{words}; nothing was changed", "Make room, or see who may write there")
