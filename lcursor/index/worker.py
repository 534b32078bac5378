"""The worker process: the only writer of a project's index, shared by all editors.

Takes the lock, listens on a unix socket and answers. The sockets are on the main thread's event
loop; searches run one after another on a thread of their own, slow requests on others. The worker
exits when it is told to, after ten minutes without a client, and when its lock file was deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lcursor
from lcursor.errors import LcursorError
from lcursor.index import place, priority, protocol
from lcursor.index.launch import IS_HELD
from lcursor.index.lock import Lock
from lcursor.index.project import Project

IDLE_S = 600.0
SWITCH_S = 0.0005
"""Longest time that a query waits for another thread which computes in Python."""
MAX_UNREAD_BYTES = 16 << 20
"""A client that leaves more than this unread is disconnected."""
MAX_OPEN_REQUESTS = 64
"""Unanswered requests of one client, before no more are read from it."""
MAX_BUFFERS = 100
"""Unsaved texts kept for one client."""
PUBLISH_S = 0.4
"""Shortest time between two state events."""


def run(root: Path, embedder: str = "", idle_s: float = IDLE_S) -> int:
    """Run the worker of a project until it stops; return the exit status."""
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
            address.unlink()  # left by a worker that was killed
        lock.say(
            pid=os.getpid(),
            socket=str(address),
            root=str(root),
            version=protocol.VERSION,
            lcursor=lcursor.__version__,
        )
    except (OSError, LcursorError) as error:
        sys.stderr.write(f"the index worker of {root} cannot start: {error}\n")
        return 1
    asyncio.run(_serve(root, embedder, idle_s, lock, address))
    return 0


async def _serve(root: Path, embedder: str, idle_s: float, lock: Lock, address: Path) -> None:
    server = Server(root, embedder, idle_s, lock.is_mine)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.end)
    await server.serve(address)


class Session:
    """One client."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.buffers: dict[str, str] = {}
        """Unsaved texts by path, for the search thread alone."""
        self.recent: list[str] = []
        self.secrets: list[str] = []
        self.is_listening = False
        self.open = asyncio.Semaphore(MAX_OPEN_REQUESTS)

    def buffer(self, path: str, text: str | None) -> None:
        """Keep or forget an unsaved text; of too many the oldest is dropped."""
        self.buffers.pop(path, None)
        if text is not None:
            self.buffers[path] = text
            if len(self.buffers) > MAX_BUFFERS:
                del self.buffers[next(iter(self.buffers))]

    def answered(self, _: object) -> None:
        """Allow another request, since one was answered."""
        self.open.release()

    def say(self, message: Mapping[str, Any]) -> None:
        """Send a message, on the thread of the event loop."""
        if self._writer.is_closing():
            return
        if self._writer.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._writer.transport.abort()
            return
        self._writer.write(protocol.encode(message))

    def close(self) -> None:
        """Close the connection after the pending messages."""
        self._writer.close()


