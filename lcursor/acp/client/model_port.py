"""Give an agent in the sandbox the user's model, and nothing else of the network.

    with ModelPort(served_model, name_on_the_server) as port:
        port.url  # "http://127.0.0.1:40213/SECRET"

What is sent there is forwarded to the model's server, with the user's key and the model's name: the
agent sees no key, and may call the model what it likes. Tokens in the text are replaced, as in all
requests to other machines. Other users of the machine do not know the
secret; it is in the path, because some agents replace headers. Requests wait until the server has
space for them beside those of chats, edits and other agents. Serves on threads.
"""

from __future__ import annotations

import contextlib
import hmac
import http.client
import json
import secrets
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from lcursor.http import endpoint
from lcursor.llm import providers, tokens
from lcursor.llm.admission import Admission
from lcursor.llm.records import ServedModel
from lcursor.project import redaction

MAX_BODY_BYTES: Final = 64 << 20
BLOCK_BYTES: Final = 1 << 14
CONNECT_S: Final = 20.0
POLL_S: Final = 0.05
"""How long the end of the server waits at most."""
HOP: Final = frozenset({
    "connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade",
    "authorization", "x-api-key", "accept-encoding",
})  # fmt: skip
"""Headers that are not forwarded: of this connection, or with a key."""

ALLOWED: Final = frozenset({
    "/chat/completions", "/completions", "/messages", "/messages/count_tokens", "/models",
    "/responses",
})  # fmt: skip
"""What may be asked with the user's key: nothing else of the account."""


class ModelPort:
    """A port of this machine that leads to a model. Thread: any.

    Args:
        model: its name on the server.
        admission: the requests to that server.
    """

    def __init__(self, target: ServedModel, model: str, admission: Admission) -> None:
        self._secret = f"/{secrets.token_urlsafe(24)}"
        self._target, self._model, self._admission = target, model, admission
        self._rank = 1  # as of our own agents: those that have written less come first
        self._is_closed = False
        self._open = set[http.client.HTTPConnection]()
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner._forward(self)

            def do_POST(self) -> None:
                owner._forward(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Log nothing."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.number = self._server.server_address[1]

    @property
    def url(self) -> str:
        """Its address with the secret, without the version."""
        return f"http://127.0.0.1:{self.number}{self._secret}"

    def __enter__(self) -> ModelPort:
        threading.Thread(
            target=self._server.serve_forever,
            args=(POLL_S,),
            name="lcursor-model-port",
            daemon=True,
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._server.shutdown()
        self._server.server_close()
        with self._lock:
            closing = list(self._open)
        for each in closing:  # ends what the model still writes
            if each.sock is not None:
                with contextlib.suppress(OSError):
                    each.sock.shutdown(socket.SHUT_RDWR)

    # Threads of the server.

    def _forward(self, request: BaseHTTPRequestHandler) -> None:
        """Forward a request, and stream what comes back."""
        request.close_connection = True
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = request.path
        if not hmac.compare_digest(path[: len(self._secret)].encode(), self._secret.encode()):
            request.send_error(404)
            return
        path = path[len(self._secret) :].removeprefix("/v1")
        if self._target.key and urlsplit(path).path not in ALLOWED:
            request.send_error(404)
            return
        connection, prefix = self._connection()
        with self._lock:
            self._open.add(connection)
        try:
            sent = {name: value for name, value in headers.items() if name not in HOP}
            body = self._body(request, headers)
            body = self._rewritten(body) if body else b""
            with self._admitted(body):
                connection.connect()
                connection.sock.settimeout(None)  # a model may read for minutes before it answers
                sent |= self._keys()
                connection.request(request.command, prefix + path, body or None, sent)
                self._stream(connection.getresponse(), request)
        except (OSError, ValueError, http.client.HTTPException) as error:
            with contextlib.suppress(OSError):  # too late if the answer has begun
                request.send_error(502, type(error).__name__, str(error))
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    @contextlib.contextmanager
    def _admitted(self, body: bytes) -> Iterator[None]:
        """Wait until the server has space for a prompt.

        Raises:
            ConnectionError: the port was closed meanwhile.
        """
        if not body:
            yield
            return
        admitted = self._admission.enter(tokens.estimate(body.decode()), 0, self._rank)
        try:
            while not admitted.is_running.wait(POLL_S):
                if self._is_closed:
                    raise ConnectionError("the agent has ended")
            yield
        finally:
            admitted.leave()

    def _stream(self, answer: http.client.HTTPResponse, request: BaseHTTPRequestHandler) -> None:
        """Forward an answer."""
        request.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP:
                request.send_header(name, value)
        request.send_header("Connection", "close")
        request.end_headers()
        while block := answer.read1(BLOCK_BYTES):
            self._rank += block.count(b"data:")  # about as many as tokens
            request.wfile.write(block)
            request.wfile.flush()

    def _connection(self) -> tuple[http.client.HTTPConnection, str]:
        """Return a connection to the model's server, and what paths there begin with."""
        url = self._target.url
        if path := endpoint.socket_path(url):
            return _SocketConnection(path), "/v1"
        parts = urlsplit(url)
        root, version = endpoint.split_url(url)
        version = providers.openai_prefix(self._target.kind, version)
        prefix = urlsplit(root).path.rstrip("/") + version
        kind = http.client.HTTPSConnection if parts.scheme == "https" else _plain
        if proxy := endpoint.proxy_of(url):
            through = urlsplit(proxy)
            connection = kind(through.hostname or "", through.port or 3128, timeout=CONNECT_S)
            connection.set_tunnel(parts.hostname or "", parts.port)
        else:
            connection = kind(parts.hostname or "", parts.port, timeout=CONNECT_S)
        return connection, prefix

    def _body(self, request: BaseHTTPRequestHandler, headers: dict[str, str]) -> bytes:
        """Read the body of a request.

        Raises:
            ValueError: it is too large.
        """
        if "chunked" not in headers.get("transfer-encoding", "").lower():
            size = int(headers.get("content-length") or 0)
            if size > MAX_BODY_BYTES:
                raise ValueError("the request is too large")
            return request.rfile.read(size)
        parts, total = list[bytes](), 0
        while size := int(request.rfile.readline(64).partition(b";")[0] or b"0", 16):
            total += size
            if total > MAX_BODY_BYTES:
                raise ValueError("the request is too large")
            parts.append(request.rfile.read(size))
            request.rfile.readline(8)
        return b"".join(parts)

    def _rewritten(self, body: bytes) -> bytes:
        """Return a body with the model's real name, and without tokens for another machine.

        Raises:
            ValueError: it is no JSON.
        """
        row = json.loads(body)
        if isinstance(row, dict) and "model" in row:
            row = {**row, "model": self._model}
        if not endpoint.is_local(self._target.url):
            row, _ = redaction.redact_all(row)
        return json.dumps(row).encode()

    def _keys(self) -> dict[str, str]:
        key = self._target.key
        if not key:
            return {}
        if self._target.kind == "anthropic":
            return {"x-api-key": key}
        return {"Authorization": f"Bearer {key}"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """An agent that has left is no error."""


def _plain(host: str, port: int | None, timeout: float) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(host, port, timeout=timeout)


class _SocketConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)
