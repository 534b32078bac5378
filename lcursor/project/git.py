"""Ask git about a project. The only place where a git command line is built.

A repository is data of a stranger: its configuration may name programs for almost everything that
git does, and repositories may lie among its files. So git starts only in a folder that has a
`.git`, runs only the commands of `COMMANDS`, and gets settings and an environment with which it
starts no other program and contacts no server. The Lua side gets the same from
`lua/lcursor/editor/boundary.lua`, which is generated.

Runs git as a child process, on the caller's thread, and takes no lock. All functions except
`output` and `grep` raise GitFailed if git fails, and all raise Cancelled when `cancel` returns
true.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lcursor.process.run import Cancel, Output, run
from lcursor.project import git_folder
from lcursor.project.git_folder import is_other_work_tree as is_other_work_tree

SETTINGS: Final[Mapping[str, str]] = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.alternateRefsCommand": ":",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "credential.helper": "",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "gpg.ssh.defaultKeyCommand": "",
    "log.showSignature": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "core.quotePath": "false",
}
"""Override those of a repository: each but the last names a program, or makes git start one."""

_PLAIN: Final = (
    "--no-ext-diff", "--no-textconv", "--submodule=short", "--ignore-submodules=dirty",
)  # fmt: skip
"""Against programs, and against a git in each submodule, which would not get these settings."""
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "add", "cat-file", "check-ignore", "checkout-index", "config", "for-each-ref",
            "hash-object", "ls-files", "ls-tree", "pack-objects", "read-tree", "rev-list",
            "rev-parse", "symbolic-ref", "update-index", "write-tree",
        ),
        (),
    ),
    "grep": ("--no-textconv",),
    "diff": _PLAIN,
    "diff-tree": ("--no-ext-diff", "--no-textconv"),
    "log": (*_PLAIN, "--no-show-signature"),
    "show": (*_PLAIN, "--no-show-signature"),
}  # fmt: skip
"""The commands that may run, and options against the programs that they start."""

WITHOUT_REVISIONS: Final = frozenset({"check-ignore", "config", "grep", "ls-files"})
"""Commands that are run often, and never look for a commit by its name."""

FILTERED: Final = frozenset({"diff"})
"""Commands that pass the files of a user through the filters of the repository's attributes."""

ENVIRONMENT: Final[Mapping[str, str]] = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
INHERITED: Final = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
"""Variables of git that are passed on: where the user's own settings are. The others may be meant
for a different repository, as in an editor that `git commit` has started."""

NO_REPOSITORY: Final = "the folder is in no git repository"


MAX_S: Final = 60.0
"""Time limit of `ask`: a project can name a pipe for which git would wait without end."""

SHOWN: Final = (
    "fatal: detected dubious ownership", "fatal: not a git repository",
    "fatal: Expected git repo version", "fatal: unknown repository extension",
    "fatal: bad config line",
)  # fmt: skip
"""Beginnings of git's messages that are shown. Others may quote a file of the user."""


class GitFailed(Exception):
    """Git is missing or failed, with a message. Never reaches the user."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A work tree and its git directory."""

    top: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """The files that git lists below a directory; paths relative to it."""

    tracked: list[str]
    untracked: list[str]
    """A nested repository ends with a slash."""


def options(settings: Mapping[str, str] = SETTINGS) -> list[str]:
    """Return options of git that override settings of a repository."""
    pairs = [f"{name}={value}" for name, value in settings.items()]
    return [word for pair in pairs for word in ("-c", pair)]


def command_line(folder: Path, command: str, *words: str, filters: Iterable[str] = ()) -> list[str]:
    """Return the command line that runs a command of git in a folder.

    Args:
        filters: names of the filters that must not run.
    """
    off = {f"filter.{name}.{key}": "" for name in filters for key in ("clean", "smudge", "process")}
    off |= {f"filter.{name}.required": "false" for name in filters}
    safe = ["git", *options(), *options(off), "--no-pager", "-C", os.fspath(folder)]
    return [*safe, command, *COMMANDS[command], *words]


