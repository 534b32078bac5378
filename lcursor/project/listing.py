"""List the files of a project, and the left-out ones with the reason.

Reads names, sizes, times and ignore files, no other content. Does not follow symbolic links. On the
caller's thread; raises Cancelled when `cancel` returns true.
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
from lcursor.process.run import Cancel
from lcursor.project import git
from lcursor.project.git import GitFailed
from lcursor.project.ignore import (
    BEHIND_LINK,
    IGNORED_BY_GIT,
    LINK,
    MARKED,
    MARKS,
    NOT_A_FILE,
    OTHER_WORK_TREE,
    IgnoreRules,
)
from lcursor.project.links import Links

UNREADABLE = "the directory cannot be read"
CANCEL_EVERY = 2000
"""Number of files between two calls of `cancel`."""
MAX_DEPTH = 8
"""Maximum nesting of repositories."""
MAX_NAMES = 50_000
MAX_BYTES = 8 << 20
MAX_S = 5.0


class Found(NamedTuple):
    """A file in the file system."""

    path: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Survey:
    """All files of a project at one time."""

    files: list[Found]
    ignored: list[tuple[str, str]]
    """Paths and reasons; a directory ends with a slash and stands for all its content."""
    seconds: float
    repositories: tuple[str, ...] = ()
    """Directories of repositories in the project, with a slash at the end; "" is the repository of
    the project itself. Empty without git."""
    git_folder: Path | None = None
    """The git directory of the project itself."""
    remarks: tuple[str, ...] = ()
    """Problems to show to the user."""


def found(root: Path, path: str) -> Found | None:
    """Return the current data of a file; None if there is no such regular file."""
    if Links(root).above(path):
        return None
    try:
        status = os.lstat(root / path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return Found(path, status.st_size, status.st_mtime_ns)


def folders_of(path: str) -> Iterator[str]:
    """Yield the parent directories of a relative path, outermost first, without the root."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def survey(root: Path, cancel: Cancel | None = None) -> Survey:
    """List all files of a project.

    In a git work tree git applies its rules; elsewhere the `.gitignore` files are read here.
    `.lcursorignore` applies in both cases.

    Raises:
        IndexFailed: the directory is missing or cannot be read. The caller must not treat its
            files as deleted.
    """
    start_s = time.monotonic()
    try:
        os.scandir(root).close()
    except OSError as error:
        raise IndexFailed(
            f"the project's directory {root} cannot be read: {error.strerror}"
        ) from error
    scan = _Scan(Path(os.path.realpath(root)), cancel)
    try:
        repository = git.repository(scan.root, cancel)
        if repository:
            scan.ask_git("", 0)
    except GitFailed as failure:
        repository = None
        scan.reset()
        scan.remarks.append(f"git's ignore rules are not applied: {failure}")
    if not repository:
        scan.walk()
    scan.files.sort()
    scan.ignored.sort()
    return Survey(
        scan.files,
        scan.ignored,
        time.monotonic() - start_s,
        tuple(scan.repositories),
        repository.folder if repository else None,
        tuple(scan.remarks),
    )


class _Scan:
    def __init__(self, root: Path, cancel: Cancel | None) -> None:
        self.root = root
        self.remarks: list[str] = []
        self._cancel = cancel
        self.reset()

    def reset(self) -> None:
        self.files: list[Found] = []
        self.ignored: list[tuple[str, str]] = []
        self.repositories: list[str] = []
        self._links = Links(self.root)

    def ask_git(self, inside: str, depth: int) -> None:
        """Add the files that git lists in a repository; `inside` ends with a slash or is empty."""
        rules = IgnoreRules(self.root, is_in_git=True)
        here = self.root / inside
        self.repositories.append(inside)
        listed = git.list_files(here, rules.excludes, self._cancel)
        marked = {
            path.rpartition("/")[0]
            for path in listed.untracked
            if path.rpartition("/")[2] in MARKS and "/" in path
        }
        folders: dict[str, str] = {}
        """Directories that other rules than git's leave out, with the reason."""
        for number, path in enumerate([*listed.tracked, *listed.untracked]):
            if number % CANCEL_EVERY == 0:
                check(self._cancel)
            full = inside + path
            if number >= len(listed.tracked) and marked and not marked.isdisjoint(folders_of(path)):
                continue
            folder = full.rpartition("/")[0]
            if reason := rules.reason(f"{folder}/"):
                while rules.reason(f"{folder.rpartition('/')[0]}/"):
                    folder = folder.rpartition("/")[0]
                folders[f"{folder}/"] = reason
            elif self._links.above(full):
                self.ignored.append((full, BEHIND_LINK))
            elif path.endswith("/"):
                self._add_repository(full, depth)
            else:
                self._add(full, rules.reason(full), depth)
        self.ignored += folders.items()
        self.ignored += [(f"{inside}{folder}/", MARKED) for folder in marked]
        self.remarks += (each for each in rules.remarks if each not in self.remarks)
        for path in git.list_ignored(here, rules.excludes, self._cancel):
            full = inside + path
            by_name = rules.reason(full) if path.endswith("/") else ""
            if full not in folders:
                self.ignored.append((full, by_name or IGNORED_BY_GIT))

    def walk(self) -> None:
        """Add all files that the ignore files do not exclude."""
        rules = IgnoreRules(self.root, is_in_git=False)
        for path, reason in walk(self.root, rules, cancel=self._cancel):
            if path.endswith("/"):
                self.ignored.append((path, reason))
            else:
                self._add(path, reason, 0)
        self.remarks += rules.remarks

    def _add(self, path: str, reason: str, depth: int) -> None:
        """Add a file, or the reason for leaving it out."""
        if reason:
            self.ignored.append((path, reason))
            return
        try:
            status = os.lstat(self.root / path)
        except OSError:
            return  # deleted, perhaps not yet committed
        if stat.S_ISREG(status.st_mode):
            self.files.append(Found(path, status.st_size, status.st_mtime_ns))
        elif stat.S_ISDIR(status.st_mode):
            self._add_repository(f"{path}/", depth)
        else:
            self.ignored.append((path, LINK if stat.S_ISLNK(status.st_mode) else NOT_A_FILE))

    def _add_repository(self, inside: str, depth: int) -> None:
        """Add the files of a nested repository."""
        mark = self.root / inside / ".git"
        if not mark.exists():
            return  # a submodule that is not checked out
        if depth >= MAX_DEPTH or git.is_other_work_tree(mark):
            self.ignored.append((inside, OTHER_WORK_TREE))
            return
        try:
            self.ask_git(inside, depth + 1)
        except GitFailed as failure:
            self.ignored.append((inside, f"git cannot read it: {failure}"))


