"""Check the files of a repository that a `.git` leads to, before git reads them.

A stranger may have made them: a `.git`, or a link in it, may lead to the history of another project
of the user, and git would wait for a pipe without end. Files are read exactly as git reads them.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lcursor.project.reading import NotRegularFile, open_regular

MAX_NAME_BYTES: Final = 4096
"""Maximum of a file that names a folder."""
MAX_FILE_BYTES: Final = 8 << 20
"""Maximum of a file that git reads as a whole into memory."""
MAX_ENTRIES: Final = 50_000
"""Maximum of files and folders below `refs`, and below `logs`."""

_WHOLE: Final = frozenset(
    {"HEAD", "alternates", "attributes", "commondir", "config", "config.worktree", "exclude"}
    | {"gitdir", "grafts", "shallow", "sparse-checkout"}
)
_UNREAD: Final = frozenset({"description", "hooks", "lfs", "objects", "rr-cache", "svn"})
"""May be links to anything. Git finds an object only by an id, which a checked file must have."""
_REF_STORAGE: Final = re.compile(rb"refstorage(.*)", re.IGNORECASE)
_KNOWN_STORAGE: Final = re.compile(rb'\s*=\s*"?(files|reftable)"?\s*')


class _NotAllowed(Exception):
    """Why git must not read a repository. Never leaves this module."""


def problem(mark: Path, *, has_revisions: bool) -> str:
    """Return why git must not use the repository that a `.git` leads to; "" if it may.

    Args:
        has_revisions: whether git will look for commits by their names. That they lead nowhere
            else takes longer to check: about 10 us for each branch.
    """
    path = os.fspath(mark)
    try:
        folder = _folder_of(path)
        _check(folder, [folder], path)
        common = folder
        if os.path.lexists(f"{folder}/commondir"):
            common = _named(f"{folder}/commondir", folder)
            _check(common, [folder, common], path)
        if os.path.lexists(f"{common}/config"):
            _check_storage(f"{common}/config")
        if has_revisions:
            for each in {folder, common}:
                _check_revisions(each, [folder, common], path)
        if not _is_linked_work_tree(folder, common, path) and not (
            _belongs(folder, path) and _belongs(common, path)
        ):
            raise _NotAllowed(f"{path} leads to the repository of another project")
    except _NotAllowed as reason:
        return str(reason)
    except (OSError, ValueError) as error:
        where = getattr(error, "filename", None) or path
        return f"{where} cannot be read: {getattr(error, 'strerror', None) or error}"
    return ""


def is_other_work_tree(mark: Path) -> bool:
    """Return whether a `.git` belongs to a linked work tree of a repository."""
    try:
        return os.path.lexists(f"{_folder_of(os.fspath(mark))}/commondir")
    except (OSError, ValueError, _NotAllowed):
        return False


def _read(path: str, max_bytes: int) -> bytes:
    try:
        with open_regular(os.fsencode(path)) as file:
            data = file.read(max_bytes + 1)
    except NotRegularFile as error:
        raise _NotAllowed(f"{path} is not a regular file") from error
    if len(data) > max_bytes:
        raise _NotAllowed(f"{path} is too large")
    return data


def _named(file: str, base: str, start: bytes = b"") -> str:
    """Return the real path of the folder that a file of git names."""
    data = _read(file, MAX_NAME_BYTES)
    name = data.removeprefix(start).rstrip(b"\r\n")
    folder = os.path.realpath(os.path.join(base, os.fsdecode(name))) if b"\0" not in name else ""
    if not name or not data.startswith(start) or not os.path.isdir(folder):
        raise _NotAllowed(f"{file} names no folder")
    return folder


def _folder_of(mark: str) -> str:
    """Return the real path of the repository's folder."""
    if os.path.isdir(mark):
        return os.path.realpath(mark)
    return _named(mark, os.path.dirname(mark), b"gitdir: ")


def _is_linked_work_tree(folder: str, common: str, mark: str) -> bool:
    """Return whether a repository has a linked work tree at a `.git`."""
    if os.path.dirname(folder) != f"{common}/worktrees":
        return False
    name = _read(f"{folder}/gitdir", MAX_NAME_BYTES).rstrip(b"\r\n")
    return os.path.realpath(os.path.join(folder, os.fsdecode(name))) == mark


