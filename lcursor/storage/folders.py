"""The user's data folders, and atomic writes of private files. Any thread."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from lcursor.errors import LcursorError

MAX_SOCKET_BYTES = 100
"""Maximum length of a socket's path: Linux allows 108 bytes, macOS 104, with a zero at the end."""


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


def create(folder: Path) -> None:
    """Create a folder of mode 0700, unless it exists, so that it survives a power failure.

    Raises:
        OSError: it cannot be created.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in missing:
        fsync_folder(each.parent)


def make_private(folder: Path) -> Path:
    """Create a folder of mode 0700, or check that only the user can access an existing one.

    Raises:
        LcursorError: it cannot be created, or belongs to another user.
    """
    try:
        create(folder)
        found = os.lstat(folder)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            if found.st_mode & 0o077:
                os.chmod(folder, 0o700)
            return folder
    except OSError as error:
        raise LcursorError(
            f"the folder {folder} cannot be created: {error.strerror or error}",
            "Check its permissions",
        ) from error
    raise LcursorError(
        f"{folder} is not owned by you, so files in it would not be safe",
        "Remove it, or set XDG_RUNTIME_DIR to a folder of your own",
    )


def write_file(path: Path, *parts: bytes, fsync: bool = False) -> None:
    """Write a file of mode 0600 atomically.

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


def remove(path: Path) -> None:
    """Delete a file or a folder, if there is one, also with folders that cannot be listed."""
    if path.is_dir() and not path.is_symlink():
        for folder, names, _ in os.walk(path):
            for name in names:
                with contextlib.suppress(OSError):
                    if not os.path.islink(inner := os.path.join(folder, name)):
                        os.chmod(inner, stat.S_IRWXU)
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def fsync_file(path: Path) -> None:
    """Make the content of a file survive a power failure.

    Raises:
        OSError: it cannot be opened or flushed.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def fsync_folder(path: Path | str) -> None:
    """Make file names in a folder survive a power failure, if the file system can."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def socket_path(belongs_to: Path) -> Path:
    """Return the path of the socket for a folder.

    It is in the first of these folders that is safe from other users, and short enough for a
    socket: `$XDG_RUNTIME_DIR/lcursor` if that exists, a private folder in the temporary directory,
    one in `/tmp`, and one of the user's data.

    Raises:
        LcursorError: there is none.
    """
    digest = hashlib.sha256(os.fsencode(belongs_to)).hexdigest()[:16]
    temporary = [Path(tempfile.gettempdir()), Path("/tmp")]  # noqa: S108 - make_private checks it
    candidates = [*(each / f"lcursor-{os.getuid()}" for each in temporary), data_home() / "run"]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        candidates.insert(0, Path(runtime) / "lcursor")
    failures = list[LcursorError]()
    for path in [each / f"{digest}.sock" for each in dict.fromkeys(candidates)]:
        if len(os.fsencode(path)) > MAX_SOCKET_BYTES:
            continue
        try:
            make_private(path.parent)
            return path
        except LcursorError as error:
            failures.append(error)
    raise failures[0]
