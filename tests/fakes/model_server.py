"""A completion server on the loopback interface, with the API that the test chooses."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.fakes.loopback import Handler, Loopback, sse

Reply = Iterator[bytes]


class ModelServer(Loopback):
    """A server that answers by a table of paths and records the requests.

    Attributes:
        routes: path to (status, content type, body): bytes, or a function that yields them slowly.
        asked: (method, path, headers, body) of every request.
    """

    def __init__(self, port: int = 0) -> None:
        self.routes: dict[str, tuple[int, str, bytes | Callable[[], Reply]]] = {}
        self.asked: list[tuple[str, str, dict[str, str], dict[str, Any]]] = []
        super().__init__(port)

    def answer(self, ask: Handler, body: dict[str, Any]) -> None:
        """Answer as the table says."""
        self.asked.append((ask.command, ask.path, dict(ask.headers), body))
        missing = (404, "application/json", b'{"error": {"message": "File Not Found"}}')
        status, kind, content = self.routes.get(ask.path, missing)
        headers = {"Location": "http://elsewhere.example/"} if 300 <= status < 400 else {}
        if isinstance(content, bytes):
            return ask.send(status, kind, content, headers)
        ask.begin(status, kind, headers)
        try:
            for part in content():
                ask.piece(part)
            ask.piece(b"")
        except ConnectionError:
            self.gone_s.append(time.monotonic())
            ask.close_connection = True

    def wrap(self, context: ssl.SSLContext) -> None:
        """Speak TLS."""
        server: Any = self._server
        server.socket = context.wrap_socket(server.socket, server_side=True)

    def drip(self, *parts: bytes, every_s: float = 0.02) -> Callable[[], Reply]:
        """Return a body that sends parts, then comments until the client disconnects."""

        def send() -> Reply:
            yield from parts
            while not self.is_over.wait(every_s):
                yield b": still here\n"

        return send

    def json(self, path: str, value: object, status: int = 200) -> None:
        """Answer a path with JSON."""
        self.routes[path] = (status, "application/json", json.dumps(value).encode())

    def paths(self) -> list[str]:
        """Return the paths of all requests, in order."""
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
