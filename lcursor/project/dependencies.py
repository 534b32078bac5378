"""Find the packages installed in a project, which git ignores and commands need."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path
from typing import Final

FOLDERS: Final = (
    ".bundle", ".eggs", ".nox", ".pixi", ".tox", ".venv", "Pods", "__pypackages__",
    "bower_components", "deps", "elm-stuff", "jspm_packages", "node_modules", "vendor", "venv",
)  # fmt: skip
"""Folders with installed packages, which commands never change."""
PACKAGE_DATA: Final = ".egg-info"
"""Ending of folders that describe a Python package installed from the project."""


def installed(root: Path, listed: Collection[str]) -> list[str]:
    """Return the folders of installed packages, relative to the root.

    They may be links, which whoever shows them must not follow.

    Args:
        listed: folders with files of the project; they are searched, and are no packages.
    """
    known_names, folders = set(listed), list[str]()
    for folder in ("", *listed):
        here = root / folder
        names = [name for name in FOLDERS if (here / name).is_dir()]
        if not folder or folder == "src":
            with contextlib.suppress(OSError):
                names += [each.name for each in here.glob(f"*{PACKAGE_DATA}") if each.is_dir()]
        paths = (f"{folder}/{name}" if folder else name for name in names)
        folders += [path for path in paths if path not in known_names]
    return folders
