"""A project with a worker on it, for the tests that need the process."""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from lcursor.index import launch
from lcursor.index.client import Client
from tests.waiting import wait_for

FILES = 40
"""Too few for processes that parse: those take a second to start."""


def make(root: Path) -> None:
    """Write a project of so many files."""
    root.mkdir()
    for number in range(FILES):
        text = f"def f{number}():\n    return 'needle{number}'\n\n\n"
        (root / f"f{number}.py").write_text(text + "x = [1, 2, 3]\n" * 40)


def end(root: Path) -> None:
    """Kill the worker of a project, if one is left."""
    process = launch.worker_process(root)
    if process.is_running():
        with suppress(ProcessLookupError):
            os.kill(process.read_state()["pid"], signal.SIGKILL)
        wait_for(lambda: is_free(root))


def is_free(root: Path) -> bool:
    """Return whether a project has no worker."""
    return not launch.worker_process(root).is_running()


def listens(root: Path) -> bool:
    """Return whether a worker listens."""
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(str(launch.socket_path(root))) == 0


def connect(root: Path, **more: Any) -> Client:
    """Connect to the worker, which has no embedder."""
    return Client.connect(root, embedder="none", **more)


def filled(client: Client) -> dict[str, Any]:
    """Wait until all of `make` is read; return the state."""

    def state() -> dict[str, Any] | None:
        found = client.call("status")
        return found if found["phase"] == "ready" and found["files"] == FILES else None

    found = wait_for(state, timeout_s=120, what="all files are read")
    assert found
    return found


def paths(client: Client, text: str) -> list[str]:
    """Return what is found."""
    return [hit.path for hit in client.search(text)]
