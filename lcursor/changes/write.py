"""Write a turn's changes to files, all or none.

Checks first that each file has its expected content, is in the project, and is writable. Then it
records the old contents, and replaces each file atomically. A file whose owner, group or hard links
a new file could not have is written in place. A failure is rolled back; after a kill, undo works.
Blocks for some milliseconds per file; any thread; one Neovim at a time per project.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from lcursor.changes import attributes
from lcursor.changes.attributes import Attributes
from lcursor.changes.history import History
from lcursor.changes.records import FileChange
from lcursor.changes.steps import (
    FileOp,
    WriteStep,
    changed_paths,
    operation_for,
    order_steps,
    plan_steps,
    real_path,
    reused_paths,
)
from lcursor.changes.turn import Action, FileTurn, Turn, Writing
from lcursor.errors import EditRejected, EditStale, EditUnsaved
from lcursor.storage import folders

MAX_NAME_CHARS: Final = 150
"""Maximum part of a file's name in the name of its temporary file."""


def write(
    files: Sequence[FileChange], history: History, key: str, *, outside: bool = False
) -> tuple[str, ...]:
    """Change files on disk, all or none; return the changed paths.

    Raises:
        EditOutside: a file is outside of the project, without permission.
        EditRejected: a file cannot be edited, or must not be.
        EditMissing, EditStale: a file does not have the expected content.
        EditUnsaved: something cannot be written.
    """
    with locked(history):
        turn = history.turn(key)
        writable = [_writable(history, change, turn) for change in files]
        operations = [operation_for(change) for change in files]
        steps = plan_steps(operations, history.root, outside=outside)
        seen = {step.path: step for step in steps}
        written = [
            _written(history, change, file, operation, seen.get(real_path(operation)))
            for change, file, operation in zip(files, writable, operations, strict=True)
        ]
        commit(steps, history, key, "write", written)
    return changed_paths(operations)


def commit(
    steps: Sequence[WriteStep], history: History, key: str, action: Action, files: list[FileTurn]
) -> None:
    """Record a transaction, and do all its steps or none. The caller holds the lock.

    `files` is the state of the turn's changed files after the transaction.

    Raises:
        EditStale: a file was changed meanwhile.
        EditUnsaved: something cannot be written.
    """
    images, name = history.images, secrets.token_hex(8)
    names = reused_paths(steps)
    overwritten = [each for each in steps if each.is_in_place]
    replaced = [each for each in steps if each.do == "remove" and each.path in names]
    reusing = [each for each in steps if each.do == "put" and each.path in names]
    new, reused = (
        {each.path: images.put(each.data, fsync=True) for each in group}
        for group in (overwritten, reusing)
    )
    old = {each.path: images.put(each.before, fsync=True) for each in [*overwritten, *replaced]}
    images.sync_names()

    def begin(turn: Turn, _: int) -> None:
        turn.writing = Writing(name, action, files, new, old, reused)

    history.update(key, begin, must_store=True)
    done: list[WriteStep] = []
    try:
        for step in order_steps(steps):
            step.temp = _temp_name(step.path, name)
            is_next = step.do == "remove" and bool(done) and done[-1].do != "remove"
            if is_next or step.path in names:
                _sync(done)  # a content has its new name before it loses the old one
            done.append(step)
            _do(step)
        _sync(steps)
        history.end_writing(key, is_done=True, must_store=True)
    except BaseException as error:
        problems = list[str]()
        for step in reversed(done):
            problems += filter(None, [_roll_back(step)])
            _sync([step])  # a content has its old name before it loses the new one
        if not problems:  # otherwise undo reverts the rest
            history.end_writing(key, is_done=False)
        if isinstance(error, OSError):
            raise _unsaved(error, done[-1].path, problems) from error
        raise


def recover(history: History) -> tuple[str, ...]:
    """Finish the transactions of killed Neovims so that undo reverts them; return messages."""
    if not history.path.is_dir():
        return ()
    with contextlib.suppress(EditUnsaved), history.locked(wait_s=0.0):
        return _end_interrupted(history)
    return ()  # not writable, or another Neovim does this now


@contextlib.contextmanager
def locked(history: History) -> Iterator[None]:
    """Hold the lock of a project, after finishing interrupted transactions."""
    with history.locked():
        _end_interrupted(history)
        yield


