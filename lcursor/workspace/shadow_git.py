"""Run git with a repository of our own, on files of the user or of an agent. Blocks; one thread.

Objects are borrowed from the user's repository, which is only read. Neither its settings nor the
user's apply, so git runs no hook, filter, file-system monitor or external diff.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lcursor.process.run import Cancel, Output, run
from lcursor.project import git
from lcursor.project.git import GitFailed
from lcursor.storage import folders

CONFIG: Final = """\
[core]
	repositoryFormatVersion = {version}
	bare = false
	fileMode = true
	autocrlf = false
	safecrlf = false
	fsmonitor = false
	untrackedCache = false
	hooksPath = /dev/null
	logAllRefUpdates = false
	protectNTFS = false
	protectHFS = false
[extensions]
	{format}
[gc]
	auto = 0
[maintenance]
	auto = false
[submodule]
	recurse = false
[protocol]
	allow = never
"""
ATTRIBUTES: Final = "* -text -ident !eol !working-tree-encoding !filter\n"
"""Against every conversion: an agent works on the bytes that the user has."""
REFS: Final = "refs/checkpoints"
MAX_ALLOCATED: Final = "256m"
"""Limit of the memory for one file, which `git grep` reads as a whole."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """What our repository needs to know of the user's."""

    index: Path
    objects: Path
    head: str
    """Content of its file HEAD."""
    refs: bytes
    """Content of a file `packed-refs`."""
    shallow: bytes
    excludes: bytes
    """The ignore rules that are not in the work tree."""
    format: str
    """`sha1` or `sha256`."""
    may_convert: bool
    """Whether git may store files with other bytes than the user has, whatever the attributes in
    the work tree."""


def read_checkout(root: Path, cancel: Cancel | None = None) -> Checkout | None:
    """Return the repository whose work tree is `root`; None if there is none.

    Raises:
        GitFailed: git is missing, or cannot read it.
    """
    repository = git.repository(root, cancel)
    if repository is None or repository.top != Path(os.path.realpath(root)):
        return None
    names = ("index", "objects", "shallow", "info/exclude", "info/attributes")
    words = [word for name in names for word in ("--git-path", name)]
    data = git.ask(root, "rev-parse", *words, "--show-object-format", cancel=cancel)
    *paths, kind = os.fsdecode(data).splitlines()
    if len(paths) != len(names):
        raise GitFailed("the path of the repository contains a line end")
    absolute = (Path(os.path.abspath(root / path)) for path in paths)
    index, objects, shallow, exclude, attributes = absolute
    branch = git.ask(root, "symbolic-ref", "-q", "HEAD", ok=(0, 1), cancel=cancel)
    head = f"ref: {os.fsdecode(branch)}" if branch else ""
    listed = ("for-each-ref", "--format=%(objectname) %(refname)")
    refs = git.ask(root, *listed, "refs/heads", "refs/remotes", "refs/tags", cancel=cancel)
    return Checkout(
        index,
        objects,
        head or git.ask(root, "rev-parse", "HEAD", cancel=cancel).decode(),
        refs,
        _read_own(shallow, objects.parent),
        _read(_users_excludes(root, cancel)) + _read_own(exclude, objects.parent),
        kind,
        attributes.exists() or _may_convert(root, cancel),
    )


def _may_convert(root: Path, cancel: Cancel | None) -> bool:
    """Return whether settings or attributes of the user may convert files."""
    words = ("--get-regexp", r"^core\.(autocrlf|attributesfile)$")
    rows = git.ask(root, "config", *words, ok=(0, 1), cancel=cancel).split(b"\n")
    defaults = (_users_folder() / "attributes", Path("/etc/gitattributes"))
    return any(not row.endswith(b" false") for row in rows if row) or any(
        path.exists() for path in defaults
    )


