"""A server of models on the loopback interface, that speaks what a test tells it to.

Real sockets and `http.server` threads, so that what is tested is what a real server would see.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Reply = Iterator[bytes]


class ModelServer:
    """Answers by a table of paths; keeps what was asked.

    Attributes:
        routes: path to (status, content type, body): bytes, or a function that yields them slowly.
        asked: (method, path, headers, body) of every request.
        gone_s: when a client was seen to have gone while it was sent to.
    """

    def __init__(self, port: int = 0) -> None:
        self.routes: dict[str, tuple[int, str, bytes | Callable[[], Reply]]] = {}
        self.asked: list[tuple[str, str, dict[str, str], dict[str, Any]]] = []
        self.gone_s: list[float] = []
        self.connections = 0
        self.is_over = threading.Event()
        self._open: list[socket.socket] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                outer.connections += 1
                outer._open.append(self.request)
                super().setup()

            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                self._answer(json.loads(self.rfile.read(size)))

            def _answer(self, body: dict[str, Any]) -> None:
                outer.asked.append((self.command, self.path, dict(self.headers), body))
                missing = (404, "application/json", b'{"error": {"message": "File Not Found"}}')
                status, kind, content = outer.routes.get(self.path, missing)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                if 300 <= status < 400:
                    self.send_header("Location", "http://elsewhere.example/")
                if isinstance(content, bytes):
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                    return
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    for part in content():
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                        self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                except (ConnectionError, BrokenPipeError):
                    outer.gone_s.append(time.monotonic())
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """Say nothing of clients that went."""

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, where: TracebackType | None
    ) -> None:
        self.is_over.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in self._open:  # a process that ends takes them with it
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def wrap(self, context: ssl.SSLContext) -> None:
        """Speak TLS."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def drip(self, *parts: bytes, every_s: float = 0.02) -> Callable[[], Reply]:
        """Return a body that sends parts, then dots' worth of nothing until the client goes."""

        def send() -> Reply:
            yield from parts
            while not self.is_over.wait(every_s):
                yield b": still here\n"

        return send

    def json(self, path: str, value: object, status: int = 200) -> None:
        """Answer a path with JSON."""
        self.routes[path] = (status, "application/json", json.dumps(value).encode())

    def paths(self) -> list[str]:
        """Return the paths that were asked for, in order."""
        return [path for _, path, _, _ in self.asked]

    # The three kinds of servers.

    def llama(self, *texts: str, model: str = "qwen2.5-coder-0.5b-q4_k_m.gguf") -> None:
        """Be a llama-server that writes these texts."""
        self.json("/props", {"default_generation_settings": {}, "model_path": f"/models/{model}"})
        times = {"prompt_n": 7, "cache_n": 30}
        rows: list[dict[str, Any]] = [
            {"content": text, "stop": False, "timings": times} for text in texts
        ]
        rows.append({"content": "", "stop": True, "stop_type": "eos", "stopping_word": ""})
        self.routes["/completion"] = (200, "text/event-stream", sse(*rows))

    def ollama(self, *texts: str, models: tuple[str, ...] = ("qwen2.5-coder:0.5b",)) -> None:
        """Be an Ollama that writes these texts."""
        self.json("/api/version", {"version": "0.12.0"})
        self.json("/api/tags", {"models": [{"name": name} for name in models]})
        rows: list[dict[str, Any]] = [{"response": text, "done": False} for text in texts]
        rows.append({"response": "", "done": True, "done_reason": "stop", "prompt_eval_count": 9})
        body = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        self.routes["/api/generate"] = (200, "application/x-ndjson", body)

    def openai(self, *texts: str, models: tuple[str, ...] = ("Qwen/Qwen2.5-Coder-7B",)) -> None:
        """Be a vLLM that writes these texts."""
        self.json("/v1/models", {"object": "list", "data": [{"id": name} for name in models]})
        rows: list[dict[str, Any]] = [
            {"choices": [{"text": text, "finish_reason": None}]} for text in texts
        ]
        rows.append({"choices": [{"text": "", "finish_reason": "stop"}]})
        body = sse(*rows) + b"data: [DONE]\n\n"
        self.routes["/v1/completions"] = (200, "text/event-stream; charset=utf-8", body)


def sse(*rows: object) -> bytes:
    """Return objects as server-sent events."""
    return b"".join(b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows)
