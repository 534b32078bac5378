"""Where a project begins, and where its data is stored.

Reads nothing of the project but whether marker files exist. Any thread.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from lcursor.storage import folders

MARKERS = (
    "pyproject.toml", "package.json", "Cargo.toml", "go.mod", "pom.xml", "build.gradle",
    "CMakeLists.txt", "Makefile", "mix.exs", "Gemfile", "composer.json", ".luarc.json",
    ".lcursorignore",
)  # fmt: skip
"""Files that mark a project's root where there is no version control."""
VERSION_CONTROL = (".git", ".hg", ".svn", ".jj")
BEGUN = "begun.json"
"""In a project's data folder: the user asked for an index; also keeps the user's secret globs."""


def root_of(path: Path) -> Path:
    """Return the project that a file or folder belongs to, as an absolute path.

    This is the nearest folder above with version control, else the nearest one with a marker, else
    the folder itself. The home directory and the folders above it are never the project of a file
    below them, even under version control. Links are resolved, so that a project has one index
    whichever path leads to it.
    """
    place = Path(os.path.realpath(path))
    start = place if place.is_dir() else place.parent
    home = Path(os.path.realpath(Path.home()))
    above = [start, *(each for each in start.parents if each not in (home, *home.parents))]
    for names in (VERSION_CONTROL, MARKERS):
        for each in above:
            if any(os.path.lexists(each / name) for name in names):
                return each
    return start


def is_home_like(root: Path) -> bool:
    """Return whether a directory is the home directory or above it: ask before reading it."""
    here = Path(os.path.realpath(root))
    home = Path(os.path.realpath(Path.home()))
    return here == home or here in home.parents


def relative_name(root: Path, path: Path | str) -> str:
    """Return a path relative to the root, with its folder resolved but not the file itself.

    A path outside of the project begins with `../`.
    """
    folder, name = os.path.split(path)
    whole = os.path.join(os.path.realpath(folder), name)
    return os.path.relpath(whole, root).replace(os.sep, "/")


def data_folder(root: Path) -> Path:
    """Return the folder of a project's stored data; it need not exist.

    Its name begins with the project's, for people, and ends with a digest of the whole path.
    """
    word = re.sub(r"[^\w.-]+", "-", root.name, flags=re.ASCII)[:32].strip("-.") or "root"
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return folders.data_home() / "index" / f"{word}-{digest}"


def begun_path(root: Path) -> Path:
    """Return the file that says that the user asked for an index of this project."""
    return data_folder(root) / BEGUN


def is_begun(root: Path) -> bool:
    """Return whether the user asked for an index of this project."""
    return begun_path(root).is_file()