def _writable(history: History, change: FileChange, turn: Turn) -> FileTurn:
    """Return the record of a file if the user rejected none of its changes."""
    file = turn.files[history.index(turn, change.path)]
    if file.is_partly_rejected or len(change.changes) > len(file.wanted()):
        raise EditRejected(
            f"some changes of {change.path} were rejected",
            f"Accept the others where they are shown: :edit {change.path}",
        )
    return file


def _written(
    history: History, change: FileChange, file: FileTurn, operation: FileOp, step: WriteStep | None
) -> FileTurn:
    """Return the record of a file after its changes are written; store its old content."""
    done = {(each.first_row, each.old) for each in change.changes}
    pairs = zip(file.change.changes, file.pieces, strict=True)
    pieces = [each.new if (each.first_row, each.old) in done else piece for each, piece in pairs]
    whole = replace(file, pieces=pieces, is_made=file.change.kind != "edit", removed="")
    whole.open, whole.is_undone = 0, False
    images, before = history.images, operation.before
    if before is not None:
        stored = images.put_lines(before.lines, fsync=True)
        whole.base, whole.was_empty = file.base or stored, before.is_empty
    if file.before and (lines := images.get_lines(file.before)) is not None:
        images.put_lines(lines, fsync=True)  # the editor's proposal did not sync it
    if step is not None and step.do == "remove":
        whole.removed, whole.attributes = images.put(step.before, fsync=True), step.like
    return whole


# The steps.


def _do(step: WriteStep) -> None:
    """Do a step."""
    target = step.to or step.path
    if step.do != "remove":
        _make_folders(step, os.path.dirname(target))
    if step.do == "put" and not step.is_in_place:
        _write_new(step.temp, step.data, step.like, is_replacement=step.seen is not None)
    if step.seen is not None and not _is_same(step):
        raise EditStale(f"another program just changed {step.path}", "Ask again")
    step.is_begun = True
    if step.do == "remove":
        os.unlink(step.path)
    elif step.is_in_place:
        _overwrite(step.path, step.data)
    elif step.do == "put" and step.seen is not None:
        os.replace(step.temp, step.path)
    elif step.do == "put":
        _give_name(step.temp, target)
    elif os.path.lexists(target):
        raise _created_meanwhile(target)
    else:
        os.rename(step.path, target)


def _give_name(path: str, target: str) -> None:
    """Move a file to a free name."""
    try:
        os.link(path, target, follow_symlinks=False)
    except FileExistsError as error:
        raise _created_meanwhile(target) from error
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise
        os.rename(path, target)
    else:
        os.unlink(path)


def _created_meanwhile(target: str) -> EditStale:
    return EditStale(f"{target} was just created", "Check it, then ask for the edit again")


def _make_folders(step: WriteStep, folder: str) -> None:
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        os.mkdir(each)
        step.made.append(each)


def _write_new(
    temp: str, data: bytes, like: Attributes | None, *, is_replacement: bool = False
) -> None:
    """Write a new file with the attributes of the one that it replaces, or of an earlier one.

    Only an earlier one had the same bytes, so that the time is valid, too.
    """
    first = 0o666 if like is None else 0o600
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, first)
    try:
        if like is not None:
            attributes.give(fd, like, must_own=is_replacement)
        _write_all(fd, data)
        if like is not None and not is_replacement:
            attributes.give_time(fd, like)
        os.fsync(fd)
    finally:
        os.close(fd)


