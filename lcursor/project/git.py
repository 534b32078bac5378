"""Ask git about a project's files: which there are, which it ignores and why.

Runs git as a child process, on the caller's thread. Reads, never writes: no lock is taken, and
nothing that a repository's configuration names is run. All functions but `output` raise GitFailed
where git fails, and all raise Cancelled when `cancel` returns true.
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
"""An editor that `git commit` starts has these set, perhaps for another repository than ours."""
NO_WORK_TREE = ("not a git repository", "must be run in a work tree")
"""What git says where there is no repository."""


class GitFailed(Exception):
    """Git is missing or fails; the message is its own. Caught within lcursor."""


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
    """A repository within this one ends with a slash."""


def command_line(folder: Path, *words: str) -> list[str]:
    """Return the command line that asks git about a folder.

    Every call of git is built here: `core.fsmonitor` could name a program of the repository's
    choice, and paths are wanted as they are.
    """
    safe = ["-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "--no-pager"]
    return ["git", *safe, "-C", os.fspath(folder), *words]


def environment() -> dict[str, str]:
    """Return the environment for git: it speaks English, asks nothing and takes no lock."""
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
    """Return the output of a git command within some limits; see `process.run`."""
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
    """Return the whole output of a git command, however long that takes."""
    found = output(folder, *words, stdin=stdin, max_s=None, ok=ok, cancel=cancel)
    if found.failure:
        raise GitFailed(found.failure)
    return found.data


def split(data: bytes) -> list[str]:
    """Return the paths of an output in which each ends with a NUL."""
    return [os.fsdecode(part) for part in data.split(b"\0") if part]


def repository(folder: Path, cancel: Cancel | None = None) -> Repository | None:
    """Return the repository whose work tree a directory is in, and that does not ignore it.

    A home directory under git that ignores everything is not the repository of what lies in it.
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
    """List the files that git tracks, and those that it neither tracks nor ignores.

    Args:
        excludes: patterns as in `.gitignore`; directories of these names are not looked into.
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
    """List what git ignores below a directory; a directory as one path with a slash at its end."""
    words = ("ls-files", "-z", "--others", "--ignored", "--directory", "--exclude-standard")
    listed = split(ask(folder, *words, *_options(excludes), cancel=cancel))
    # A directory is also listed where each of its files is ignored but not the directory itself.
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
    """Return those of some paths that git ignores, with the rule: `.gitignore:3: build/`.

    A file that git tracks is not ignored.
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
    """Return whether a `.git` is that of a work tree beside a repository's main one."""
    try:
        return mark.is_file() and "/worktrees/" in mark.read_bytes().decode(errors="replace")
    except OSError:
        return False
