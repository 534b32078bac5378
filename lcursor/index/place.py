"""Where the index of a project is: its root, its folder of data, its socket.

Owns the names. Makes only the folders that it returns as safe to use; reads nothing of the
project but whether markers exist. Any thread.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from lcursor import folders
from lcursor.errors import IndexFailed, LcursorError

MARKERS = (
    "pyproject.toml",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "CMakeLists.txt",
    "Makefile",
    "mix.exs",
    "Gemfile",
    "composer.json",
    ".luarc.json",
    ".lcursorignore",
)
"""Files that begin a project where no version control does; the nearest above a file counts."""
VERSION_CONTROL = (".git", ".hg", ".svn", ".jj")
BEGUN = "begun.json"
"""In the folder of an index: that somebody wanted it, and whether they were asked twice."""


def root_of(path: Path) -> Path:
    """Return the project that a file or folder belongs to, as an absolute path.

    The nearest folder above with version control, else the nearest with a marker, else the folder
    itself. The home directory and what is above it are never the project of what is below them,
    also where they are under version control. Links are resolved, so that a project has one index
    whatever way leads to it.
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


def folder(root: Path) -> Path:
    """Return the folder of a project's index; it need not exist.

    Its name begins with the project's, for people, and ends with a digest of the whole path.
    """
    word = re.sub(r"[^\w.-]+", "-", root.name, flags=re.ASCII)[:32].strip("-.") or "root"
    return folders.data_home() / "index" / f"{word}-{_digest(root)}"


def begun_path(root: Path) -> Path:
    """Return the file that says that somebody wanted an index of this project."""
    return folder(root) / BEGUN


def is_begun(root: Path) -> bool:
    """Return whether somebody has told a project to begin; also where no worker runs."""
    return begun_path(root).is_file()


def socket_path(root: Path) -> Path:
    """Return the address at which a worker of this project would listen.

    Who asks later with another environment finds the address in the lock file, where the worker
    writes it.

    Raises:
        IndexFailed: there is no folder that nobody else can write to.
    """
    try:
        path = folders.socket_path(folder(root))
    except LcursorError as error:
        raise IndexFailed(error.message, error.hint) from error
    if path is None:
        raise IndexFailed(
            "every place for a socket has too long a path",
            "Set XDG_RUNTIME_DIR to a short path, for example /run/user/$(id -u)",
        )
    return path


def lock_path(root: Path) -> Path:
    """Return the file that the one worker of a project holds; in it, who that is."""
    return folder(root) / "worker.lock"


def log_path(root: Path) -> Path:
    """Return where a worker writes what nobody asked about."""
    return folder(root) / "worker.log"


def rates_path() -> Path:
    """Return the file that keeps how fast this machine reads and embeds."""
    return folders.data_home() / "index" / "rates.json"


def own_folder(root: Path) -> Path:
    """Make the folder of a project's index, readable by the user alone.

    Raises:
        IndexFailed: it cannot be made.
    """
    try:
        return folders.own(folder(root))
    except LcursorError as error:
        raise IndexFailed(
            error.message, "See who may write there, or set XDG_DATA_HOME to another place"
        ) from error


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