def _overwrite(path: str, data: bytes) -> None:
    """Write bytes to a file in place."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        _write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _is_same(step: WriteStep) -> bool:
    """Return whether a file is unchanged since it was read."""
    try:
        status = os.lstat(step.path)
    except OSError:
        return False
    return all(
        getattr(status, name) == getattr(step.seen, name)
        for name in ("st_dev", "st_ino", "st_size", "st_mtime_ns")
    )


def _sync(steps: Iterable[WriteStep]) -> None:
    """Make file names survive a power failure."""
    targets = [target for step in steps for target in (step.path, step.to, *step.made) if target]
    for folder in {os.path.dirname(target) for target in targets}:
        folders.fsync_folder(folder)


# Rollback.


def _roll_back(step: WriteStep) -> str:
    """Undo a completed or partial step; return why that is impossible, "" on success."""
    try:
        problem = _undo(step) if step.is_begun else ""
    except OSError as error:
        return f"{step.path} could not be restored: {error.strerror or error}"
    for name in (step.temp, *reversed(step.made)):
        with contextlib.suppress(OSError):
            os.unlink(name) if name == step.temp else os.rmdir(name)
    return problem


def _undo(step: WriteStep) -> str:
    if step.do == "move":
        if os.path.lexists(step.to) and not os.path.lexists(step.path):
            os.rename(step.to, step.path)
        return ""
    current = Path(step.path).read_bytes() if os.path.lexists(step.path) else None
    if step.do == "remove":
        if current is None:
            _write_again(step)
        return ""
    if current is None or (step.seen is not None and current == step.before):
        return ""
    if current != step.data and not (step.is_in_place and step.data.startswith(current)):
        return f"{step.path} was changed since, and stays as it is" if step.seen else ""
    if step.seen is None:
        if not os.path.lexists(step.temp) or os.path.samefile(step.temp, step.path):
            os.unlink(step.path)
    elif step.is_in_place:
        _overwrite(step.path, step.before)
    else:
        _write_again(step)
    return ""


def _write_again(step: WriteStep) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(step.temp)
    _write_new(step.temp, step.before, step.like)
    os.replace(step.temp, step.path)


def _end_interrupted(history: History) -> tuple[str, ...]:
    """Finish interrupted transactions so that undo reverts them; return messages for the user."""
    notes = []
    for turn in history.turns():
        if turn.writing is None:
            continue
        for folder in {os.path.dirname(os.path.realpath(path)) for path in turn.paths}:
            with contextlib.suppress(OSError):
                for name in os.listdir(folder):
                    if name.endswith(f".lcursor-{turn.writing.name}"):
                        os.unlink(os.path.join(folder, name))
        writing, get = turn.writing, history.images.get
        for path, image in writing.in_place.items():
            with contextlib.suppress(OSError):
                _finish(path, [get(image), get(writing.old.get(path, ""))])
        with contextlib.suppress(OSError):
            _finish_reused(writing, get)
        names = ", ".join(os.path.basename(file.change.path) for file in turn.writing.files)
        history.end_writing(turn.key, is_done=turn.writing.action != "undo")
        notes.append(
            f"an edit was interrupted while it was writing {names}; :LCursor edit undo reverts it"
        )
    return tuple(notes)


def _finish(path: str, contents: Sequence[bytes | None]) -> None:
    """Complete a file that was being overwritten with one of some contents."""
    now = Path(path).read_bytes()
    if now not in contents:
        whole = next((each for each in contents if each is not None and _is_torn(now, each)), None)
        if whole is not None:
            _overwrite(path, whole)


def _finish_reused(writing: Writing, get: Callable[[str], bytes | None]) -> None:
    """Complete an interrupted exchange of names, unless it had not begun or a file was changed.

    Each file of `writing.reused` gets its new bytes; they may have had no name at the interruption.
    """
    old = {path: get(writing.old.get(path, "")) for path in writing.reused}
    new = {path: get(image) for path, image in writing.reused.items()}
    current = {path: Path(path).read_bytes() if os.path.lexists(path) else None for path in new}
    is_changed = any(current[path] not in (None, old[path], new[path]) for path in new)
    if current == old or is_changed or None in new.values():
        return
    like = {os.path.realpath(each.change.to): each.attributes for each in writing.files}
    for path, data in new.items():
        if data is not None and data != current[path]:
            temp = _temp_name(path, writing.name)
            _write_new(temp, data, like.get(path), is_replacement=True)
            os.replace(temp, path)
            folders.fsync_folder(os.path.dirname(path))


def _is_torn(now: bytes, whole: bytes) -> bool:
    """Return whether a content is part of another; what power failed to write may be zeros."""
    pieces = ((found.start(), found[0]) for found in re.finditer(rb"[^\0]+", now))
    return len(now) <= len(whole) and all(whole.startswith(each, at) for at, each in pieces)


def _temp_name(path: str, name: str) -> str:
    folder, base = os.path.split(path)
    return os.path.join(folder, f".{base[:MAX_NAME_CHARS]}.lcursor-{name}")


def _unsaved(error: OSError, path: str, problems: Sequence[str]) -> EditUnsaved:
    words = f"{path} cannot be written: {error.strerror or error}"
    if problems:
        return EditUnsaved(f"{words}; {'; '.join(problems)}", ":LCursor edit undo reverts the rest")
    return EditUnsaved(f"{words}; nothing was changed", "Check disk space and permissions")
