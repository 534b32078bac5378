"""The folders of a user's data, and private files that are written whole or not at all.

Reads the environment and the disk, nothing of a project. Any thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from lcursor.errors import LcursorError

MAX_SOCKET_BYTES = 100
"""Length of a socket's path: the kernel allows 108, with the final zero; a suffix must fit, too."""


def data_home() -> Path:
    """Return `$LCURSOR_DATA`, else `$XDG_DATA_HOME/lcursor`, else `~/.local/share/lcursor`."""
    if data := os.environ.get("LCURSOR_DATA"):
        return Path(data).expanduser().absolute()
    home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return (Path(home).expanduser() / "lcursor").absolute()


def cache_home() -> Path:
    """Return `$XDG_CACHE_HOME/lcursor`, else `~/.cache/lcursor`."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "lcursor"


def vectors_home() -> Path:
    """Return the folder of the vectors of all projects; it need not exist."""
    return cache_home() / "vectors"


def make_private(place: Path) -> Path:
    """Create a folder of mode 0700, or check that an existing one is the user's alone.

    Raises:
        LcursorError: it cannot be created, or belongs to somebody else.
    """
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(place)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            if found.st_mode & 0o077:
                os.chmod(place, 0o700)
            return place
    except OSError as error:
        raise LcursorError(
            f"the folder {place} cannot be created: {error.strerror or error}",
            "Check who may write there",
        ) from error
    raise LcursorError(
        f"{place} is not a folder of yours, so files in it would not be safe",
        "Remove it, or set XDG_RUNTIME_DIR to a folder of your own",
    )


def write_file(path: Path, *parts: bytes, fsync: bool = False) -> None:
    """Write a file of mode 0600, whole or not at all.

    Args:
        fsync: make it survive a power failure.

    Raises:
        OSError: it cannot be written; the old content stays.
    """
    with open_replacement(path, fsync=fsync) as file:
        file.writelines(parts)


@contextlib.contextmanager
def open_replacement(path: Path, *, fsync: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file, which replaces `path` if the block ends without an exception.

    Raises:
        OSError: see `write_file`.
    """
    fd, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
            if fsync:
                file.flush()
                os.fsync(fd)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def fsync_folder(path: Path | str) -> None:
    """Make the names in a folder survive a power failure, if the file system can."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def socket_path(belongs_to: Path) -> Path:
    """Return the path of the socket for a folder.

    It is in `$XDG_RUNTIME_DIR/lcursor` if that exists, else in a private folder under the temporary
    directory or, where its path would be too long, under `/tmp`.

    Raises:
        LcursorError: there is no folder that is safe from other users.
    """
    digest = hashlib.sha256(os.fsencode(belongs_to)).hexdigest()[:16]
    temporary = [Path(tempfile.gettempdir()), Path("/tmp")]  # noqa: S108 - make_private checks it
    places = [place / f"lcursor-{os.getuid()}" for place in temporary]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        places.insert(0, Path(runtime) / "lcursor")
    paths = [place / f"{digest}.sock" for place in places]
    path = next((one for one in paths if len(os.fsencode(one)) <= MAX_SOCKET_BYTES), paths[-1])
    make_private(path.parent)
    return path
