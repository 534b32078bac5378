"""The base of all fake servers: a real socket, threads, and an end like that of a killed process.

Classes derived from `Loopback` answer requests.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar

MOST_BODY_BYTES = 64 << 20
Self = TypeVar("Self", bound="Loopback")


class Loopback:
    """A server on the loopback interface or a unix socket.

    Args:
        port: 0 takes a free one.
        socket_path: of a unix socket, in place of a port.

    Attributes:
        connections: that were made.
        gone_s: when (`time.monotonic`) a client was seen to have gone in the middle of an answer.
        is_over: set when it ends.
    """

    def __init__(self, port: int = 0, socket_path: Path | None = None) -> None:
        self.connections = 0
        self.gone_s: list[float] = []
        self.is_over = threading.Event()
        self.open: list[socket.socket] = []
        self._path = socket_path
        handler = type("Mine", (Handler,), {"owner": self})
        self._server: socketserver.BaseServer
        if socket_path:
            self._server = _Unix(str(socket_path), handler)
        else:
            self._server = _Tcp(("127.0.0.1", port), handler)
        address: Any = self._server.server_address
        self.port = 0 if socket_path else int(address[1])
        self.url = f"unix://{socket_path}" if socket_path else f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, ask: Handler, body: dict[str, Any]) -> None:
        """Answer a request. Thread: the connection's."""
        raise NotImplementedError

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End at once, as a killed process would."""
        self.is_over.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in self.open:  # a process that ends takes them with it
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        if self._path is not None:
            self._path.unlink(missing_ok=True)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    owner: ClassVar[Loopback]

    def setup(self) -> None:
        """Count the connection."""
        self.owner.connections += 1
        self.owner.open.append(self.request)
        super().setup()

    def do_GET(self) -> None:
        """Answer."""
        self.owner.answer(self, {})

    def do_HEAD(self) -> None:
        """Answer."""
        self.owner.answer(self, {})

    def do_POST(self) -> None:
        """Read the body and answer."""
        size = int(self.headers.get("Content-Length") or 0)
        self.owner.answer(self, json.loads(self.rfile.read(min(size, MOST_BODY_BYTES)) or b"{}"))

    def send(
        self, status: int, kind: str, data: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send an answer as a whole."""
        self.head(status, kind, {**(headers or {}), "Content-Length": str(len(data))})
        self.wfile.write(data)

    def begin(self, status: int, kind: str, headers: Mapping[str, str] | None = None) -> None:
        """Start a chunked answer."""
        self.head(status, kind, {"Transfer-Encoding": "chunked", **(headers or {})})

    def piece(self, data: bytes) -> None:
        """Send a chunk; an empty one ends the answer."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def head(self, status: int, kind: str, headers: Mapping[str, str]) -> None:
        """Send the status line and the headers."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def address_string(self) -> str:
        """Return no host: a unix socket has none."""
        return "here"

    def log_message(self, *_: object) -> None:
        """Ignore log messages."""


class _Tcp(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 32

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, address

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect."""


class _Unix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect."""


def sse(*rows: object) -> bytes:
    """Return objects as server-sent events."""
    return b"".join(b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows)
