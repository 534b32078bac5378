"""Changes of several files on disk that all happen or do not, also where we are killed half-way.

Each new content is first written beside its file, each old one gets a second name, and a journal
says so; then the names are exchanged one by one. Who is killed leaves the journal: `recover` takes
back what it began, and touches nothing that somebody changed since. The second name costs no room,
and gives the very file back. A file whose owner or group a new one could not have is written in
place instead, as editors do. Owns the journals and those names. Any thread, one at a time for a
folder: the caller holds a lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lcursor.errors import EditStale, EditUnsaved

BEGUN, MOVING, HOLDS = ".begun", ".moving", ".holds"
"""Endings of a journal: files are being made; names are being exchanged; all stands."""
SAVED = ("do", "path", "source", "was", "will", "temp", "backup", "folders", "in_place")
"""Of a step, in a journal."""
KEPT = "kept"
"""Folder of old contents whose files somebody changed before they could be taken back."""


@dataclass(slots=True)
class Step:
    """One name, and what shall be there."""

    do: Literal["put", "take"]
    path: str
    """Real."""
    data: bytes | None = None
    """To be put there; None where it is what `source` has."""
    source: str = ""
    """Real path of the file that is put there under its new name, as it is."""
    mode: int = -1
    """Permissions; -1 for those that new files have."""
    seen: os.stat_result | None = None
    """What was found there; None for nothing."""
    was: str = ""
    """Digest of what was found."""
    will: str = ""
    temp: str = ""
    backup: str = ""
    folders: tuple[str, ...] = ()
    """Made for it, the outermost first."""
    in_place: bool = False
    """The file that is there gets the new bytes; its backup is a copy."""


def carry_out(
    steps: Sequence[Step], folder: Path, settle: Callable[[str], None] | None = None
) -> None:
    """Do all steps, or none.

    Args:
        steps: no two put something in the same place.
        folder: of the journals.
        settle: called with the journal's name when all is done, to note that it holds; if it
            raises, all is taken back.

    Raises:
        EditStale: a file was changed meanwhile.
        EditUnsaved: something cannot be written.
    """
    name = secrets.token_hex(8)
    for number, step in enumerate(steps):
        _name(step, name, number)
    journal = folder / f"{name}{BEGUN}"
    try:
        _save(journal, steps)
    except OSError as error:
        with contextlib.suppress(OSError):
            journal.unlink()
        raise _unsaved(error, str(journal)) from error
    try:
        _prepare(steps)
        journal = _rename(journal, MOVING)
        for step in _ordered(steps):
            _do(step)
        _sync(steps)
        if settle is None:
            journal = _rename(journal, HOLDS)
        else:
            settle(name)
    except BaseException as error:
        problems = _take_back(steps, folder, is_begun=journal.suffix == MOVING)
        if not problems:
            _drop(journal)
        if isinstance(error, OSError):
            raise _unsaved(error, _path_of(error, steps), problems) from error
        raise
    with contextlib.suppress(OSError):
        _rename(journal, HOLDS)
    if _clean(steps):
        _drop(journal)


def recover(folder: Path, is_settled: Callable[[str], bool]) -> tuple[str, ...]:
    """Finish or take back what others began before they were killed; return what to tell.

    Args:
        folder: of the journals.
        is_settled: says whether what a journal is about was noted as done.
    """
    told: list[str] = []
    for journal in sorted(folder.glob("*.*")):
        if journal.suffix not in (BEGUN, MOVING, HOLDS):
            continue
        steps = _load(journal)
        if journal.suffix == HOLDS or is_settled(journal.stem):
            if not _clean(steps):
                continue
        else:
            problems = _take_back(steps, folder, is_begun=journal.suffix == MOVING)
            told += problems
            if problems and not all(problem.endswith(SAFE) for problem in problems):
                continue  # it is tried again next time
            if journal.suffix == MOVING and steps:
                names = ", ".join(os.path.basename(step.path) for step in steps)
                told.append(f"an edit that was broken off was taken back: {names}")
        _drop(journal)
    return tuple(told)


SAFE = "stays as it is"


# Making ready.


def _name(step: Step, name: str, number: int) -> None:
    """Give a step the names that it needs, and the digests."""
    folder = os.path.dirname(step.path)
    if step.do == "put":
        step.temp = os.path.join(folder, f".lcursor-{name}-{number}.new")
        step.will = digest_of(step.source) if step.data is None else digest_of_bytes(step.data)
        missing = []
        while not os.path.lexists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        step.folders = tuple(missing[::-1])
    if step.seen is not None:
        step.in_place = step.do == "put" and not _keeps_owner(step.seen)
        step.backup = os.path.join(os.path.dirname(step.path), f".lcursor-{name}-{number}.old")


def _prepare(steps: Sequence[Step]) -> None:
    """Write what is new, give what is old a second name; nothing that counts is touched."""
    for step in steps:
        for folder in step.folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)
        if step.do == "put":
            if step.data is None:
                _link(step.source, step.temp)
            else:
                _write(step.temp, step.data, 0o600 if step.in_place else step.mode, step)
        if step.in_place:
            _write(step.backup, Path(step.path).read_bytes(), 0o600, step)
        elif step.backup:
            _link(step.path, step.backup)
    for name in {os.path.dirname(step.path) for step in steps}:
        _sync_folder(name)


def _keeps_owner(seen: os.stat_result) -> bool:
    """Return whether a new file can have the owner and the group of one that is there."""
    user = os.geteuid()
    groups = {os.getegid(), *os.getgroups()}
    return user == 0 or (seen.st_uid == user and seen.st_gid in groups)


def _overwrite(path: str, data: bytes) -> None:
    """Put bytes into a file that is there, which stays the same file."""
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        while data:
            data = data[os.write(fd, data) :]
        os.fsync(fd)
    except OSError as error:
        error.filename = error.filename or path
        raise
    finally:
        os.close(fd)


def _write(temp: str, data: bytes, mode: int, step: Step) -> None:
    like, path = None if step.in_place else step.seen, step.path
    first = 0o666 if mode < 0 else 0o600
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, first)
    try:
        if like is not None:
            made = os.fstat(fd)
            if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
                os.fchown(fd, like.st_uid, like.st_gid)
            with contextlib.suppress(OSError):
                for name in os.listxattr(path):
                    os.setxattr(fd, name, os.getxattr(path, name))
        if mode >= 0:
            os.fchmod(fd, mode)
        while data:
            data = data[os.write(fd, data) :]
        os.fsync(fd)
    except OSError as error:
        error.filename = error.filename or temp  # that it is said which file has no room
        raise
    finally:
        os.close(fd)


def _link(path: str, name: str) -> None:
    """Give a file a second name; where there are no such, copy it."""
    try:
        os.link(path, name, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(path, name, follow_symlinks=False)
        found = os.stat(path)
        with contextlib.suppress(OSError):
            os.chown(name, found.st_uid, found.st_gid)
        with open(name, "rb") as file:
            os.fsync(file.fileno())


# Exchanging names.


def _ordered(steps: Sequence[Step]) -> list[Step]:
    """Return steps so that of two names for one content one is always there."""
    taken = {step.path for step in steps if step.do == "take"}
    puts = [step for step in steps if step.do == "put"]
    first = [step for step in puts if step.path not in taken]
    first.sort(key=lambda step: step.seen is not None)
    takes = [step for step in steps if step.do == "take"]
    return [*first, *takes, *(step for step in puts if step.path in taken)]


def _do(step: Step) -> None:
    """Do a step.

    Raises:
        EditStale: what is there is not what was read, also where it became that at this moment.
    """
    words = f"{step.path} was changed by something else just now"
    if step.seen is not None and not _is_same(step):
        raise EditStale(words, "Ask for the edit again")
    _move(step)
    if step.backup and digest_of(step.backup) != step.was:
        raise EditStale(words, "Ask for the edit again")  # and it is given back as it became


def _move(step: Step) -> None:
    if step.do == "take":
        os.unlink(step.path)
    elif step.in_place:
        _overwrite(step.path, Path(step.temp).read_bytes())
    elif step.seen is not None:
        os.replace(step.temp, step.path)
    else:
        try:
            os.link(step.temp, step.path, follow_symlinks=False)
        except FileExistsError as error:
            raise EditStale(
                f"{step.path} came to be just now", "Look at it, then ask for the edit again"
            ) from error
        except OSError:
            if os.path.lexists(step.path):
                raise
            os.rename(step.temp, step.path)
        else:
            os.unlink(step.temp)


def _is_same(step: Step) -> bool:
    """Return whether a file is the one that was read."""
    try:
        now = os.lstat(step.path)
    except OSError:
        return False
    seen = step.seen
    return seen is not None and all(
        getattr(now, name) == getattr(seen, name)
        for name in ("st_dev", "st_ino", "st_size", "st_mtime_ns")
    )


def _sync(steps: Iterable[Step]) -> None:
    for name in {os.path.dirname(each) for step in steps for each in (step.path, *step.folders)}:
        _sync_folder(name)


def _sync_folder(name: str) -> None:
    """Have names survive when the power fails, where the file system can do that."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, fd)
        os.fsync(fd)


