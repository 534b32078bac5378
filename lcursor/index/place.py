"""Where the index of a project is: its root, its folder of data, its socket.

Owns the names. Makes only the folders that it returns as safe to use; reads nothing of the
project but whether markers exist. Any thread.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from pathlib import Path

from lcursor.errors import IndexFailed

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
MOST_SOCKET_BYTES = 100
"""The kernel takes 108, in which a terminating zero and some room for a suffix must fit."""


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


def data_home() -> Path:
    """Return `$LCURSOR_DATA`, else `$XDG_DATA_HOME/lcursor`, else `~/.local/share/lcursor`."""
    if data := os.environ.get("LCURSOR_DATA"):
        return Path(data).expanduser().absolute()
    home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return (Path(home).expanduser() / "lcursor").absolute()


def folder(root: Path) -> Path:
    """Return the folder of a project's index; it need not exist.

    Its name begins with the project's, for people, and ends with a digest of the whole path.
    """
    word = re.sub(r"[^\w.-]+", "-", root.name, flags=re.ASCII)[:32].strip("-.") or "root"
    return data_home() / "index" / f"{word}-{_digest(root)}"


def begun_path(root: Path) -> Path:
    """Return the file that says that somebody wanted an index of this project."""
    return folder(root) / BEGUN


def is_begun(root: Path) -> bool:
    """Return whether somebody has told a project to begin; also where no worker runs."""
    return begun_path(root).is_file()


def socket_path(root: Path) -> Path:
    """Return the address at which a worker of this project would listen.

    In `$XDG_RUNTIME_DIR/lcursor` where that exists, else in a folder of the user's own under the
    temporary directory. Who asks later with another environment finds the address in the lock
    file, where the worker writes it.

    Raises:
        IndexFailed: there is no folder that nobody else can write to.
    """
    name = f"{_digest(folder(root))}.sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        place = Path(runtime) / "lcursor"
        if len(os.fsencode(place / name)) <= MOST_SOCKET_BYTES:
            return _own(place) / name
    places = [Path(tempfile.gettempdir()), Path("/tmp")]  # noqa: S108 - checked by _own
    for base in places:
        place = base / f"lcursor-{os.getuid()}"
        if len(os.fsencode(place / name)) <= MOST_SOCKET_BYTES:
            return _own(place) / name
    raise IndexFailed(
        f"every place for a socket has too long a path ({places[0]})",
        "Set XDG_RUNTIME_DIR to a short path, for example /run/user/$(id -u)",
    )


def lock_path(root: Path) -> Path:
    """Return the file that the one worker of a project holds; in it, who that is."""
    return folder(root) / "worker.lock"


def log_path(root: Path) -> Path:
    """Return where a worker writes what nobody asked about."""
    return folder(root) / "worker.log"


def rates_path() -> Path:
    """Return the file that keeps how fast this machine reads and embeds."""
    return data_home() / "index" / "rates.json"


def own_folder(root: Path) -> Path:
    """Make the folder of a project's index, readable by the user alone.

    Raises:
        IndexFailed: it cannot be made.
    """
    place = folder(root)
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise IndexFailed(
            f"the folder of the index cannot be made: {error.strerror or error} ({place})",
            "See who may write there, or set XDG_DATA_HOME to another place",
        ) from error
    return place


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def _own(place: Path) -> Path:
    """Make a folder of mode 0700; refuse one that another user made, or may write to."""
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(place)
    except OSError as error:
        raise IndexFailed(
            f"the folder of the socket cannot be made: {error.strerror or error} ({place})",
            "Set XDG_RUNTIME_DIR to a folder of your own",
        ) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise IndexFailed(
            f"{place} is not a folder of yours, so a socket there would not be safe",
            "Set XDG_RUNTIME_DIR to a folder of your own",
        )
    if found.st_mode & 0o077:
        os.chmod(place, 0o700)
    return place