def _belongs(folder: str, mark: str) -> bool:
    """Return whether a repository may be that of a `.git`.

    A submodule's names its work tree. One that `git init --separate-git-dir` has made names none;
    neither do those of the tool `repo`.
    """
    top = os.path.dirname(mark)
    if _is_in(folder, top):
        return True
    work_tree, is_bare = _settings(folder)
    if work_tree:
        return os.path.realpath(os.path.join(folder, work_tree)) == top
    return not is_bare and "/.git/" not in f"{folder}/".lower()


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _settings(folder: str) -> tuple[str, bool]:
    """Return core.worktree and core.bare of a repository."""
    work_tree, is_bare = "", False
    for name in ("config", "config.worktree"):
        if not os.path.lexists(f"{folder}/{name}"):
            continue
        section = ""
        for line in os.fsdecode(_read(f"{folder}/{name}", MAX_FILE_BYTES)).splitlines():
            if head := re.match(r"\s*\[(.*?)\]", line):
                section = head[1].strip().lower()
            key, has_value, value = line[head.end() if head else 0 :].partition("=")
            value = re.sub(r'\\(.)|"', r"\1", value.strip())
            if section == "core" and key.strip().lower() == "worktree":
                work_tree = value
            elif section == "core" and key.strip().lower() == "bare":
                is_false = value.lower().startswith(("false", "no", "off", "0"))
                is_bare = not has_value or not is_false
    return work_tree, is_bare


def _check(folder: str, own: list[str], mark: str) -> None:
    """Raise if links lead out of a repository, or git would wait for one of its files without end.

    Args:
        own: folders into which links may lead.
    """
    for inside in ("", "/info", "/objects/info", "/reftable"):
        for entry in _entries(folder + inside):
            if inside or entry.name not in _UNREAD:
                _check_entry(entry, own, mark)


def _check_storage(config: str) -> None:
    """Raise if a repository has its branches elsewhere."""
    for found in _REF_STORAGE.finditer(_read(config, MAX_FILE_BYTES)):
        if not _KNOWN_STORAGE.fullmatch(found[1]):
            raise _NotAllowed(f"{config} names a location of branches")


def _check_revisions(folder: str, own: list[str], mark: str) -> None:
    """Raise if a name of a commit leads out of a repository."""
    for entry in _entries(folder):
        if entry.name.endswith("HEAD") and entry.is_file():
            _check_name(entry.path)
    for inside in ("/refs", "/logs"):
        count, waiting = 0, [folder + inside]
        while waiting:
            for entry in _entries(waiting.pop()):
                count += 1
                if count > MAX_ENTRIES:
                    raise _NotAllowed(f"{folder}{inside} has over {MAX_ENTRIES:,} files")
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                    continue
                _check_entry(entry, own, mark)
                if entry.is_symlink() and entry.is_dir():
                    raise _NotAllowed(f"{entry.path} is a link to a folder")
                if inside == "/refs" and entry.is_file():
                    _check_name(entry.path)


def _check_name(file: str) -> None:
    """Raise if the file of a branch names one that is not below `refs`, where git follows links."""
    with open_regular(os.fsencode(file)) as opened:
        data = opened.read(MAX_NAME_BYTES)
    if data.startswith(b"ref:") and not data[4:].lstrip().startswith(b"refs/"):
        raise _NotAllowed(f"{file} names no branch")


def _entries(folder: str) -> Iterable[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return ()


def _check_entry(entry: os.DirEntry[str], own: list[str], mark: str) -> None:
    if entry.is_symlink():
        real = os.path.realpath(entry.path)
        if not any(_is_in(real, each) for each in own) and not _is_in_accepted(real, mark):
            raise _NotAllowed(f"{entry.path} leads out of the repository")
    elif (entry.is_file() and entry.name not in _WHOLE) or entry.is_dir():
        return
    try:
        status = entry.stat()
    except FileNotFoundError:
        return
    # No program waits for a socket, such as that of git's file system monitor.
    if stat.S_IFMT(status.st_mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFSOCK):
        raise _NotAllowed(f"{entry.path} is not a regular file")
    if entry.name in _WHOLE and status.st_size > MAX_FILE_BYTES:
        raise _NotAllowed(f"{entry.path} is too large")


def _is_in_accepted(real: str, mark: str) -> bool:
    """Return whether a path is in a repository that may be that of a `.git`."""
    folder = real
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        if os.path.lexists(f"{folder}/HEAD") and os.path.isdir(f"{folder}/objects"):
            return _belongs(folder, mark)
    return False