# Taking back.


def _take_back(steps: Sequence[Step], folder: Path, *, is_begun: bool) -> list[str]:
    """Have everything as it was; return what could not be, and why.

    Looks at the files alone, so it may be done again, and by another process.
    """
    problems = []
    if is_begun:
        for step in reversed(_ordered(steps)):
            try:
                problem = _put_back(step, folder) if step.do == "put" else _give_back(step, folder)
            except OSError as error:
                problem = f"{step.path} could not be taken back: {error.strerror or error}"
            if problem:
                problems.append(problem)
    if all(problem.endswith(SAFE) for problem in problems):
        if not _clean(steps):
            problems.append("a name that was needed meanwhile could not be removed")
        for step in reversed(steps):
            for made in reversed(step.folders):
                with contextlib.suppress(OSError):
                    os.rmdir(made)
    _sync(steps)
    return problems


def _put_back(step: Step, folder: Path) -> str:
    """Undo that something was put in a place; return why not."""
    now = digest_of(step.path)
    if os.path.lexists(step.backup) if step.backup else False:
        if now == step.was:
            os.unlink(step.backup)
        elif step.in_place and _is_partly_written(step):
            _overwrite(step.path, Path(step.backup).read_bytes())
            os.unlink(step.backup)
        elif now == step.will:
            os.replace(step.backup, step.path)
        else:
            return _keep(step, folder)
    elif not step.backup and now and not os.path.lexists(step.temp):
        if now != step.will:
            return f"{step.path} was changed since, and {SAFE}"
        os.unlink(step.path)
    elif not step.backup and now and os.path.samefile(step.temp, step.path):
        os.unlink(step.path)
    return ""


