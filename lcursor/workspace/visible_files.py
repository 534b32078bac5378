"""List the files of a project that an agent gets: what the user sees, without secrets. Blocks."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lcursor.process.run import Cancel
from lcursor.project import git, listing
from lcursor.project.git import GitFailed
from lcursor.project.hard_links import HardLinks
from lcursor.project.ignore import LEFTOVERS, LINK, IgnoreRules
from lcursor.project.links import Links
from lcursor.project.reading import SECRET_LINK
from lcursor.project.secrets import SecretGlobs

MAX_BYTES: Final = 16 << 20
"""Larger files are not copied; commands can read those of the user."""
TOO_LARGE: Final = f"it has more than {MAX_BYTES >> 20} MB"
OUTSIDE: Final = "a link out of the project"
UNREADABLE: Final = "it cannot be read"
REPOSITORY: Final = "another repository"


@dataclass(slots=True)
class VisibleFiles:
    """The files, relative to the root."""

    times_ns: dict[str, int] = field(default_factory=dict)
    """The modification time of each file; -1 for a link."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Paths and reasons."""
    total_bytes: int = 0
    """Size of all files."""


def default_excludes(root: Path, *, is_in_git: bool) -> list[str]:
    """Return ignore rules for folders with the output of tools."""
    return IgnoreRules(root, is_in_git=is_in_git).excludes


def visible_files(
    root: Path, tracked: Iterable[str] | None, secrets: Sequence[str], cancel: Cancel | None = None
) -> VisibleFiles:
    """List the files of a project.

    Args:
        tracked: files that git tracks; None for a project without git.
        secrets: the user's globs of secret files.

    Raises:
        GitFailed: git cannot list the untracked files.
    """
    if tracked is None:
        survey = listing.survey(root, cancel)
        linked = (path for path, reason in survey.ignored if reason == LINK)
        names = [*(each.path for each in survey.files), *linked]
    else:
        excludes = default_excludes(root, is_in_git=True)
        listed = git.list_files(root, excludes, cancel)
        fresh = (path for path in listed.untracked if not LEFTOVERS.fullmatch(Path(path).name))
        names = [*tracked, *fresh]
    visible, globs, links = VisibleFiles(), SecretGlobs(root, secrets), Links(root)
    hard_links = HardLinks(root, lambda path: bool(globs.name_reason(os.path.relpath(path, root))))
    waiting = [(path, 0) for path in dict.fromkeys(names)]
    while waiting:
        path, depth = waiting.pop()
        if len(waiting) % listing.CANCEL_EVERY == 0:
            listing.check(cancel)
        if links.above(path):
            continue
        try:
            status = os.lstat(root / path)
        except OSError:
            continue  # deleted, perhaps not yet committed
        if stat.S_ISDIR(status.st_mode):
            inner = [] if path.endswith("/") else _files_of_submodule(root, path, depth, cancel)
            waiting += inner
            if not inner:
                visible.left_out[path.rstrip("/")] = REPOSITORY
            continue
        reason = globs.name_reason(path) or _reason(root, path, status)
        if not reason and hard_links.is_secret(root / path, status):
            reason = SECRET_LINK
        if reason:
            visible.left_out[path] = reason
        elif stat.S_ISLNK(status.st_mode):
            visible.times_ns[path] = -1
        elif stat.S_ISREG(status.st_mode):
            visible.times_ns[path] = status.st_mtime_ns
            visible.total_bytes += status.st_size
    return visible


def _files_of_submodule(
    root: Path, path: str, depth: int, cancel: Cancel | None
) -> list[tuple[str, int]]:
    """Return the files of a submodule that is checked out."""
    if depth >= listing.MAX_DEPTH or not os.path.lexists(root / path / ".git"):
        return []
    try:
        listed = git.list_files(root / path, default_excludes(root, is_in_git=True), cancel)
    except GitFailed:
        return []
    return [(f"{path}/{name}", depth + 1) for name in (*listed.tracked, *listed.untracked)]


def _reason(root: Path, path: str, status: os.stat_result) -> str:
    """Return why a file is left out, by its type and size."""
    whole = root / path
    if stat.S_ISLNK(status.st_mode):
        return "" if Path(os.path.realpath(whole)).is_relative_to(root) else OUTSIDE
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if status.st_size > MAX_BYTES:
        return TOO_LARGE
    return "" if os.access(whole, os.R_OK) else UNREADABLE
