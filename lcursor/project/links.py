"""Find the files of a project behind a linked folder, which are not the project's. Any thread.

Git lists them as long as its index has them, although the folder on disk may lead anywhere.
"""

from __future__ import annotations

import os
from pathlib import Path


class Links:
    """The links among the folders of a project, each of which is looked at once."""

    def __init__(self, root: Path) -> None:
        self._root = os.fspath(root)
        self._known = {"": ""}

    def above(self, path: str) -> str:
        """Return the outermost folder of a relative path that is a link; "" if none is."""
        folder, unknown = path.rstrip("/").rpartition("/")[0], list[str]()
        while folder not in self._known:
            unknown.append(folder)
            folder = folder.rpartition("/")[0]
        link = self._known[folder]
        for each in reversed(unknown):
            if not link and os.path.islink(f"{self._root}/{each}"):
                link = each
            self._known[each] = link
        return link
