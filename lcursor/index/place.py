"""Where the files of a project's index are: its socket, its lock, its log.

Makes only the folders that it returns as safe to use. Any thread.
"""

from __future__ import annotations

from pathlib import Path

from lcursor.errors import IndexFailed, LcursorError
from lcursor.project.root import data_folder
from lcursor.storage import folders


def socket_path(root: Path) -> Path:
    """Return the address at which a worker of this project would listen.

    Who asks later with another environment finds the address in the lock file, where the worker
    writes it.

    Raises:
        IndexFailed: there is no folder that nobody else can write to.
    """
    try:
        path = folders.socket_path(data_folder(root))
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
    return data_folder(root) / "worker.lock"


def log_path(root: Path) -> Path:
    """Return where a worker writes what nobody asked about."""
    return data_folder(root) / "worker.log"


def own_folder(root: Path) -> Path:
    """Make the folder of a project's index, readable by the user alone.

    Raises:
        IndexFailed: it cannot be made.
    """
    try:
        return folders.make_private(data_folder(root))
    except LcursorError as error:
        raise IndexFailed(
            error.message, "See who may write there, or set XDG_DATA_HOME to another place"
        ) from error
