"""The worker process: the only writer of a project's index, shared by all editors.

It listens on a Unix socket. The main thread runs an event loop for the sockets; searches run one
after another on their own thread, slow requests on other threads. The worker exits when it is
stopped, after ten minutes without a client, and when its lock file was deleted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lcursor
from lcursor import system
from lcursor.errors import LcursorError
from lcursor.index import launch, protocol
from lcursor.index.project import EditorState, Project
from lcursor.index.throttle import NICE
from lcursor.storage import file_lock

IDLE_S = 600.0
LOCK_IS_HELD = 3
"""Exit status of a worker that did not get the lock."""
SWITCH_S = 0.0005
"""Switch interval of Python threads, the delay of a query behind a computing thread."""
PUBLISH_S = 0.4
"""Minimum time between two state events."""


def main() -> int:
    """Run the worker of a project until it stops.

    Returns:
        The exit status: 0 after a stop, 3 if another worker has the project, 1 after an error,
        which is printed.
    """
    parser = argparse.ArgumentParser("lcursor index worker")
    parser.add_argument("root", type=Path, help="the project")
    parser.add_argument("--embedder", default="", help="its name; see Project")
    parser.add_argument("--idle-s", type=float, default=IDLE_S, help="exit after this time alone")
    parser.add_argument("--lock", type=int, help="file descriptor of the lock, if inherited")
    options = parser.parse_args()
    root, lock = Path(os.path.realpath(options.root)), options.lock
    os.umask(0o077)
    sys.setswitchinterval(SWITCH_S)
    system.lower_session_priority(NICE)
    process = launch.worker_process(root)
    try:
        launch.make_folder(root)
        if lock is None:
            lock = process.try_lock()
        if lock is None:
            return LOCK_IS_HELD
        os.set_inheritable(lock, False)
        address = launch.socket_path(root)
        with contextlib.suppress(FileNotFoundError):
            address.unlink()  # left by a worker that was killed
        process.write_state(
            {
                "pid": os.getpid(),
                "host": system.host_name(),
                "socket": str(address),
                "root": str(root),
                "version": protocol.VERSION,
                "lcursor": lcursor.__version__,
            }
        )
    except (OSError, LcursorError) as error:
        sys.stderr.write(f"the index worker of {root} cannot start: {error}\n")
        return 1

    def can_be_found() -> bool:
        return file_lock.is_same_file(process.lock_path, lock) and os.path.lexists(address)

    async def serve() -> None:
        server = Server(root, options.embedder, options.idle_s, can_be_found)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.end)
        await server.serve(address)

    asyncio.run(serve())
    return 0


class Session:
    """One client."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.buffers: dict[str, str] = {}
        """Unsaved texts by path; only for the search thread."""
        self.recent: list[str] = []
        self.secrets: list[str] = []
        self.is_subscribed = False

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message, on the thread of the event loop."""
        if not self._writer.is_closing():
            self._writer.write(protocol.encode(message))

    def close(self) -> None:
        """Close the connection after the pending messages."""
        self._writer.close()


class Server:
    """Answers clients until it is stopped.

    Args:
        idle_s: time without a client after which the server stops.
        can_be_found: returns whether this process is still the worker; called every few seconds.
    """

    def __init__(
        self, root: Path, embedder: str, idle_s: float, can_be_found: Callable[[], bool]
    ) -> None:
        self._idle_s, self._can_be_found = idle_s, can_be_found
        self._sessions: set[Session] = set()
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._search = ThreadPoolExecutor(1, "lcursor-search")
        self._slow = ThreadPoolExecutor(1, "lcursor-slow")
        self._count = ThreadPoolExecutor(
            1, "lcursor-count", initializer=system.lower_priority, initargs=(NICE,)
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._alone_s = time.monotonic()
        self._is_publishing = False
        self.project = Project(root, embedder, self._on_change, self._on_remark)

    async def serve(self, address: Path) -> None:
        """Listen and answer until stopped."""
        await self._loop.run_in_executor(self._slow, self.project.resume)
        listener = await asyncio.start_unix_server(
            self._serve_client, str(address), limit=protocol.MAX_BYTES
        )
        os.chmod(address, 0o600)
        self._loop.run_in_executor(None, self.project.warm)
        try:
            await self._wait()
        finally:
            listener.close()
            with contextlib.suppress(OSError):
                os.unlink(address)
            for session in list(self._sessions):
                session.close()
            self.project.throttle.stop()
            await asyncio.to_thread(self.project.close)
            for pool in (self._search, self._slow, self._count):
                pool.shutdown(wait=False, cancel_futures=True)

    def end(self) -> None:
        """Stop serving; called on the thread of the event loop."""
        self._end.set()

    async def _wait(self) -> None:
        """Wait for the end: nobody needs it, or nobody can find it, as its files were deleted."""
        while not self._end.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._end.wait(), min(self._idle_s, 5.0))
            is_idle = not self._sessions and time.monotonic() - self._alone_s >= self._idle_s
            if is_idle or not self._can_be_found():
                return

    # Requests

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if not _is_same_user(writer.get_extra_info("socket")):
            writer.close()
            return
        session = Session(writer)
        self._sessions.add(session)
        try:
            while line := await reader.readline():
                self._create_task(self._answer_line(session, line))
        except (OSError, ValueError):  # the connection broke, or a line is too long
            pass
        finally:
            self._sessions.discard(session)
            self._alone_s = time.monotonic()
            writer.close()

    def _create_task(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the loop has only weak references
        task.add_done_callback(self._tasks.discard)

    async def _answer_line(self, session: Session, line: bytes) -> None:
        number = -1
        try:
            message = protocol.decode(line)
            number = message.get("id", -1) if type(message.get("id")) is int else -1
            number, name, fields = protocol.parse_request(message)
            value = await self._answer(session, name, fields)
            session.send(protocol.result(number, value))
        except LcursorError as error:
            session.send(protocol.failure(number, error))
        except Exception as error:  # noqa: BLE001 - every request gets an answer
            if not self._end.is_set():  # errors are expected while stopping
                _log(traceback.format_exc())
            failed = LcursorError(f"{type(error).__name__}: {error}")
            session.send(protocol.failure(number, failed))

    async def _answer(self, session: Session, name: str, fields: dict[str, Any]) -> Any:
        project = self.project

        def run(pool: ThreadPoolExecutor, do: Callable[..., Any], *words: Any, **named: Any) -> Any:
            return self._loop.run_in_executor(pool, functools.partial(do, *words, **named))

        if name in ("search", "retrieve", "around"):
            editor = EditorState(session.recent, session.buffers)
            return await run(self._search, getattr(project, name), **fields, editor=editor)
        if name == "symbols":
            return await run(self._search, project.symbols, **fields)
        if name == "status":
            return await run(self._count, project.state, len(self._sessions))
        if name in ("report", "why", "similar"):
            return await run(self._slow, getattr(project, name), **fields)
        if name == "buffer":  # on the search thread, so that later searches use it
            return await run(self._search, self._set_buffer, session, **fields)
        if name == "secrets":
            session.secrets = fields["globs"]
            await run(self._slow, project.add_secrets, session.secrets)
            await run(self._search, self._forget_secret_buffers)
        elif name == "begin":
            globs = [glob for each in self._sessions for glob in each.secrets]
            await run(self._slow, project.begin, **fields, globs=globs)
            return await run(self._count, project.state, len(self._sessions))
        elif name == "recent":
            session.recent = fields["paths"]
            project.recent(fields["paths"])
        elif name == "changed":
            project.changed(fields["paths"])
        elif name == "typing":
            project.throttle.typing()
        elif name == "subscribe":
            session.is_subscribed = True
            project.find_embedder()
            self._schedule()
        elif name == "stop":
            self.end()
        return {}

    def _set_buffer(self, session: Session, path: str, text: str | None) -> dict[str, Any]:
        """Set or remove an unsaved text, on the search thread."""
        session.buffers.pop(path, None)
        is_taken = text is not None and self.project.accepts_buffer(path, text)
        if text is not None and is_taken:
            session.buffers[path] = text
        return {"is_taken": is_taken}

    def _forget_secret_buffers(self) -> None:
        """Remove unsaved texts of files that have become secret, on the search thread."""
        for session in list(self._sessions):
            for path in filter(self.project.secret_globs.reason, list(session.buffers)):
                del session.buffers[path]

    # Events

    def _on_change(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._schedule)

    def _on_remark(self, text: str) -> None:
        _log(text)
        with contextlib.suppress(RuntimeError):
            event = {"event": "remark", "text": text}
            self._loop.call_soon_threadsafe(self._broadcast, event)

    def _broadcast(self, event: Mapping[str, Any]) -> None:
        for session in self._sessions:
            if session.is_subscribed:
                session.send(event)

    def _schedule(self) -> None:
        if not self._is_publishing and any(each.is_subscribed for each in self._sessions):
            self._is_publishing = True
            self._create_task(self._publish())

    async def _publish(self) -> None:
        """Send the state after a short delay, to combine several changes."""
        try:
            await asyncio.sleep(PUBLISH_S)
        finally:
            self._is_publishing = False
        if self._end.is_set():
            return
        clients = len(self._sessions)
        state = await self._loop.run_in_executor(self._count, self.project.state, clients)
        self._broadcast({"event": "state", **state})


def _log(text: str) -> None:
    """Write to the worker's log; ignore errors such as a full disk."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{text.rstrip()}\n")
        sys.stderr.flush()


def _is_same_user(sock: socket.socket) -> bool:
    user = system.peer_user(sock)  # if unknown: only the user can access the folder of the socket
    return user in (None, os.getuid(), 0)