def walk(
    folder: Path, rules: IgnoreRules, inside: str = "", cancel: Cancel | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the files below a directory, and the left-out ones with the reason.

    Args:
        folder: directory to list, without following links; the paths are relative to it.
        inside: path of the folder relative to the project, with a slash at the end; "" is the root.

    Yields:
        A path and the reason why it is left out, "" if it is not. A left-out directory ends with a
        slash and stands for all its content.
    """
    waiting = [""]
    while waiting:
        check(cancel)
        here = waiting.pop()
        try:
            with os.scandir(folder / here) as scanned:
                entries = list(scanned)
        except OSError:
            yield here, UNREADABLE
            continue
        if here and not MARKS.isdisjoint(entry.name for entry in entries):
            yield here, MARKED
            continue
        for entry in entries:
            path = here + entry.name
            if entry.is_file(follow_symlinks=False):
                yield path, rules.reason(inside + path)
            elif not entry.is_dir(follow_symlinks=False):
                kind = LINK if entry.is_symlink() else NOT_A_FILE
                yield path, rules.reason(inside + path) or kind
            elif reason := rules.reason(f"{inside}{path}/"):
                yield f"{path}/", reason
            else:
                waiting.append(f"{path}/")


def check(cancel: Cancel | None) -> None:
    """Raise Cancelled if `cancel` returns true."""
    if cancel and cancel():
        raise Cancelled("listing the project's files was stopped")


@dataclass(frozen=True, slots=True)
class Names:
    """The files below a folder, ordered."""

    files: tuple[str, ...]
    """Relative to the folder."""
    note: str = ""
    """Why there may be more; empty if the list is complete."""


def names(
    folder: Path, root: Path | None = None, cancel: Cancel | None = None, max_files: int = MAX_NAMES
) -> Names:
    """List the names of the files below a folder that are not left out, within some seconds.

    A folder that is left out itself is still listed, since it was requested by name. Faster than a
    survey: files are not checked, and nested repositories are skipped.

    Args:
        root: of the project, whose ignore files apply as well; by default the folder.
    """
    folder = Path(os.path.realpath(folder))
    top = Path(os.path.realpath(root or folder))
    if not folder.is_relative_to(top):
        top = folder
    inside = "" if folder == top else f"{folder.relative_to(top).as_posix()}/"
    rules = IgnoreRules(top, is_in_git=True)
    listed, output = git.list_names(
        folder, rules.excludes, max_bytes=MAX_BYTES, max_s=MAX_S, cancel=cancel
    )
    note = f"there are more: {output.failure}" if output.is_cut else ""
    paths: list[str] = []
    if (output.failure and not output.is_cut) or _is_ignored(folder, cancel):
        rules = IgnoreRules(top, is_in_git=False)
        if rules.reason(inside):
            rules, inside = IgnoreRules(folder, is_in_git=False), ""
        end_s = time.monotonic() + MAX_S
        for name, reason in walk(folder, rules, inside, cancel):
            if not reason:
                paths.append(name)
            if len(paths) > max_files:
                break
            if time.monotonic() > end_s:
                note = "there are more: listing took too long"
                break
    else:
        links = Links(folder)
        paths = [
            name
            for name in listed
            if not (name.endswith("/") or rules.reason(inside + name) or links.above(name))
        ]
    if len(paths) > max_files:
        note = f"there are more than {max_files:,}"
    return Names(tuple(sorted(paths[:max_files])), note)


def _is_ignored(folder: Path, cancel: Cancel | None) -> bool:
    """Return whether git ignores a folder, for example build output."""
    try:
        return bool(git.ignored(folder, ["./"], cancel))
    except GitFailed:
        return False
