"""Which files a project has, which of them are left out, and why.

Looks at names, sizes and times; never opens a file but ignore files. Symbolic links are not
followed. Runs on the thread of who asks; `cancel` ends it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lcursor.errors import Cancelled, IndexFailed
from lcursor.project import git
from lcursor.project.git import Cancel, GitFailed, is_other_tree
from lcursor.project.ignore import MARKS, Rules
from lcursor.project.reasons import (
    A_LINK,
    A_MARKED,
    IGNORED_BY_GIT,
    NOT_A_FILE,
    OTHER_TREE,
    UNREADABLE,
)
from lcursor.project.reasons import why as why

LOOK_EVERY = 2000
"""Files between two looks at `cancel`."""
DEEPEST = 8
"""Repositories within repositories."""


class Found(NamedTuple):
    """A file as the file system has it."""

    path: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Survey:
    """All files of a project at one time."""

    files: list[Found]
    ignored: list[tuple[str, str]]
    """Paths and why; a directory ends with a slash and stands for all in it."""
    seconds: float
    root: Path = Path()
    repositories: tuple[str, ...] = ()
    """Directories of repositories within the project, with a slash at their end, "" for the one
    that the project is or lies in; none: git was not asked."""
    git_folder: Path | None = None
    """Where that one has its HEAD and its index."""
    remarks: tuple[str, ...] = ()
    """What did not go as it should, for a person."""


def found(root: Path, path: str) -> Found | None:
    """Return what a file looks like now; None if it is no regular file or not there."""
    try:
        status = os.lstat(root / path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Found(path, status.st_size, status.st_mtime_ns)


def survey(root: Path, cancel: Cancel | None = None) -> Survey:
    """Look through a project.

    In a git work tree git is asked, so that all its rules hold; elsewhere the `.gitignore` files
    are read here. `.lcursorignore` counts in both.

    Raises:
        IndexFailed: there is no such directory, or it cannot be read: nothing is known of its
            files then, and nothing may be taken for deleted.
        Cancelled: `cancel` said so.
    """
    start_s = time.monotonic()
    try:
        os.scandir(root).close()
    except OSError as error:
        raise IndexFailed(
            f"the project's directory {root} cannot be read: {error.strerror}"
        ) from error
    looking = _Looking(Path(os.path.realpath(root)), cancel)
    try:
        repository = git.repository(looking.root, cancel)
        if repository:
            looking.ask_git("", 0)
    except GitFailed as failure:
        repository = None
        looking.forget()
        looking.remarks.append(f"git is not asked which files to leave out: {failure}")
    if not repository:
        looking.walk()
    looking.files.sort()
    looking.ignored.sort()
    return Survey(
        looking.files,
        looking.ignored,
        time.monotonic() - start_s,
        looking.root,
        tuple(looking.repositories),
        repository.folder if repository else None,
        tuple(looking.remarks),
    )


class _Looking:
    """A survey that is being made."""

    def __init__(self, root: Path, cancel: Cancel | None) -> None:
        self.root = root
        self.remarks: list[str] = []
        self._cancel = cancel
        self.forget()

    def forget(self) -> None:
        self.files: list[Found] = []
        self.ignored: list[tuple[str, str]] = []
        self.repositories: list[str] = []

    def ask_git(self, inside: str, depth: int) -> None:
        """Take in what git lists in a repository; `inside` ends with a slash or is empty."""
        rules = Rules(self.root, is_in_git=True)
        here = self.root / inside
        self.repositories.append(inside)
        without = rules.excludes
        listing = git.listing(here, without, self._cancel)
        marked = {
            path.rpartition("/")[0]
            for path in listing.untracked
            if path.rpartition("/")[2] in MARKS and "/" in path
        }
        folders: dict[str, None] = {}  # that are left out here, not by git
        for number, path in enumerate([*listing.tracked, *listing.untracked]):
            if number % LOOK_EVERY == 0:
                self._look()
            full = inside + path
            if number >= len(listing.tracked) and marked and _is_below(path, marked):
                continue
            folder = full.rpartition("/")[0]
            reason = rules.of_folder(folder)
            if reason:
                while rules.of_folder(folder.rpartition("/")[0]):
                    folder = folder.rpartition("/")[0]
                folders[folder] = None
                continue
            if path.endswith("/"):
                self._other(full, depth)
            else:
                self._take(full, rules.of_file(full), depth)
        self.ignored += [(f"{folder}/", rules.of_folder(folder)) for folder in folders]
        self.ignored += [(f"{inside}{folder}/", A_MARKED) for folder in marked]
        for path in git.left_out(here, without, self._cancel):
            full = inside + path
            is_folder = path.endswith("/")
            by_name = rules.of_folder(full[:-1]) if is_folder else ""
            if full.rstrip("/") not in folders:
                self.ignored.append((full, by_name or IGNORED_BY_GIT))

    def _take(self, path: str, reason: str, depth: int) -> None:
        """Keep a file, or say why not."""
        if reason:
            self.ignored.append((path, reason))
            return
        try:
            status = os.lstat(self.root / path)
        except OSError:
            return  # deleted and not yet committed, or gone meanwhile
        if stat.S_ISREG(status.st_mode):
            self.files.append(Found(path, status.st_size, status.st_mtime_ns))
        elif stat.S_ISDIR(status.st_mode):
            self._other(f"{path}/", depth)
        else:
            self.ignored.append((path, A_LINK if stat.S_ISLNK(status.st_mode) else NOT_A_FILE))

    def _other(self, inside: str, depth: int) -> None:
        """Take in a repository within this one."""
        mark = self.root / inside / ".git"
        if not mark.exists():
            return  # a submodule that is not there
        if depth >= DEEPEST or is_other_tree(mark):
            self.ignored.append((inside, OTHER_TREE))
            return
        try:
            self.ask_git(inside, depth + 1)
        except GitFailed as failure:
            self.ignored.append((inside, f"git cannot read it: {failure}"))

    def walk(self) -> None:
        """Take in all files, with the rules of the ignore files."""
        rules = Rules(self.root, is_in_git=False)
        waiting = [""]
        while waiting:
            self._look()
            inside = waiting.pop()
            entries = list(self._entries(inside))
            if inside and not MARKS.isdisjoint(entry.name for entry in entries):
                self.ignored.append((inside, A_MARKED))
                continue
            for entry in entries:
                path = inside + entry.name
                if entry.is_dir(follow_symlinks=False):
                    reason = rules.of_folder(path)
                    if not reason and entry.name != ".git":
                        waiting.append(f"{path}/")
                    elif reason:
                        self.ignored.append((f"{path}/", reason))
                    continue
                self._take(path, rules.of_file(path), 0)

    def _entries(self, inside: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / inside) as entries:
                yield from entries
        except OSError:
            self.ignored.append((inside, UNREADABLE))

    def _look(self) -> None:
        if self._cancel and self._cancel():
            raise Cancelled("looking through the project was stopped")


def _is_below(path: str, folders: set[str]) -> bool:
    """Return whether a path lies in one of some directories."""
    at = path.find("/")
    while at >= 0:
        if path[:at] in folders:
            return True
        at = path.find("/", at + 1)
    return False