def _users_folder() -> Path:
    """Return the folder of the user's files for git."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "git"


def _users_excludes(root: Path, cancel: Cancel | None) -> Path:
    """Return the path of the user's ignore rules for all repositories.

    The repository may not choose it: it could name any file of the user.
    """
    for scope in ("--global", "--system"):
        words = (scope, "--includes", "--type=path", "--get", "core.excludesFile")
        if data := git.ask(root, "config", *words, ok=(0, 1, 128), cancel=cancel).strip(b"\n"):
            return root / os.fsdecode(data)
    return _users_folder() / "ignore"


def _read_own(path: Path, folder: Path) -> bytes:
    """Return the content of a file of a repository; b"" if a link leads out of it."""
    real = Path(os.path.realpath(path))
    return _read(real) if real.is_relative_to(os.path.realpath(folder)) else b""


def _read(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        data = path.read_bytes()
        return data if data.endswith(b"\n") or not data else data + b"\n"
    return b""


def pattern(path: str) -> str:
    """Return the rule of an ignore file for one path, relative to the root."""
    name = "".join(f"\\{letter}" if letter in "\\*?[ " else letter for letter in path)
    return "/" + name.replace("\n", "?").replace("\r", "?")


class ShadowGit:
    """Our repository, in `folder/git`, and its index, `folder/index`.

    Methods that run git raise GitFailed with its message.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.index = folder / "git", folder / "index"

    def create(self, user: Checkout | None, excludes: Sequence[str]) -> None:
        """Create the repository, for a project with or without one.

        Args:
            excludes: more ignore rules.
        """
        for name in ("objects/info", "refs", "info"):
            (self.folder / name).mkdir(mode=0o700, parents=True)
        kind = user.format if user else "sha1"
        written = {
            "config": CONFIG.format(
                version=int(kind != "sha1"), format="" if kind == "sha1" else f"objectFormat={kind}"
            ).encode(),
            "HEAD": os.fsencode(user.head if user else "ref: refs/heads/main\n"),
            "packed-refs": user.refs if user else b"",
            "shallow": user.shallow if user else b"",
            "info/attributes": ATTRIBUTES.encode(),
            "info/exclude": (user.excludes if user else b"")
            + b"".join(os.fsencode(f"{rule}\n") for rule in excludes),
            "objects/info/alternates": _alternates(user.objects) if user else b"",
        }
        for name, data in written.items():
            if data:
                (self.folder / name).write_bytes(data)

    def ask(
        self,
        work_tree: Path,
        command: str,
        *words: str,
        stdin: bytes = b"",
        index: Path | None = None,
        ok: Iterable[int] = (0,),
        cancel: Cancel | None = None,
    ) -> bytes:
        """Return the output of a git command for the files in `work_tree`."""
        output = run(
            git.command_line(work_tree, command, *words),
            self.folder,
            stdin=stdin,
            env=self._environment(work_tree, index or self.index),
            max_s=git.MAX_S,
            ok=ok,
            cancel=cancel,
        )
        if output.is_cut:
            raise GitFailed(f"git {command} took longer than {git.MAX_S:g} s")
        if output.failure:
            raise GitFailed(output.failure)
        return output.data

    def output(
        self,
        work_tree: Path,
        command: str,
        *words: str,
        max_bytes: int,
        max_s: float,
        ok: Iterable[int] = (0,),
        cancel: Cancel | None = None,
    ) -> Output:
        """Return the output of a git command within limits; see `process.run`.

        It fails with "over limit" if a file takes more than `MAX_ALLOCATED`.
        """
        return run(
            git.command_line(work_tree, command, *words),
            self.folder,
            env={**self._environment(work_tree, self.index), "GIT_ALLOC_LIMIT": MAX_ALLOCATED},
            max_bytes=max_bytes,
            max_s=max_s,
            ok=ok,
            cancel=cancel,
        )

    def _environment(self, work_tree: Path, index: Path) -> Mapping[str, str]:
        return git.environment() | {
            "GIT_DIR": os.fspath(self.folder),
            "GIT_WORK_TREE": os.fspath(work_tree),
            "GIT_INDEX_FILE": os.fspath(index),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_LITERAL_PATHSPECS": "1",
            # Neither settings nor attributes of the user.
            "HOME": os.fspath(self.folder),
            "XDG_CONFIG_HOME": os.fspath(self.folder),
        }

    def copy_index(self, root: Path, user: Checkout, cancel: Cancel | None = None) -> None:
        """Start with the user's index, so that unchanged files need not be read."""
        with contextlib.suppress(FileNotFoundError):
            # Git compares files with the time of the index to detect quick changes.
            shutil.copy2(user.index, self.index, follow_symlinks=False)
            try:
                if self.index.is_symlink():  # it could lead to any file
                    raise GitFailed("the index is a link")
                self.ask(root, "ls-files", "-z", cancel=cancel)
            except GitFailed:  # an index in parts, or of a newer git
                self.index.unlink()
                data = git.ask(root, "ls-files", "-s", "-z", cancel=cancel)
                self.ask(root, "update-index", "-z", "--index-info", stdin=data, cancel=cancel)

    def get(self, name: str) -> str:
        """Return the tree that a name was given; "" for none."""
        with contextlib.suppress(OSError):
            return (self.folder / REFS / name).read_text().strip()
        return ""

    def put(self, name: str, tree: str) -> None:
        """Give a tree a name, which also protects it from garbage collection."""
        path = self.folder / REFS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        folders.write_file(path, f"{tree}\n".encode())

    def remove(self, name: str) -> None:
        """Take a name away."""
        (self.folder / REFS / name).unlink(missing_ok=True)

    def contents(self, work_tree: Path, keys: Sequence[str], max_bytes: int) -> dict[str, bytes]:
        """Return the contents of files by their object ids, without those of larger files."""
        sizes = self._sizes(work_tree, dict.fromkeys(keys))
        wanted = [key for key, size in sizes.items() if size <= max_bytes]
        data = self._cat(work_tree, "--batch", wanted)
        contents_by_key, position = dict[str, bytes](), 0
        for key in wanted:
            start = data.index(b"\n", position) + 1
            contents_by_key[key] = data[start : start + sizes[key]]
            position = start + sizes[key] + 1
        return contents_by_key

    def _sizes(self, work_tree: Path, keys: Iterable[str]) -> dict[str, int]:
        sizes = dict[str, int]()
        for row in self._cat(work_tree, "--batch-check", keys).decode().splitlines():
            key, *kind = row.split()
            if len(kind) != 2:
                raise GitFailed(f"the object {key} is no longer in the repository")
            sizes[key] = int(kind[1])
        return sizes

    def _cat(self, work_tree: Path, option: str, keys: Iterable[str]) -> bytes:
        wanted = "".join(f"{key}\n" for key in keys).encode()
        return self.ask(work_tree, "cat-file", option, stdin=wanted) if wanted else b""


def _alternates(objects: Path) -> bytes:
    """Return the folder of borrowed objects."""
    path = os.fsencode(objects)
    if path.startswith(b'"') or b"\n" in path:
        raise GitFailed("the path of the repository contains a quote or a line end")
    return path + b"\n"