class Server:
    """Answers clients until it is stopped.

    Args:
        root: of the project.
        embedder: its name; see `Project`.
        idle_s: the server stops after so long without a client.
        is_ours: returns whether this process is still the worker; called every few seconds.
    """

    def __init__(
        self, root: Path, embedder: str, idle_s: float, is_ours: Callable[[], bool]
    ) -> None:
        self._idle_s, self._is_ours = idle_s, is_ours
        self._sessions: set[Session] = set()
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._search = ThreadPoolExecutor(1, "lcursor-search")
        self._slow = ThreadPoolExecutor(1, "lcursor-slow")
        self._count = ThreadPoolExecutor(1, "lcursor-count", initializer=priority.lower)
        self._tasks: set[asyncio.Task[None]] = set()
        self._alone_s = time.monotonic()
        self._is_publishing = False
        self.project = Project(root, embedder, self._on_change, self._remark)

    async def serve(self, address: Path) -> None:
        """Listen and answer until stopped."""
        await self._loop.run_in_executor(self._slow, self.project.resume)
        listener = await asyncio.start_unix_server(
            self._client, str(address), limit=protocol.MOST_BYTES
        )
        os.chmod(address, 0o600)
        self._loop.run_in_executor(None, self.project.warm)
        try:
            await self._wait()
        finally:
            listener.close()
            _remove(address)
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
        while not self._end.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._end.wait(), min(self._idle_s, 5.0))
            is_alone = not self._sessions
            if is_alone and time.monotonic() - self._alone_s >= self._idle_s:
                return
            if not self._is_ours():
                return

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not _is_same_user(writer.get_extra_info("socket")):
            writer.close()
            return
        session = Session(writer)
        self._sessions.add(session)
        try:
            while line := await reader.readline():
                await session.open.acquire()
                task = asyncio.create_task(self._answer_line(session, line))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                task.add_done_callback(session.answered)
        except (OSError, ValueError):  # the connection broke, or a line is too long
            pass
        finally:
            self._sessions.discard(session)
            self._alone_s = time.monotonic()
            writer.close()

    async def _answer_line(self, session: Session, line: bytes) -> None:
        number = -1
        try:
            message = protocol.decode(line)
            number = message.get("id", -1) if type(message.get("id")) is int else -1
            number, name, fields = protocol.question(message)
            value = await self._answer(session, name, fields)
            session.say(protocol.answer(number, value))
        except LcursorError as error:
            session.say(protocol.failure(number, error))
        except Exception as error:  # noqa: BLE001 - every request gets an answer
            if not self._end.is_set():  # while stopping, things are closed already
                _log(traceback.format_exc())
            session.say(protocol.failure(number, LcursorError(f"{type(error).__name__}: {error}")))

    async def _answer(
        self, session: Session, name: str, fields: dict[str, Any]
    ) -> Mapping[str, Any]:
        project = self.project
        run = self._loop.run_in_executor
        if name == "search":
            return await run(
                self._search,
                lambda: project.search(**fields, recent=session.recent, overlay=session.buffers),
            )
        if name == "symbols":
            return await run(self._search, lambda: project.symbols(**fields))
        if name == "retrieve":
            return await run(
                self._search,
                lambda: project.retrieve(**fields, recent=session.recent, overlay=session.buffers),
            )
        if name == "around":
            return await run(
                self._search,
                lambda: project.around(**fields, recent=session.recent, overlay=session.buffers),
            )
        if name == "status":
            return await run(self._count, lambda: project.state(len(self._sessions)))
        if name == "report":
            return await run(self._slow, project.report)
        if name == "why":
            return await run(self._slow, lambda: project.why(**fields))
        if name == "secrets":
            session.secrets = fields["globs"]
            await run(self._slow, lambda: project.hide(session.secrets))
            await run(self._search, self._forget_secret_buffers)
            return {}
        if name == "begin":
            said = [glob for each in self._sessions for glob in each.secrets]
            await run(self._slow, lambda: project.begin(**fields, secrets=said))
            return await run(self._count, lambda: project.state(len(self._sessions)))
        if name == "buffer":
            # On the search thread, so that the searches after it see it.
            return await run(self._search, lambda: self._buffer(session, **fields))
        self._handle_notification(session, name, fields)
        return {}

    def _buffer(self, session: Session, path: str, text: str | None) -> dict[str, Any]:
        """Keep or forget an unsaved text, on the search thread."""
        is_taken = text is not None and self.project.takes(path, text)
        session.buffer(path, text if is_taken else None)
        return {"is_taken": is_taken}

    def _forget_secret_buffers(self) -> None:
        """Forget unsaved texts of files that are secret by now, on the search thread."""
        for session in list(self._sessions):
            for path in [each for each in session.buffers if self.project.own.reason(each)]:
                session.buffer(path, None)

    def _handle_notification(self, session: Session, name: str, fields: dict[str, Any]) -> None:
        """Handle a notification, which does not block."""
        if name == "recent":
            session.recent = fields["paths"]
            self.project.recent(fields["paths"])
        elif name == "changed":
            self.project.changed(fields["paths"])
        elif name == "typing":
            self.project.throttle.typing()
        elif name == "subscribe":
            session.is_listening = True
            self._schedule()
        elif name == "stop":
            self.end()

    def _on_change(self) -> None:
        """Thread: any."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._schedule)

    def _remark(self, text: str) -> None:
        """Thread: any."""
        event = {"event": "remark", "text": text}
        _log(text)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._broadcast, event)

    def _broadcast(self, event: Mapping[str, Any]) -> None:
        for session in self._sessions:
            if session.is_listening:
                session.say(event)

    def _schedule(self) -> None:
        if self._is_publishing or not any(each.is_listening for each in self._sessions):
            return
        self._is_publishing = True
        task = asyncio.create_task(self._publish())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _publish(self) -> None:
        """Send the state a moment from now, with whatever changes until then."""
        try:
            await asyncio.sleep(PUBLISH_S)
        finally:
            self._is_publishing = False
        if self._end.is_set():
            return
        clients = len(self._sessions)
        state = await self._loop.run_in_executor(self._count, lambda: self.project.state(clients))
        self._broadcast({"event": "state", **state})


def _log(text: str) -> None:
    """Write to the worker's log; a full disk must not stop anything."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{text.rstrip()}\n")
        sys.stderr.flush()


def _remove(address: Path) -> None:
    with contextlib.suppress(OSError):
        address.unlink()


def _is_same_user(sock: socket.socket) -> bool:
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True  # the folder of the socket lets nobody else in
    data = sock.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i"))
    return struct.unpack("3i", data)[1] in (os.getuid(), 0)
