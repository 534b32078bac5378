"""Where the data of a user is; folders and files that are the user's alone.

Vocabulary: imports only errors; reads the environment and the disk, nothing of a project. Any
thread.
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

MOST_SOCKET_BYTES = 100
"""The kernel takes 108, in which a terminating zero and some room for a suffix must fit."""


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


def own(place: Path) -> Path:
    """Make a folder of mode 0700; refuse one that another user made, or may write to.

    Raises:
        LcursorError: it cannot be made, or is not ours.
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
            f"the folder {place} cannot be made: {error.strerror or error}",
            "See who may write there",
        ) from error
    raise LcursorError(
        f"{place} is not a folder of yours, so what is put there would not be safe",
        "Remove it, or set XDG_RUNTIME_DIR to a folder of your own",
    )


def write(path: Path, *parts: bytes, is_firm: bool = False) -> None:
    """Write a file that the user alone can read, whole or not at all.

    Args:
        path: of the file, in a folder that is there.
        parts: what it shall have, one after the other.
        is_firm: have it survive also when the power fails.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    with replacing(path, is_firm=is_firm) as file:
        file.writelines(parts)


@contextlib.contextmanager
def replacing(path: Path, *, is_firm: bool = False) -> Iterator[BinaryIO]:
    """Write a file piece by piece; it takes its place when the block ends without an exception.

    Raises:
        OSError: see `write`.
    """
    fd, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
            if is_firm:
                file.flush()
                os.fsync(fd)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def socket_path(belongs_to: Path) -> Path | None:
    """Return where a socket may be for what is in a folder; None where every path is too long.

    In `$XDG_RUNTIME_DIR/lcursor` where that exists, else in a folder of the user's own under the
    temporary directory.

    Raises:
        LcursorError: there is no folder that nobody else can write to.
    """
    digest = hashlib.sha256(os.fsencode(belongs_to)).hexdigest()[:16]
    places = [Path(tempfile.gettempdir()), Path("/tmp")]  # noqa: S108 - checked by own
    places = [place / f"lcursor-{os.getuid()}" for place in places]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        places.insert(0, Path(runtime) / "lcursor")
    for place in places:
        path = place / f"{digest}.sock"
        if len(os.fsencode(path)) <= MOST_SOCKET_BYTES:
            own(place)
            return path
    return None
