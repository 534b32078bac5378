"""Find the worker process of a project, or start one.

A worker runs in its own session, outlives the process that started it, and exits when idle. It
inherits a locked file, so that there is one worker per project. Standard library only; any thread.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lcursor import system
from lcursor.errors import IndexAway
from lcursor.process.supervise import Child, Supervised
from lcursor.project.root import data_folder
from lcursor.storage import folders

PACKAGES = str(Path(__file__).resolve().parents[2])
COMMAND = (
    sys.executable,
    "-I",
    "-c",
    f"import sys; sys.path.insert(0, {PACKAGES!r}); "
    "from lcursor.index.worker import main; sys.exit(main())",
)
"""Command that starts a worker, isolated from the user's modules, without `main`'s arguments."""
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "MALLOC_ARENA_MAX": "2",
}
"""Environment that keeps a process small and on one core."""


def worker_process(root: Path) -> Supervised:
    """Return the worker process of a project, running or not."""
    folder = data_folder(root)
    return Supervised(folder / "worker.lock", folder / "worker.json", folder / "worker.log")


def start(root: Path, embedder: str = "") -> Child | None:
    """Start a worker; return None while another one runs.

    Raises:
        IndexAway: the process cannot be started.
        LcursorError: the folder of the index cannot be used.
    """
    make_folder(root)
    process = worker_process(root)
    try:
        lock = process.try_lock()
        if lock is None:
            return None
        command = [*COMMAND, str(root), "--lock", str(lock), "--embedder", embedder]
        environment = os.environ | ENVIRONMENT
        try:
            return process.spawn(command, lock, environment, header=f"worker of {root}")
        finally:
            os.close(lock)
    except OSError as error:
        raise IndexAway(
            f"the index worker cannot be started: {error.strerror or error}",
            f"Check the permissions of {data_folder(root)}, and run :checkhealth lcursor",
        ) from error


def other_host(root: Path) -> str:
    """Return the machine of the running worker if it is another one that shares the home; or ""."""
    host = str(worker_process(root).read_state().get("host", ""))
    return "" if host == system.host_name() else host


def addresses(root: Path) -> list[Path]:
    """Return the sockets to try: the last worker's, then the default."""
    last = worker_process(root).read_state().get("socket")
    found = [str(last)] if last else []
    return [Path(each) for each in dict.fromkeys([*found, str(socket_path(root))])]


def socket_path(root: Path) -> Path:
    """Return the address of a new worker of this project.

    A client with another environment finds the address in the state of the worker process.

    Raises:
        LcursorError: no folder is safe from other users.
    """
    return folders.socket_path(data_folder(root))


def make_folder(root: Path) -> Path:
    """Create the folder of a project's index, readable by the user alone, and return it.

    Raises:
        LcursorError: it cannot be created.
    """
    return folders.make_private(data_folder(root))
