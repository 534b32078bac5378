"""The worker's end of the socket: who is there, what they ask, what they are told.

Owns the listening socket and the clients, on the main thread's event loop. Searches run one after
another on a thread of their own, slow questions on others, so that none waits for another kind.
A client that does not read is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lcursor.errors import LcursorError
from lcursor.index import priority, wire
from lcursor.index.project import Project

MOST_WAITING_BYTES = 16 << 20
"""Unread by a client, before it is dropped."""
MOST_OPEN_QUESTIONS = 64
"""Of one client; it is not read further until some are answered."""
MOST_BUFFERS = 100
"""Unsaved texts of one client."""
PUBLISH_S = 0.4
"""Least time between two states that are told to who listens."""


class Session:
    """One client."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.buffers: dict[str, str] = {}
        """Unsaved texts, for the thread that searches alone."""
        self.recent: list[str] = []
        self.secrets: list[str] = []
        """Globs."""
        self.is_listening = False
        self.open = asyncio.Semaphore(MOST_OPEN_QUESTIONS)

    def buffer(self, path: str, text: str | None) -> None:
        """Keep an unsaved text, or forget it; of many the oldest goes."""
        self.buffers.pop(path, None)
        if text is not None:
            self.buffers[path] = text
            if len(self.buffers) > MOST_BUFFERS:
                del self.buffers[next(iter(self.buffers))]

    def answered(self, _: object) -> None:
        """One of its questions has been answered."""
        self.open.release()

    def say(self, message: Mapping[str, Any]) -> None:
        """Send; thread: the loop's."""
        if self._writer.is_closing():
            return
        if self._writer.transport.get_write_buffer_size() > MOST_WAITING_BYTES:
            self._writer.transport.abort()
            return
        self._writer.write(wire.encode(message))

    def close(self) -> None:
        """End the connection, after what is still to be sent."""
        self._writer.close()


class Server:
    """Answers clients until told to end.

    Args:
        root: of the project.
        embedder: of `Project`.
        idle_s: the worker ends after so long without a client.
        is_ours: whether this process is still the one worker; looked at now and then.
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
        self.project = Project(root, embedder, self._news, self._remark)

    async def serve(self, address: Path) -> None:
        """Listen, and answer until the end."""
        await self._loop.run_in_executor(self._slow, self.project.resume)
        listener = await asyncio.start_unix_server(
            self._client, str(address), limit=wire.MOST_BYTES
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
            self.project.gate.stop()
            await asyncio.to_thread(self.project.close)
            for pool in (self._search, self._slow, self._count):
                pool.shutdown(wait=False, cancel_futures=True)

    def end(self) -> None:
        """Stop serving. Thread: the loop's."""
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
                task = asyncio.create_task(self._question(session, line))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                task.add_done_callback(session.answered)
        except (OSError, ValueError):  # gone in the middle, or a line without end
            pass
        finally:
            self._sessions.discard(session)
            self._alone_s = time.monotonic()
            writer.close()

    async def _question(self, session: Session, line: bytes) -> None:
        number = -1
        try:
            message = wire.decode(line)
            number = message.get("id", -1) if type(message.get("id")) is int else -1
            number, name, fields = wire.question(message)
            value = await self._answer(session, name, fields)
            session.say(wire.answer(number, value))
        except LcursorError as error:
            session.say(wire.failure(number, error))
        except Exception as error:  # noqa: BLE001 - the root of every answer
            if not self._end.is_set():  # at the end all kinds of things are closed already
                _log(traceback.format_exc())
            session.say(wire.failure(number, LcursorError(f"{type(error).__name__}: {error}")))

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
            await run(self._search, self._take_back)
            return {}
        if name == "begin":
            said = [glob for each in self._sessions for glob in each.secrets]
            await run(self._slow, lambda: project.begin(**fields, secrets=said))
            return await run(self._count, lambda: project.state(len(self._sessions)))
        if name == "buffer":
            # In line with the searches: those that come after it see it.
            return await run(self._search, lambda: self._buffer(session, **fields))
        self._note(session, name, fields)
        return {}

    def _buffer(self, session: Session, path: str, text: str | None) -> dict[str, Any]:
        """Thread: the one that searches."""
        is_taken = text is not None and self.project.takes(path, text)
        session.buffer(path, text if is_taken else None)
        return {"is_taken": is_taken}

    def _take_back(self) -> None:
        """Forget unsaved texts of what is secret by now. Thread: the one that searches."""
        for session in list(self._sessions):
            for path in [each for each in session.buffers if self.project.own.reason(each)]:
                session.buffer(path, None)

    def _note(self, session: Session, name: str, fields: dict[str, Any]) -> None:
        """Take in what needs no thought."""
        if name == "recent":
            session.recent = fields["paths"]
            self.project.recent(fields["paths"])
        elif name == "changed":
            self.project.changed(fields["paths"])
        elif name == "typing":
            self.project.gate.typing()
        elif name == "subscribe":
            session.is_listening = True
            self._schedule()
        elif name == "stop":
            self.end()

    def _news(self) -> None:
        """Thread: any."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._schedule)

    def _remark(self, text: str) -> None:
        """Thread: any."""
        event = {"event": "remark", "text": text}
        _log(text)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._tell, event)

    def _tell(self, event: Mapping[str, Any]) -> None:
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
        """Tell the state, a moment from now: what changes meanwhile is told with it."""
        try:
            await asyncio.sleep(PUBLISH_S)
        finally:
            self._is_publishing = False
        if self._end.is_set():
            return
        clients = len(self._sessions)
        state = await self._loop.run_in_executor(self._count, lambda: self.project.state(clients))
        self._tell({"event": "state", **state})


def _log(text: str) -> None:
    """Write into the worker's log; a full disk must end neither a thread nor an answer."""
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
