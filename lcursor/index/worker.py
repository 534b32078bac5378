"""The worker process: the one writer of a project's index, shared by all editors on it.

Takes the lock, listens, serves, leaves. It leaves when it was told to, when nobody was there for
ten minutes, and when its lock file is not the one that others see.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import lcursor
from lcursor.errors import LcursorError
from lcursor.index import place, priority, wire
from lcursor.index.launch import IS_HELD
from lcursor.index.lock import Lock

IDLE_S = 600.0
SWITCH_S = 0.0005
"""A query waits at most so long for a thread of bulk work that computes in Python."""


def run(root: Path, embedder: str = "", idle_s: float = IDLE_S) -> int:
    """Be the worker of a project until it is time to leave; return the exit status."""
    os.umask(0o077)
    sys.setswitchinterval(SWITCH_S)
    priority.lower_session()
    try:
        place.own_folder(root)
        lock = Lock.take(place.lock_path(root))
        if lock is None:
            return IS_HELD
        address = place.socket_path(root)
        with contextlib.suppress(FileNotFoundError):
            address.unlink()  # of a worker that was killed: nobody can be listening there
        lock.say(
            pid=os.getpid(),
            socket=str(address),
            root=str(root),
            version=wire.VERSION,
            lcursor=lcursor.__version__,
        )
    except (OSError, LcursorError) as error:
        sys.stderr.write(f"the index of {root} cannot be begun: {error}\n")
        return 1
    asyncio.run(_serve(root, embedder, idle_s, lock, address))
    return 0


async def _serve(root: Path, embedder: str, idle_s: float, lock: Lock, address: Path) -> None:
    from lcursor.index.server import Server

    server = Server(root, embedder, idle_s, lock.is_mine)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.end)
    await server.serve(address)
