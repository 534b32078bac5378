"""Why a path is no part of a project, in words.

Looks at names, and asks git; never opens a file but ignore files. Any thread.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lcursor.project import git
from lcursor.project.git import GitFailed
from lcursor.project.ignore import DEFAULT_HINT, MARKS, OWN, Rules

IGNORED_BY_GIT = "git ignores it"
NOT_A_FILE = "not a regular file"
A_LINK = "a symbolic link"
OTHER_TREE = "another work tree of a repository"
UNREADABLE = "the directory cannot be read"
A_MARKED = "a cache or a Python environment"


def why(root: Path, path: str | Path) -> str:
    """Return why a path of a project is left out, in words; "" if it is not.

    Args:
        root: of the project.
        path: absolute, or relative to the root.
    """
    top = Path(os.path.realpath(root))
    full = Path(os.path.normpath(top / path))
    given = Path(os.path.normpath(root.absolute()))
    if not full.is_relative_to(top) and full.is_relative_to(given):
        full = top / full.relative_to(given)
    if not full.is_relative_to(top):
        return f"it is not in the project: {top}"
    relative = full.relative_to(top)
    for folder in reversed(relative.parents[:-1] if relative.parts else ()):
        if (top / folder).is_symlink():
            return f"it is behind {A_LINK}: {folder}"
    try:
        mode = os.lstat(full).st_mode
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if stat.S_ISLNK(mode):
        return f"it is {A_LINK}"
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return f"it is {NOT_A_FILE}"
    return _by_rules(top, "" if relative == Path() else str(relative), stat.S_ISDIR(mode))


def _by_rules(root: Path, path: str, is_folder: bool) -> str:
    try:
        repository = git.repository(root)
    except GitFailed:
        repository = None
    rules = Rules(root, is_in_git=repository is not None)
    reason = rules.of_folder(path) if is_folder else rules.of_file(path)
    if reason.endswith(DEFAULT_HINT):
        return f"{reason}; a line !{reason.partition(':')[0]}/ in {OWN} takes it in"
    if reason:
        return reason
    at = path if is_folder else path.rpartition("/")[0]
    folders = [at[:end] for end, letter in enumerate(f"{at}/") if letter == "/"] if at else []
    repositories = [""]
    for folder in folders:
        try:
            is_marked = not MARKS.isdisjoint(os.listdir(root / folder))
        except OSError:
            return f"{folder}: {UNREADABLE}"
        if is_marked:
            return f"{folder} is {A_MARKED}"
        mark = root / folder / ".git"
        if repository and mark.exists():
            if git.is_other_tree(mark):
                return f"{folder} is {OTHER_TREE}"
            repositories.append(f"{folder}/")
    return _by_git(root, repositories, path) if repository else ""


def _by_git(root: Path, repositories: list[str], path: str) -> str:
    """Return why git ignores a path, or a repository that it is in; "" if it does not."""
    for inside, asked in zip(repositories, [*repositories[1:], path], strict=True):
        below = asked[len(inside) :].rstrip("/")
        try:
            told = git.why_ignored(root / inside, below) if below else ""
        except GitFailed as failure:
            return f"git cannot say: {failure}"
        if told:
            return f"{IGNORED_BY_GIT}: {told}"
    return ""
