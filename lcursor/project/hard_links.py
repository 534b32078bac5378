"""Find hard links to files with secrets, whose own names say nothing. Blocks for the disk."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

MAX_ENTRIES: Final = 10_000
"""Maximum of entries of a folder that are looked at."""

Identity = tuple[int, int]
"""Device and inode of a file."""


class HardLinks:
    """The secret files of a project's folders, each of which is listed once.

    A link is found if the secret file is in its folder, or in one above it up to the root.

    Args:
        root: real path of the project.
        is_secret: returns whether an absolute path names a secret file.
    """

    def __init__(self, root: Path, is_secret: Callable[[str], bool]) -> None:
        self._root, self._is_secret = str(root), is_secret
        self._secrets: dict[str, frozenset[Identity]] = {}

    def is_secret(self, path: Path | str, status: os.stat_result) -> bool:
        """Return whether a file is a secret one under another name.

        Args:
            path: absolute path.
            status: of the file.
        """
        if status.st_nlink < 2:
            return False
        identity = status.st_dev, status.st_ino
        return any(identity in self._in_folder(each) for each in self._folders(os.fspath(path)))

    def _folders(self, path: str) -> Iterator[str]:
        """Yield the folder of a file, and those above it up to the root."""
        folder = os.path.dirname(path)
        yield folder
        while folder.startswith(f"{self._root}/"):
            folder = os.path.dirname(folder)
            yield folder

    def _in_folder(self, folder: str) -> frozenset[Identity]:
        found = self._secrets.get(folder)
        if found is None:
            found = self._secrets[folder] = frozenset(self._identities(folder))
        return found

    def _identities(self, folder: str) -> Iterator[Identity]:
        try:
            with os.scandir(folder) as entries:
                names = [each.path for each in islice(entries, MAX_ENTRIES)]
        except OSError:
            return  # what cannot be listed has no name to compare
        for name in filter(self._is_secret, names):
            with contextlib.suppress(OSError):  # deleted meanwhile, or a broken link
                status = os.stat(name)
                yield status.st_dev, status.st_ino
