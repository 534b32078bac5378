"""The client of a project's index worker, which starts one if none runs.

Standard library only. Any thread may send requests; a thread of the client reads the answers. If
the worker dies, the client reconnects, starts another worker if needed, and sends the state again:
secrets, buffers, open files and the subscription to events.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from lcursor.errors import Cancelled, IndexAway, LcursorError
from lcursor.index import launch, protocol
from lcursor.index.records import Hit, Mode, hit_of
from lcursor.process.run import Cancel
from lcursor.process.supervise import Child, error_line

CONNECT_S = 10.0
"""Time limit for a worker to start."""
ANSWER_S = 30.0
STOP_S = 2.0
STEP_S = 0.02
"""Time between two looks whether a worker has started, or whether a request is canceled."""
Event = dict[str, Any]
REPEATED = ("secrets", "subscribe", "recent", "buffer")
"""Requests that are repeated to a new worker, in this order: secrets come first."""
SUBSCRIBE = ("subscribe", "")


class Client:
    """A connection to the worker of one project.

    Args:
        start: whether to start a worker if none answers.
        embedder: embedder of the worker, unless another client uses one; "" for any, or the default
            if none runs.
    """

    def __init__(self, root: Path, *, start: bool = True, embedder: str = "") -> None:
        self.root = root
        self._start, self._embedder = start, embedder
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._connecting = threading.Lock()
        self._connection: _Connection | None = None
        self._is_closed = False
        self._listener: Callable[[Event], object] = lambda event: None
        self._repeated: dict[tuple[str, str], Mapping[str, Any]] = {}
        """Parameters of the requests to repeat, by request and path."""

    @classmethod
    def connect(cls, root: Path, start: bool = True, embedder: str = "") -> Client:
        """Return a connected client.

        Raises:
            IndexAway: no worker answers, even after starting one.
        """
        client = cls(root, start=start, embedder=embedder)
        client.call("status")
        return client

    def call(
        self,
        do: str,
        *,
        timeout_s: float = ANSWER_S,
        cancel: Cancel | None = None,
        **params: Any,
    ) -> dict[str, Any]:
        """Send a request and return its answer; retry once if the worker dies.

        Args:
            cancel: whether to stop waiting; it is called every 20 ms.

        Raises:
            IndexAway: no worker answers in time.
            Cancelled: `cancel` returned True.
            LcursorError: the worker's error.
        """
        self._remember(do, params)
        for is_last in (False, True):
            connection = self._connected(cancel)
            reply = connection.request(next(self._numbers), do, params, timeout_s, cancel)
            if reply is None:
                if is_last or do == "stop":
                    break
                continue
            if "error" in reply:
                raise protocol.to_error(reply["error"])
            return dict(reply["ok"])
        if do == "stop":
            return {}
        raise IndexAway(f"the index worker of {self.root} ended", "See :LCursor log")

    def notify(self, do: str, **params: Any) -> None:
        """Send a notification; without a running worker it is dropped.

        Buffers, open files and secrets are repeated to the next worker.
        """
        self._remember(do, params)
        connection = self._connection
        if connection is not None:
            connection.send({"id": next(self._numbers), "do": do, **params})

    def search(self, text: str, *, limit: int = 20, mode: Mode = "hybrid") -> list[Hit]:
        """Return the hits of a search, best first."""
        found = self.call("search", text=text, limit=limit, mode=mode)
        return [hit_of(row) for row in found["hits"]]

    def listen(self, listener: Callable[[Event], object]) -> None:
        """Call a function with each event, on the reading thread; it must not block.

        When the worker ends, the event is `{"event": "gone"}`; the next call starts another one.
        """
        self._listener = listener
        self.call("subscribe")

    @property
    def is_connected(self) -> bool:
        """Whether a worker is connected."""
        return self._connection is not None and self._connection.is_open

    def close(self) -> None:
        """Disconnect; the worker keeps running for a while."""
        self._is_closed = True
        with self._lock:
            connection, self._connection = self._connection, None
        if connection:
            connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _remember(self, do: str, params: Mapping[str, Any]) -> None:
        if do in REPEATED:
            key = (do, params.get("path", ""))
            with self._lock:
                self._repeated.pop(key, None)
                if do != "buffer" or params["text"] is not None:
                    self._repeated[key] = params

    def _connected(self, cancel: Cancel | None) -> _Connection:
        with self._connecting:
            connection = self._connection
            if connection is not None and connection.is_open:
                return connection
            if self._is_closed:
                raise IndexAway("this connection to the index is closed")
            connection = self._dial(cancel)
            self._restore(connection)
            with self._lock:
                self._connection = connection
                is_late = self._is_closed
            if is_late:
                connection.close()
            return connection

    def _dial(self, cancel: Cancel | None) -> _Connection:
        """Return a connection to a suitable worker; start one if necessary."""
        deadline_s = time.monotonic() + CONNECT_S
        child: Child | None = None
        while True:
            if connection := _open(self.root, self._on_event):
                if self._can_use(connection):
                    return connection
                connection.close()
            if not self._start:
                raise IndexAway(
                    f"no index worker runs for {self.root}",
                    f"Run :LCursor index, or in a shell python -m lcursor index {self.root}",
                )
            has_failed = child is not None and child.status not in (None, 0)
            if has_failed or time.monotonic() > deadline_s:
                raise self._no_answer(child)
            if child is None or child.status == 0:
                child = launch.start(self.root, self._embedder)
                if child is None and (host := launch.other_host(self.root)):
                    raise IndexAway(
                        f"the index worker of {self.root} runs on {host}",
                        "It ends ten minutes after the last editor there has left the project",
                    )
            _check(cancel)
            time.sleep(STEP_S)

    def _no_answer(self, child: Child | None) -> IndexAway:
        process = launch.worker_process(self.root)
        reason = error_line(child.output()) if child and child.status else ""
        return IndexAway(
            f"the index worker of {self.root} does not answer{reason and f': {reason}'}",
            f"See {process.log_path}; its process id is {process.read_state().get('pid', 0)}",
        )

    def _can_use(self, connection: _Connection) -> bool:
        """Return whether the worker has our version and embedder; else stop it.

        An embedder that another client uses stays.
        """
        with contextlib.suppress(IndexAway):
            status = connection.request(next(self._numbers), "status", {}, CONNECT_S)
            if status is None:
                return False
            state = status.get("ok", {})
            if state.get("version") == protocol.VERSION:
                is_any = not self._embedder or state["clients"] > 1
                if is_any or self._embedder == state["wanted_embedder"]:
                    return True
            connection.request(next(self._numbers), "stop", {}, STOP_S)
        return False

    def _restore(self, connection: _Connection) -> None:
        with self._lock:
            repeated = sorted(self._repeated.items(), key=lambda one: REPEATED.index(one[0][0]))
        for (do, _), params in repeated:
            connection.send({"id": next(self._numbers), "do": do, **params})

    def _on_event(self, event: Event) -> None:
        if SUBSCRIBE in self._repeated:
            self._listener(event)


class _Connection:
    """A socket and its pending requests. Any thread; one thread reads."""

    def __init__(self, sock: socket.socket, on_event: Callable[[Event], None]) -> None:
        self.is_open = True
        self._sock, self._on_event = sock, on_event
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._waiting: dict[int, SimpleQueue[dict[str, Any] | None]] = {}
        self._thread = threading.Thread(target=self._read, name="lcursor-index", daemon=True)
        self._thread.start()

    def request(
        self,
        number: int,
        do: str,
        params: Mapping[str, Any],
        timeout_s: float,
        cancel: Cancel | None = None,
    ) -> dict[str, Any] | None:
        """Return the answer to a request, or None if the connection was closed first."""
        box: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        with self._lock:
            if not self.is_open:
                return None
            self._waiting[number] = box
        try:
            self.send({"id": number, "do": do, **params})
            return _take(box, timeout_s, cancel)
        except Empty:
            raise IndexAway(
                f"the index worker did not answer a {do} within {timeout_s:g} s",
                "Try again, or see :LCursor log",
            ) from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; the reading thread notices a broken connection."""
        data = protocol.encode(message)
        if len(data) > protocol.MAX_BYTES:
            raise LcursorError(f"a message of {len(data)} bytes is too long for the index")
        with self._sending:
            try:
                self._sock.sendall(data)
            except OSError:
                self._shut()

    def close(self) -> None:
        """Close the connection and end its thread."""
        self._shut()
        if threading.current_thread() is not self._thread:
            self._thread.join(1.0)

    def _shut(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        try:
            with contextlib.suppress(OSError, LcursorError), self._sock.makefile("rb") as file:
                for line in file:
                    self._receive(protocol.decode(line))
        finally:  # so that the next request connects again
            with self._lock:
                self.is_open = False
                waiting = list(self._waiting.values())
            for box in waiting:
                box.put(None)
            self._sock.close()
            self._on_event({"event": "gone"})

    def _receive(self, message: dict[str, Any]) -> None:
        if "event" in message:
            self._on_event(message)
            return
        number = message.get("id")
        with self._lock:
            box = self._waiting.get(number) if isinstance(number, int) else None
        if box is not None:
            box.put(message)


def _take(
    box: SimpleQueue[dict[str, Any] | None], timeout_s: float, cancel: Cancel | None
) -> dict[str, Any] | None:
    """Return what a queue gets first; raise `Empty` after a time, or `Cancelled`."""
    if cancel is None:
        return box.get(timeout=timeout_s)
    end_s = time.monotonic() + timeout_s
    while (left_s := end_s - time.monotonic()) > 0:
        _check(cancel)
        with contextlib.suppress(Empty):
            return box.get(timeout=min(STEP_S, left_s))
    raise Empty


def _check(cancel: Cancel | None) -> None:
    if cancel is not None and cancel():
        raise Cancelled("the request to the index was canceled")


def _open(root: Path, on_event: Callable[[Event], None]) -> _Connection | None:
    for address in launch.addresses(root):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(2.0)
        try:
            sock.connect(str(address))
        except OSError:
            sock.close()
            continue
        sock.settimeout(None)
        return _Connection(sock, on_event)
    return None