def _is_partly_written(step: Step) -> bool:
    """Return whether a file has the first of its new bytes, or all of them, and nothing else."""
    return Path(step.temp).read_bytes().startswith(Path(step.path).read_bytes())


def _give_back(step: Step, folder: Path) -> str:
    """Undo that something was taken away; return why not."""
    if not os.path.lexists(step.backup):
        return ""
    if not os.path.lexists(step.path):
        os.rename(step.backup, step.path)
    elif os.path.samefile(step.backup, step.path) or digest_of(step.path) == step.was:
        os.unlink(step.backup)
    else:
        return _keep(step, folder)
    return ""


def _keep(step: Step, folder: Path) -> str:
    """Put an old content aside, since its file was changed by somebody."""
    place = folder / KEPT
    place.mkdir(mode=0o700, exist_ok=True)
    aside = place / f"{secrets.token_hex(4)}-{os.path.basename(step.path)[-100:]}"
    shutil.move(step.backup, aside)
    return f"{step.path} was changed since (what it was before is {aside}), and {SAFE}"


def _clean(steps: Iterable[Step]) -> bool:
    """Remove the names that were only needed meanwhile; return whether none is left."""
    is_clean = True
    for step in steps:
        for name in filter(None, (step.temp, step.backup)):
            try:
                os.unlink(name)
            except FileNotFoundError:
                pass
            except OSError:
                is_clean = False
    return is_clean


# The journal.


def _save(journal: Path, steps: Sequence[Step]) -> None:
    rows = [
        {name: getattr(step, name) for name in SAVED} | {"is_new": step.seen is None}
        for step in steps
    ]
    fd = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        data = json.dumps(rows).encode()
        while data:
            data = data[os.write(fd, data) :]
        os.fsync(fd)
    finally:
        os.close(fd)
    _sync_folder(str(journal.parent))


def _load(journal: Path) -> list[Step]:
    """Return the steps of a journal; none of one that was cut off while it was written."""
    try:
        rows: list[dict[str, Any]] = json.loads(journal.read_bytes())
        return [
            Step(
                row["do"],
                row["path"],
                source=row["source"],
                was=row["was"],
                will=row["will"],
                temp=row["temp"],
                backup=row["backup"],
                folders=tuple(row["folders"]),
                in_place=row.get("in_place", False),  # older journals have none
            )
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _rename(journal: Path, ending: str) -> Path:
    name = journal.with_suffix(ending)
    os.rename(journal, name)
    _sync_folder(str(journal.parent))
    return name


def _drop(journal: Path) -> None:
    for ending in (BEGUN, MOVING, HOLDS):
        with contextlib.suppress(OSError):
            journal.with_suffix(ending).unlink()


# Digests and words.


def digest_of(path: str) -> str:
    """Return the digest of a file's bytes; "" where there is none, a word where it is no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    except OSError:
        return "unreadable"
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, fd)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return "no file"
        made = hashlib.sha256()
        while data := os.read(fd, 1 << 20):
            made.update(data)
    return made.hexdigest()


def digest_of_bytes(data: bytes) -> str:
    """Return the digest of bytes."""
    return hashlib.sha256(data).hexdigest()


def _path_of(error: OSError, steps: Sequence[Step]) -> str:
    """Return the file that a failure is about, by the name that the user knows."""
    for step in steps:
        if error.filename and str(error.filename) in (step.temp, step.backup, *step.folders):
            return step.path
    return str(error.filename or (steps[0].path if steps else ""))


def _unsaved(error: OSError, path: str, problems: Sequence[str] = ()) -> EditUnsaved:
    words = f"{path} cannot be written: {error.strerror or error}"
    if problems:
        return EditUnsaved(f"{words}; {'; '.join(problems)}", "It is tried again at the next start")
    return EditUnsaved(f"{words}; nothing was changed", "Make room, or see who may write there")
