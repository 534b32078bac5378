"""Make the repository that commands of an agent see: the project's last commits, without secrets.

It has the newest commits of HEAD and of the default branch, with their own ids, and only objects
that these commits and the index need. Git shows `PLACEHOLDER` instead of a file with secrets, or
of one that is too large to be searched for them. Stashes, other branches and objects that no commit
has are missing. Blocks; one thread.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lcursor.project.git import GitFailed
from lcursor.project.secrets import has_private_key
from lcursor.storage import folders
from lcursor.workspace.shadow_git import ShadowGit

NAME: Final = "history"
MAX_COMMITS: Final = 50
"""How many commits are complete; their parents are there too, and end the history."""
MAX_OBJECTS: Final = 100_000
"""With more, only the last commit is complete, or nothing is shown."""
MAX_BYTES: Final = 16 << 20
"""Larger files are left out; the others are searched for private keys."""
BATCH_BYTES: Final = 32 << 20
PLACEHOLDER: Final = b"This file is left out: it has secrets, or is too large.\n"
DEFAULT_BRANCHES: Final = ("main", "master")
COPIED: Final = ("config", "HEAD", "info/exclude", "index")

SecretReason = Callable[[str], str]


@dataclass(slots=True)
class _Objects:
    """The objects of some commits and of the index."""

    paths: dict[str, set[str]] = field(default_factory=dict)
    """The paths of each file, by its id."""
    sizes: dict[str, int] = field(default_factory=dict)
    """The bytes of each file, by its id."""
    others: set[str] = field(default_factory=set)
    """Ids of commits, folders and tags."""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.paths) + len(self.others)


class HistoryMaker:
    """Makes the repository `folder/history`, for a copy of a project.

    Args:
        git: our repository for the files of the run, which borrows the user's objects.
        secret_reason: returns why a path is secret, "" if it is not.
    """

    def __init__(self, folder: Path, git: ShadowGit, secret_reason: SecretReason) -> None:
        self._folder, self._git, self._secret_reason = folder, git, secret_reason

    def make(self) -> None:
        """Make it.

        Raises:
            GitFailed, OSError: it cannot be made.
        """
        partial = self._folder / f"{NAME}.part"
        folders.remove(partial)
        (partial / "objects/pack").mkdir(parents=True, mode=0o700)
        for name in ("refs", "objects/info", "info"):
            (partial / name).mkdir()
        for name in COPIED:
            source = self._git.folder / name
            if source.exists():
                shutil.copy2(source, partial / name)
        refs = self._refs()
        commits, ends = self._commits(refs, MAX_COMMITS)
        objects = self._objects(commits, ends)
        if objects.count > MAX_OBJECTS and commits:
            commits, ends = self._commits(refs, 1)
            objects = self._objects(commits, ends)
        if objects.count > MAX_OBJECTS:
            raise GitFailed(f"it has more than {MAX_OBJECTS:,} files and folders")
        known = {*commits, *ends}
        refs = {name: (key, at) for name, (key, at) in refs.items() if at in known}
        objects.others |= {key for key, _ in refs.values()}
        secret = self._secret(objects)
        placeholder = self._ask("hash-object", "-w", "--stdin", stdin=PLACEHOLDER).decode().strip()
        keys = [*objects.others, *objects.paths.keys() - secret]
        self._pack(partial, [*keys, placeholder] if secret else keys)
        rows = [f"{key} {name}\n" for name, (key, _) in refs.items()]
        rows += [f"{placeholder} refs/replace/{key}\n" for key in secret]
        (partial / "packed-refs").write_text("".join(sorted(rows, key=lambda row: row.split()[1])))
        (partial / "shallow").write_text("".join(f"{key}\n" for key in ends))
        os.rename(partial, self._folder / NAME)

    def _ask(
        self, command: str, *words: str, stdin: bytes = b"", ok: Iterable[int] = (0,)
    ) -> bytes:
        return self._git.ask(self._folder, command, *words, stdin=stdin, ok=ok)

    def _refs(self) -> dict[str, tuple[str, str]]:
        """Return the branches and tags, each with its object and its commit."""
        rows = os.fsdecode(self._ask("for-each-ref", "--format=%(refname) %(objectname)"))
        keys = dict(row.split() for row in rows.splitlines())
        stdin = "".join(f"{key}^{{commit}}\n" for key in keys.values()).encode()
        found = (row.split() for row in self._check(stdin))
        return {
            name: (key, row[0])
            for (name, key), row in zip(keys.items(), found, strict=True)
            if row[1] == "commit"
        }

    def _commits(
        self, refs: Mapping[str, tuple[str, str]], count: int
    ) -> tuple[list[str], list[str]]:
        """Return the newest commits, and their parents that are not among them."""
        names = [f"refs/heads/{name}" for name in DEFAULT_BRANCHES]
        names += [f"refs/remotes/origin/{name}" for name in ("HEAD", *DEFAULT_BRANCHES)]
        tips = {refs[name][1] for name in names if name in refs}
        head = self._ask("rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1, 128))
        tips |= {head.decode().strip()} - {""}
        if not tips:
            return [], []
        words = ("--parents", f"--max-count={count}", "--stdin")
        stdin = "".join(f"{tip}\n" for tip in sorted(tips)).encode()
        rows = [
            row.split() for row in self._ask("rev-list", *words, stdin=stdin).decode().split("\n")
        ]
        parents = {row[0]: row[1:] for row in rows if row}
        ends = dict.fromkeys(key for row in parents.values() for key in row if key not in parents)
        return list(parents), [*ends, *(key for key in self._shallow() if key in parents)]

    def _shallow(self) -> list[str]:
        """Return the commits that end the history of the user's repository."""
        path = self._git.folder / "shallow"
        return path.read_text().split() if path.exists() else []

    def _objects(self, commits: Sequence[str], ends: Sequence[str]) -> _Objects:
        """Return what commits and the index need, as far as it exists."""
        objects = _Objects()
        if commits:
            stdin = "".join(f"{key}\n" for key in (*commits, *ends)).encode()
            words = ("--objects", "--filter=blob:none", "--no-walk=unsorted", "--missing=allow-any")
            listed = self._ask("rev-list", *words, "--stdin", stdin=stdin).split(b"\n")
            objects.others = {row.split()[0].decode() for row in listed if row}
        pairs = [*self._changed(commits)]
        for end in ends:
            pairs += _listed(self._ask("ls-tree", "-r", "-z", end), at=2)
        index = self._git.folder / "index"
        if index.exists():
            data = self._git.ask(self._folder, "ls-files", "-s", "-z", index=index)
            pairs += _listed(data, at=1)
        paths = dict[str, set[str]]()
        for key, path in pairs:
            paths.setdefault(key, set()).add(path)
        stdin = "".join(f"{key}\n" for key in paths).encode()
        for (key, names), row in zip(paths.items(), self._check(stdin), strict=True):
            if " blob " in row:  # otherwise it is missing, or the commit of a submodule
                objects.paths[key], objects.sizes[key] = names, int(row.split()[2])
        return objects

    def _changed(self, commits: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the ids and paths of the files that differ between commits and their parents."""
        stdin = "".join(f"{key}\n" for key in commits).encode()
        words = ("--stdin", "--root", "-r", "-m", "-z", "--no-renames", "--raw", "--no-commit-id")
        fields = iter(os.fsdecode(self._ask("diff-tree", *words, stdin=stdin)).split("\0"))
        for head in fields:
            if head.startswith(":"):
                path = next(fields)
                yield from ((key, path) for key in head.split()[2:4])

    def _check(self, stdin: bytes) -> list[str]:
        """Return id, type and size of objects; `NAME missing` for those that do not exist."""
        words = ("--batch-check=%(objectname) %(objecttype) %(objectsize)", "--buffer")
        return self._ask("cat-file", *words, stdin=stdin).decode().splitlines()

    def _secret(self, objects: _Objects) -> set[str]:
        """Return the ids of files that have secrets, by any of their paths or by content."""
        reasons = dict[str, str]()

        def is_secret(path: str) -> bool:
            if path not in reasons:
                reasons[path] = self._secret_reason(path)
            return bool(reasons[path])

        # The files of the present index may be read: they were searched when they were copied.
        present = {row.split()[1] for row in self._ask("ls-files", "-s").decode().splitlines()}
        secret = {
            key
            for key, paths in objects.paths.items()
            if key not in present and (objects.sizes[key] > MAX_BYTES or any(map(is_secret, paths)))
        }
        batch, left = list[str](), BATCH_BYTES
        for key in objects.paths:
            if key in secret or key in present:
                continue
            if left < objects.sizes[key]:
                secret |= self._with_keys(batch)
                batch, left = [], BATCH_BYTES
            batch.append(key)
            left -= objects.sizes[key]
        return secret | self._with_keys(batch)

    def _with_keys(self, keys: Sequence[str]) -> set[str]:
        """Return the ids of files that contain a private key."""
        contents = self._git.contents(self._folder, keys, MAX_BYTES)
        return {key for key, data in contents.items() if has_private_key(data)}

    def _pack(self, made: Path, keys: Sequence[str]) -> None:
        """Write the objects to a pack."""
        stdin = "".join(f"{key}\n" for key in keys).encode()
        name = os.fspath(made / "objects/pack/pack")
        self._ask("pack-objects", "-q", "--window=0", "--delta-base-offset", name, stdin=stdin)


def _listed(data: bytes, *, at: int) -> Iterator[tuple[str, str]]:
    """Yield the ids and paths of an output with `... ID ...<tab>PATH` and NUL.

    Args:
        at: number of the word with the id.
    """
    for row in os.fsdecode(data).split("\0")[:-1]:
        head, _, path = row.partition("\t")
        yield head.split()[at], path
