"""Find the root of a project, and the folder of its stored data.

Of the project it only checks whether marker files exist. Any thread.
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
"""Files that mark a project's root without version control."""
VERSION_CONTROL = (".git", ".hg", ".svn", ".jj")
BEGUN = "begun.json"
"""File in a project's data folder that exists once the user started an index, with secret globs."""


def root_of(path: Path) -> Path:
    """Return the root of the project that contains a file or folder, as an absolute path.

    This is the nearest folder above with version control, else the nearest one with a marker, else
    the nearest one whose index the user started, else the folder itself. The home directory and the
    folders above it never count, even under version control. Links are resolved, so that a project
    has one index for all paths to it.
    """
    real = Path(os.path.realpath(path))
    start = real if real.is_dir() else real.parent
    home = Path(os.path.realpath(Path.home()))
    above = [start, *(each for each in start.parents if each not in (home, *home.parents))]
    for names in (VERSION_CONTROL, MARKERS):
        for each in above:
            if any(os.path.lexists(each / name) for name in names):
                return each
    return next(filter(is_begun, above), start)


def is_home_like(root: Path) -> bool:
    """Return whether a directory is the home directory or above it, so reading it needs consent."""
    here = Path(os.path.realpath(root))
    home = Path(os.path.realpath(Path.home()))
    return here == home or here in home.parents


def relative_name(root: Path, path: Path | str) -> str:
    """Return a path relative to the root; links are resolved in its folder, not in the file itself.

    A path outside of the project starts with `../`.
    """
    folder, name = os.path.split(path)
    whole = os.path.join(os.path.realpath(folder), name)
    return os.path.relpath(whole, root).replace(os.sep, "/")


def data_folder(root: Path) -> Path:
    """Return the folder of a project's stored data, which need not exist.

    Its name has the project's name and a digest of its path.
    """
    word = re.sub(r"[^\w.-]+", "-", root.name, flags=re.ASCII)[:32].strip("-.") or "root"
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return folders.data_home() / "index" / f"{word}-{digest}"


def begun_path(root: Path) -> Path:
    """Return the file that exists once the user started an index of this project."""
    return data_folder(root) / BEGUN


def is_begun(root: Path) -> bool:
    """Return whether the user started an index of this project."""
    return begun_path(root).is_file()
