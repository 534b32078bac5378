"""List a project's files with git, and find out which it ignores and why.

Runs git as a child process, on the caller's thread. Read-only: takes no lock, and runs no program
that a repository's configuration names. All functions except `output` raise GitFailed if git fails,
and all raise Cancelled when `cancel` returns true.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lcursor.process.run import Cancel, Output, run

INHERITED = frozenset({
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_INDEX_FILE",
    "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_WORK_TREE",
})  # fmt: skip
"""Set in an editor that `git commit` starts, perhaps for a different repository."""
NO_WORK_TREE = ("not a git repository", "must be run in a work tree")
"""Error messages of git outside of repositories."""


class GitFailed(Exception):
    """Git is missing or failed, with git's own message. Never reaches the user."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree and its git directory."""

    top: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class Files:
    """The files that git lists below a directory; paths relative to it."""

    tracked: list[str]
    untracked: list[str]
    """A nested repository ends with a slash."""


def command_line(folder: Path, *words: str) -> list[str]:
    """Return a git command line for a folder.

    Every call of git is built here, without `core.fsmonitor`, which could run any program, and
    without quoting of paths.
    """
    safe = ["-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "--no-pager"]
    return ["git", *safe, "-C", os.fspath(folder), *words]


def environment() -> dict[str, str]:
    """Return the environment for git: English messages, no prompts, no optional locks."""
    known = {name: value for name, value in os.environ.items() if name not in INHERITED}
    return known | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


def output(
    folder: Path,
    *words: str,
    stdin: bytes = b"",
    max_bytes: int | None = None,
    max_s: float | None = 10.0,
    ok: Iterable[int] = (0,),
    cancel: Cancel | None = None,
) -> Output:
    """Return the output of a git command within limits; see `process.run`."""
    return run(
        command_line(folder, *words),
        folder,
        stdin=stdin,
        env=environment(),
        max_bytes=max_bytes,
        max_s=max_s,
        ok=ok,
        cancel=cancel,
    )


def ask(
    folder: Path,
    *words: str,
    stdin: bytes = b"",
    ok: Iterable[int] = (0,),
    cancel: Cancel | None = None,
) -> bytes:
    """Return the whole output of a git command, without a time limit."""
    found = output(folder, *words, stdin=stdin, max_s=None, ok=ok, cancel=cancel)
    if found.failure:
        raise GitFailed(found.failure)
    return found.data


def split(data: bytes) -> list[str]:
    """Return the NUL-terminated paths of an output."""
    return [os.fsdecode(part) for part in data.split(b"\0") if part]


def repository(folder: Path, cancel: Cancel | None = None) -> Repository | None:
    """Return the repository that contains a directory and does not ignore it.

    A home directory under git that ignores everything is not the repository of its folders.
    """
    words = ("rev-parse", "--show-toplevel", "--absolute-git-dir")
    try:
        data = ask(folder, *words, cancel=cancel).removesuffix(b"\n")
    except GitFailed as failure:
        is_none = any(words in str(failure) for words in NO_WORK_TREE)
        if is_none and not (folder / ".git").exists():
            return None
        raise
    top, _, git_folder = data.rpartition(b"\n")
    found = Repository(Path(os.fsdecode(top)), Path(os.fsdecode(git_folder)))
    if found.top != folder.resolve() and ignored(folder, ["./"], cancel):
        return None
    return found


def list_files(folder: Path, excludes: Sequence[str], cancel: Cancel | None = None) -> Files:
    """List the tracked files, and the untracked ones that git does not ignore.

    Args:
        excludes: patterns as in `.gitignore`; directories that match are skipped.
    """
    words = ("ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")
    data = ask(folder, *words, *_options(excludes), cancel=cancel)
    tracked: dict[str, None] = {}  # a path in conflict is listed three times
    untracked: list[str] = []
    for line in split(data):
        tag, path = line[0], line[2:]
        if tag == "?":
            untracked.append(path)
        elif tag != "S":  # not checked out
            tracked[path] = None
    return Files(list(tracked), untracked)


def list_ignored(folder: Path, excludes: Sequence[str], cancel: Cancel | None = None) -> list[str]:
    """List the ignored files and directories below a directory; directories end with a slash."""
    words = ("ls-files", "-z", "--others", "--ignored", "--directory", "--exclude-standard")
    listed = split(ask(folder, *words, *_options(excludes), cancel=cancel))
    # Git also lists a directory if it ignores all its files but not the directory itself.
    unsure = [path for path in listed if path.endswith("/") and not _is_excluded(path, excludes)]
    really = ignored(folder, unsure, cancel) if unsure else {}
    found: list[str] = []
    folders: set[str] = set()
    for path in sorted(listed):
        if path.endswith("/"):
            if path not in really and not _is_excluded(path, excludes):
                continue
            folders.add(path)
        elif any(path[: at + 1] in folders for at, letter in enumerate(path) if letter == "/"):
            continue
        found.append(path)
    return found


def _is_excluded(folder: str, excludes: Sequence[str]) -> bool:
    return folder.rstrip("/").rpartition("/")[2] + "/" in excludes


def _options(excludes: Sequence[str]) -> list[str]:
    return [f"--exclude={pattern}" for pattern in excludes]


def ignored(folder: Path, paths: Sequence[str], cancel: Cancel | None = None) -> dict[str, str]:
    """Return the ignored ones of some paths, each with the rule: `.gitignore:3: build/`.

    Tracked files are never ignored.
    """
    stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
    words = ("check-ignore", "-v", "-z", "--stdin")
    data = ask(folder, *words, stdin=stdin, ok=(0, 1), cancel=cancel)
    fields = [os.fsdecode(part) for part in data.split(b"\0")[:-1]]
    rows = zip(fields[::4], fields[1::4], fields[2::4], fields[3::4], strict=True)
    return {
        path: f"{source}:{row}: {pattern}"
        for source, row, pattern, path in rows
        if not pattern.startswith("!")
    }


def is_other_work_tree(mark: Path) -> bool:
    """Return whether a `.git` belongs to a linked work tree of a repository."""
    try:
        return mark.is_file() and "/worktrees/" in mark.read_bytes().decode(errors="replace")
    except OSError:
        return False