def environment(top: Path | None = None) -> dict[str, str]:
    """Return the environment for git.

    Args:
        top: the folder in which git starts; it looks for a repository only there, and its files
            are the work tree.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in INHERITED
    }
    # A relative folder is one of the project in which git starts.
    folders = [each for each in inherited.pop("PATH", "").split(os.pathsep) if os.path.isabs(each)]
    if folders:
        inherited["PATH"] = os.pathsep.join(folders)
    if top is None:
        return {**inherited, **ENVIRONMENT}
    where = {"GIT_CEILING_DIRECTORIES": os.fspath(top.parent), "GIT_WORK_TREE": os.fspath(top)}
    return {**inherited, **ENVIRONMENT, **where}


def top_of(folder: Path, *, has_revisions: bool = False) -> Path | None:
    """Return the nearest folder with a repository, from a folder upwards, without links; else None.

    Only a `.git` counts. Git itself would also use the files of a bare repository, which a project
    may contain.

    Args:
        has_revisions: whether git will look for commits by their names.

    Raises:
        GitFailed: its `.git` leads to what git must not read; see `git_folder`.
    """
    real = Path(os.path.realpath(folder))
    for top in (real, *real.parents):
        mark = top / ".git"
        if os.path.lexists(mark / "HEAD" if mark.is_dir() else mark):
            if reason := git_folder.problem(mark, has_revisions=has_revisions):
                raise GitFailed(reason)
            return top
    return None


def _locate(folder: Path) -> tuple[Path, str]:
    """Return the top of a folder's work tree, and its path below, which ends with a slash.

    Raises:
        GitFailed: there is none.
    """
    top = top_of(folder)
    if top is None:
        raise GitFailed(NO_REPOSITORY)
    return top, _inside(folder, top)


def _inside(folder: Path, top: Path) -> str:
    inside = os.path.relpath(os.path.realpath(folder), top)
    return "" if inside == os.curdir else f"{inside}/"


def _only(inside: str) -> list[str]:
    """Return the arguments that limit a command to a folder of the work tree."""
    return ["--", f":(literal){inside}"] if inside else []


def _relative(paths: Iterable[str], inside: str) -> list[str]:
    return [path.removeprefix(inside) for path in paths]


def output(
    folder: Path,
    command: str,
    *words: str,
    stdin: bytes = b"",
    max_bytes: int | None = None,
    max_s: float | None = 10.0,
    ok: Iterable[int] = (0,),
    cancel: Cancel | None = None,
    index: Path | None = None,
) -> Output:
    """Return the output of a git command within limits; see `process.run`.

    Args:
        folder: any folder of a work tree; the command runs in its top folder.
        index: a result of `commit_index`; None for the usual one.
    """
    try:
        top = top_of(folder, has_revisions=command not in WITHOUT_REVISIONS)
        if top is None:
            return Output(b"", failure=NO_REPOSITORY)
        filters = _filters(top, max_s, cancel) if command in FILTERED else ()
    except GitFailed as failure:
        return Output(b"", failure=str(failure))
    done = run(
        command_line(top, command, *words, filters=filters),
        top,
        stdin=stdin,
        env=environment(top) | ({"GIT_INDEX_FILE": os.fspath(index)} if index else {}),
        max_bytes=max_bytes,
        max_s=max_s,
        ok=ok,
        cancel=cancel,
    )
    return _without_quotes(done)


def _without_quotes(done: Output) -> Output:
    """Return an output with a message of git only if it is known to quote no file."""
    if not done.failure or done.is_cut or done.status is None:
        return done
    lines = done.errors.decode(errors="replace").splitlines()
    known = next((line for line in lines if line.startswith(SHOWN)), "")
    shown = ": ".join(known.split(": ")[:2])
    return replace(done, failure=shown or f"git failed with status {done.status}")


def _filters(top: Path, max_s: float | None, cancel: Cancel | None) -> list[str]:
    """Return the names of the filters that a repository or its user configures."""
    words = ("-z", "--name-only", "--get-regexp", r"^filter\.")
    done = output(top, "config", *words, max_s=max_s, ok=(0, 1), cancel=cancel)
    if done.failure:
        raise GitFailed(done.failure)
    names = {key.split(".", 1)[1].rpartition(".")[0] for key in split(done.data)}
    if any("=" in name for name in names):
        raise GitFailed("the configuration has a filter that cannot be switched off")
    return sorted(names)


def ask(
    folder: Path,
    command: str,
    *words: str,
    stdin: bytes = b"",
    ok: Iterable[int] = (0,),
    cancel: Cancel | None = None,
) -> bytes:
    """Return the whole output of a git command that takes at most MAX_S."""
    done = output(folder, command, *words, stdin=stdin, max_s=MAX_S, ok=ok, cancel=cancel)
    if done.is_cut:
        raise GitFailed(f"git {command} took longer than {MAX_S:g} s")
    if done.failure:
        raise GitFailed(done.failure)
    return done.data


def grep(
    folder: Path,
    words: Sequence[str],
    patterns: Sequence[str],
    *,
    max_bytes: int,
    max_s: float,
    cancel: Cancel | None = None,
) -> Output:
    """Search the tracked and new files of a project; without git, those that no rule ignores.

    Args:
        words: options of `git grep`.
        patterns: pathspecs of files to leave out.
    """
    try:
        top = top_of(folder)
    except GitFailed as failure:
        return Output(b"", failure=str(failure))
    if top is None:
        start, inside, how = folder, "", ["--no-index", "--exclude-standard"]
    else:
        start, inside = top, _inside(folder, top)
        how = ["--untracked", "--no-recurse-submodules"]
    where = ["--", f":(literal){inside}" if inside else ".", *(f":(exclude){p}" for p in patterns)]
    done = run(
        command_line(start, "grep", *how, *words, *where),
        start,
        env=environment(start),
        max_bytes=max_bytes,
        max_s=max_s,
        ok=(0, 1),
        cancel=cancel,
    )
    hits = _without_quotes(done)
    if not inside:
        return hits
    cut = len(os.fsencode(inside))
    return replace(hits, data=b"\n".join(line[cut:] for line in hits.data.split(b"\n")))


def split(data: bytes) -> list[str]:
    """Return the NUL-terminated paths of an output."""
    return [os.fsdecode(part) for part in data.split(b"\0") if part]


def repository(folder: Path, cancel: Cancel | None = None) -> Repository | None:
    """Return the repository that contains a directory and does not ignore it.

    A home directory under git that ignores everything is not the repository of its folders.
    """
    top = top_of(folder)
    if top is None:
        return None
    data = ask(top, "rev-parse", "--absolute-git-dir", cancel=cancel).removesuffix(b"\n")
    if top != Path(os.path.realpath(folder)) and ignored(folder, ["./"], cancel):
        return None
    return Repository(top, Path(os.fsdecode(data)))


def commit_index(
    folder: Path, message: str, given: str, cancel: Cancel | None = None
) -> Path | None:
    """Return the index of a commit whose message is being written; None for the usual one.

    `git commit -a` and `git commit FILE` have their own until the editor ends.

    Args:
        message: the file of the message. Other indexes than the usual one are only used if it is
            in the git directory of the project.
        given: GIT_INDEX_FILE of the editor that git has started in the top folder; "" if the file
            was opened in another one, for which the lock of `git commit -a` is found.
    """
    checkout = repository(folder, cancel) if message else None
    parent = os.path.realpath(os.path.dirname(message))
    if checkout is None or parent != os.path.realpath(checkout.folder):
        return None
    index = checkout.top / given if given else checkout.folder / "index.lock"
    return index if index.is_file() else None


def list_files(folder: Path, excludes: Sequence[str], cancel: Cancel | None = None) -> ListedFiles:
    """List the tracked files, and the untracked ones that git does not ignore.

    Args:
        excludes: patterns as in `.gitignore`; directories that match are skipped.
    """
    top, inside = _locate(folder)
    words = ("-z", "-t", "--cached", "--others", "--exclude-standard", *_excluded(excludes))
    data = ask(top, "ls-files", *words, *_only(inside), cancel=cancel)
    tracked: dict[str, None] = {}  # a path in conflict is listed three times
    untracked: list[str] = []
    for line in split(data):
        tag, path = line[0], line[2:].removeprefix(inside)
        if tag == "?":
            untracked.append(path)
        elif tag != "S":  # not checked out
            tracked[path] = None
    return ListedFiles(list(tracked), untracked)


def list_names(
    folder: Path,
    excludes: Sequence[str],
    *,
    max_bytes: int,
    max_s: float,
    cancel: Cancel | None = None,
) -> tuple[list[str], Output]:
    """List the same files within limits; also return the output, with the limit or failure."""
    try:
        top, inside = _locate(folder)
    except GitFailed as failure:
        return [], Output(b"", failure=str(failure))
    words = ("-z", "--cached", "--others", "--exclude-standard", *_excluded(excludes))
    done = output(
        top, "ls-files", *words, *_only(inside), max_bytes=max_bytes, max_s=max_s, cancel=cancel
    )
    whole = done.data.rpartition(b"\0")[0]  # the last name may be incomplete
    return list(dict.fromkeys(_relative(split(whole), inside))), done


def list_ignored(folder: Path, excludes: Sequence[str], cancel: Cancel | None = None) -> list[str]:
    """List the ignored files and directories below a directory; directories end with a slash."""
    top, inside = _locate(folder)
    words = ("-z", "--others", "--ignored", "--directory", "--exclude-standard")
    data = ask(top, "ls-files", *words, *_excluded(excludes), *_only(inside), cancel=cancel)
    listed = _relative(split(data), inside)
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


def _excluded(excludes: Sequence[str]) -> list[str]:
    return [f"--exclude={pattern}" for pattern in excludes]


def ignored(folder: Path, paths: Sequence[str], cancel: Cancel | None = None) -> dict[str, str]:
    """Return the ignored ones of some paths, each with the rule: `.gitignore:3: build/`.

    Tracked files are never ignored.
    """
    top, inside = _locate(folder)
    stdin = b"".join(os.fsencode(inside + path) + b"\0" for path in paths)
    words = ("-v", "-z", "--stdin")
    data = ask(top, "check-ignore", *words, stdin=stdin, ok=(0, 1), cancel=cancel)
    fields = [os.fsdecode(part) for part in data.split(b"\0")[:-1]]
    rows = zip(fields[::4], fields[1::4], fields[2::4], fields[3::4], strict=True)
    return {
        path.removeprefix(inside): f"{source}:{row}: {pattern}"
        for source, row, pattern, path in rows
        if not pattern.startswith("!")
    }


def is_ignored(path: Path, cancel: Cancel | None = None) -> bool:
    """Return whether git ignores a file, or what it links to."""
    real = Path(os.path.realpath(path))
    if top_of(real.parent) is None:
        return False
    return bool(ignored(real.parent, [real.name], cancel))
