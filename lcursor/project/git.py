"""Asking git about a project's files: which there are, which it ignores and why.

Runs git as a child process and nothing else; on the thread of who asks. Reads, never writes: no
lock is taken, and nothing that a repository's configuration names is run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lcursor.errors import Cancelled

Cancel = Callable[[], bool]

LOOK_EVERY_S = 0.1
"""How often a waiting question looks whether it is still wanted."""

INHERITED = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
)
"""An editor that `git commit` starts has these set, for another repository than ours maybe."""


NO_WORK_TREE = ("not a git repository", "must be run in a work tree")
"""What git says where there is none."""


class GitFailed(Exception):
    """Git is missing or refuses; the words are its own. Never leaves `lcursor.index`."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree and where its git directory is."""

    top: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class Listing:
    """What git lists below a directory; paths relative to it."""

    tracked: list[str]
    untracked: list[str]
    """A repository within this one ends with a slash."""


def command_of(folder: Path, *words: str) -> list[str]:
    """Return the command line that asks git about a folder.

    Every call of git is built here: `core.fsmonitor` could name a program of the repository's
    choice, and paths are wanted as they are.
    """
    safe = ["-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "--no-pager"]
    return ["git", *safe, "-C", os.fspath(folder), *words]


def ask(
    folder: Path, *words: str, given: bytes = b"", fine: Iterable[int] = (0,), cancel: Cancel | None
) -> bytes:
    """Return what git says.

    Args:
        folder: where it runs.
        words: its arguments.
        given: its standard input.
        fine: exit statuses that mean an answer.
        cancel: asked now and then; true ends the question.

    Raises:
        GitFailed: it cannot be run, or exits with another status.
        Cancelled: `cancel` said so.
    """
    environment = {name: value for name, value in os.environ.items() if name not in INHERITED}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    command = command_of(folder, *words)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
    except OSError as error:
        raise GitFailed(f"git cannot be run: {error.strerror}") from error
    with process:
        waiting: bytes | None = given
        while True:
            try:
                said, complaint = process.communicate(waiting, timeout=LOOK_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                waiting = None
                if cancel and cancel():
                    process.kill()
                    raise Cancelled("looking through the project was stopped") from None
    if process.returncode not in fine:
        lines = complaint.decode(errors="replace").strip().splitlines()
        raise GitFailed(lines[0] if lines else f"git exits with {process.returncode}")
    return said


def split(said: bytes) -> list[str]:
    """Return the parts of an answer in which each ends with a NUL."""
    return [os.fsdecode(part) for part in said.split(b"\0") if part]


def repository(folder: Path, cancel: Cancel | None = None) -> Repository | None:
    """Return the repository whose work tree a directory is in, and that does not ignore it.

    A home directory under git that ignores everything is not the repository of what lies in it.

    Raises:
        GitFailed: there is one, but git cannot read it.
        Cancelled: `cancel` said so.
    """
    try:
        top = ask(folder, "rev-parse", "--show-toplevel", cancel=cancel)
        store = ask(folder, "rev-parse", "--absolute-git-dir", cancel=cancel)
    except GitFailed as failure:
        is_none = any(words in str(failure) for words in NO_WORK_TREE)
        if is_none and not (folder / ".git").exists():
            return None
        raise
    found = Repository(_path(top), _path(store))
    if found.top != folder.resolve() and ignored(folder, ["./"], cancel):
        return None
    return found


def _path(said: bytes) -> Path:
    return Path(os.fsdecode(said.removesuffix(b"\n")))


def listing(folder: Path, without: Sequence[str], cancel: Cancel | None = None) -> Listing:
    """List what git tracks, and what it neither tracks nor ignores.

    Args:
        folder: in a work tree.
        without: patterns as in `.gitignore`; directories of these names are not looked into.
        cancel: asked now and then.

    Raises:
        GitFailed: git refuses.
        Cancelled: `cancel` said so.
    """
    words = ("ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")
    said = ask(folder, *words, *_excludes(without), cancel=cancel)
    tracked: dict[str, None] = {}  # a path in conflict is listed three times
    untracked: list[str] = []
    for line in split(said):
        tag, path = line[0], line[2:]
        if tag == "?":
            untracked.append(path)
        elif tag != "S":  # not checked out
            tracked[path] = None
    return Listing(list(tracked), untracked)


def left_out(folder: Path, without: Sequence[str], cancel: Cancel | None = None) -> list[str]:
    """List what git ignores below a directory; directories as one, with a slash at their end.

    Raises:
        GitFailed: git refuses.
        Cancelled: `cancel` said so.
    """
    words = ("ls-files", "-z", "--others", "--ignored", "--directory", "--exclude-standard")
    said = split(ask(folder, *words, *_excludes(without), cancel=cancel))
    # A directory is listed also where only each of its files is ignored, not itself.
    asked = [path for path in said if path.endswith("/") and f"{_name(path)}/" not in without]
    really = ignored(folder, asked, cancel) if asked else set()
    found: list[str] = []
    gone: set[str] = set()
    for path in sorted(said):
        if path.endswith("/"):
            if path not in really and f"{_name(path)}/" not in without:
                continue
            gone.add(path)
        elif any(path[: at + 1] in gone for at, letter in enumerate(path) if letter == "/"):
            continue
        found.append(path)
    return found


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _excludes(patterns: Sequence[str]) -> list[str]:
    return [f"--exclude={pattern}" for pattern in patterns]


def ignored(folder: Path, paths: Sequence[str], cancel: Cancel | None = None) -> set[str]:
    """Return those of some paths that git ignores; what it tracks it does not ignore.

    Raises:
        GitFailed: git refuses, for example since a path lies in a submodule.
        Cancelled: `cancel` said so.
    """
    given = b"".join(os.fsencode(path) + b"\0" for path in paths)
    words = ("check-ignore", "-z", "--stdin")
    return set(split(ask(folder, *words, given=given, fine=(0, 1), cancel=cancel)))


def why_ignored(folder: Path, path: str) -> str:
    """Return where it is said that git ignores a path, `.gitignore:3: build/`; "" if nowhere.

    Raises:
        GitFailed: git refuses.
    """
    words = ("check-ignore", "-v", "-z", "--stdin")
    said = ask(folder, *words, given=os.fsencode(path) + b"\0", fine=(0, 1), cancel=None)
    parts = [os.fsdecode(part) for part in said.split(b"\0")]
    if len(parts) < 4 or parts[2].startswith("!"):
        return ""
    return f"{parts[0]}:{parts[1]}: {parts[2]}"


def is_other_tree(mark: Path) -> bool:
    """Return whether a `.git` is that of a work tree beside a repository's main one."""
    try:
        return mark.is_file() and "/worktrees/" in mark.read_bytes().decode(errors="replace")
    except OSError:
        return False
