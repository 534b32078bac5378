"""Find hard links to files with secrets, whose own names say nothing. Blocks for the disk."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

MAX_ENTRIES: Final = 10_000
"""Maximum of entries of a folder, and of a project, that are looked at."""
HOME: Final = (
    "", ".ssh", ".aws", ".azure", ".docker", ".gnupg", ".gnupg/private-keys-v1.d", ".kube",
    ".config/gcloud", ".config/gh",
)  # fmt: skip
"""Folders of the user's home that usually hold secret files."""
OF_TOOLS: Final = frozenset({".git", ".hg", ".tox", ".venv", "__pycache__", "node_modules"})
"""Folders of a project that are not searched."""

Identity = tuple[int, int]
"""Device and inode of a file."""


@dataclass(frozen=True, slots=True)
class _Folder:
    secrets: frozenset[Identity]
    inner: tuple[str, ...]
    """The folders in it, without those of tools."""
    count: int
    """Number of its entries."""


class HardLinks:
    """The secret files of a project and of the user's home; each folder is listed once.

    A link is found if the secret file is in its folder, in one above it up to the root, in a folder
    of `HOME`, or among the first `MAX_ENTRIES` entries of the project, the upper folders first.

    Args:
        root: real path of the project.
        is_secret: returns whether an absolute path names a secret file.
    """

    def __init__(self, root: Path, is_secret: Callable[[str], bool]) -> None:
        self._root, self._is_secret = str(root), is_secret
        self._listed: dict[str, _Folder] = {}

    def is_secret(self, path: Path | str, status: os.stat_result) -> bool:
        """Return whether a file is a secret one under another name.

        Args:
            path: absolute path.
            status: of the file.
        """
        if status.st_nlink < 2:
            return False
        identity = status.st_dev, status.st_ino
        above = self._above(os.fspath(path))
        return any(identity in each.secrets for each in above) or identity in self._elsewhere

    def _above(self, path: str) -> Iterator[_Folder]:
        """Yield the folder of a file, and those above it up to the root."""
        folder = os.path.dirname(path)
        yield self._folder(folder)
        while folder.startswith(f"{self._root}/"):
            folder = os.path.dirname(folder)
            yield self._folder(folder)

    @cached_property
    def _elsewhere(self) -> frozenset[Identity]:
        """The secret files of the user's home and of the project."""
        home = os.path.expanduser("~")
        secrets_of_homes = [
            self._folder(os.path.normpath(f"{home}/{each}")).secrets for each in HOME
        ]
        waiting, left = deque([self._root]), MAX_ENTRIES
        while waiting and left > 0:
            folder = self._folder(waiting.popleft())
            secrets_of_homes.append(folder.secrets)
            waiting += folder.inner
            left -= folder.count
        return frozenset().union(*secrets_of_homes)

    def _folder(self, path: str) -> _Folder:
        found = self._listed.get(path)
        if found is None:
            found = self._listed[path] = self._list(path)
        return found

    def _list(self, folder: str) -> _Folder:
        names, inner = list[str](), list[str]()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in islice(entries, MAX_ENTRIES):
                if not entry.is_dir(follow_symlinks=False):
                    names.append(entry.path)
                elif entry.name not in OF_TOOLS:
                    inner.append(entry.path)
        secrets = frozenset(self._identities(names))
        return _Folder(secrets, tuple(sorted(inner)), len(names) + len(inner))

    def _identities(self, paths: list[str]) -> Iterator[Identity]:
        for path in filter(self._is_secret, paths):
            with contextlib.suppress(OSError):  # deleted meanwhile, or a broken link
                status = os.stat(path)
                yield status.st_dev, status.st_ino
