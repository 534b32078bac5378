"""A llama-server that plays a script, to measure agents whose model costs nothing.

It runs in a process of its own. A token is a character, or a marker of ChatML. An answer is a
function of the conversation, so that it is the same after a crash.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

Row = tuple[str, str]
"""Role and text of a message."""
Play = Callable[[list[Row], bool], str]
"""Return the next answer, given the conversation and whether the grammar is forced."""
MODEL: Final = "qwen3-coder-30b-a3b"
CONTEXT_TOKENS: Final = 65_536
ENDLESS: Final = "ENDLESS"
"""As an answer: text in small pieces, until the client leaves."""
PAUSE_S: Final = 0.005
"""Between two of them."""
_MARKERS: Final = {"<|im_start|>": "\1", "<|im_end|>": "\2"}
_MESSAGE: Final = re.compile("\1(\\w+)\n(.*?)\2", re.DOTALL)
_END: Final = 2


@contextmanager
def serving(play: Play) -> Iterator[str]:
    """Run a server, and yield its address. Forks, so call it before any thread starts."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.play = play
        child = os.fork()
        if not child:
            try:
                server.serve_forever()
            finally:
                os._exit(0)
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    play: Play

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.spans: list[tuple[float, float]] = []
        """Time of the arrival and of the end of each answer, of `time.monotonic`."""

    def handle_error(self, *_: object) -> None:
        """Ignore clients that are killed; report other errors."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            sys.excepthook(*sys.exc_info())


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Describe the server."""
        slots = {"n_ctx": CONTEXT_TOKENS}
        props = {"default_generation_settings": slots, "total_slots": 1, "model_alias": MODEL}
        found = {
            "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model"}]},
            "/health": {"status": "ok"},
            "/props": {**props, "model_path": f"/models/{MODEL}.gguf", "build_info": "b9999"},
            "/spans": self.server.spans,
        }
        self._send(found.get(self.path.partition("?")[0]))

    def do_POST(self) -> None:
        """Answer, or count tokens."""
        began_s = time.monotonic()
        data = self.rfile.read(length := int(self.headers["Content-Length"]))
        if len(data) < length:
            return  # the client was killed
        body = json.loads(data)
        if self.path == "/completion":
            try:
                self._answer(body)
            finally:
                self.server.spans.append((began_s, time.monotonic()))
        elif self.path == "/apply-template":
            rows = [f"\1{each['role']}\n{each['content']}\2\n" for each in body["messages"]]
            text = "".join([*rows, "\1assistant\n"])
            for marker, token in _MARKERS.items():
                text = text.replace(token, marker)
            self._send({"prompt": text})
        elif self.path == "/tokenize":
            text = body["content"]
            for marker, token in _MARKERS.items() if body.get("parse_special") else ():
                text = text.replace(marker, token)
            self._send({"tokens": [ord(each) for each in text]})
        else:
            self._send(None)

    def _answer(self, body: dict[str, Any]) -> None:
        prompt = body["prompt"]
        rows = _MESSAGE.findall("".join(map(chr, prompt)))
        text = self.server.play(rows, "grammar" in body and "grammar_lazy" not in body)
        pieces = [text] if text != ENDLESS else itertools.repeat("on and ", 10_000)
        timings = {"cache_n": len(prompt), "prompt_n": 0, "predicted_n": len(text)}
        end = [
            {"content": "", "tokens": [_END], "stop": False},
            {"content": "", "tokens": [], "stop": True, "stop_type": "eos", "timings": timings},
        ]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for piece in pieces:
            self._put({"content": piece, "tokens": [ord(each) for each in piece], "stop": False})
            time.sleep(PAUSE_S if text == ENDLESS else 0)
        for each in end:
            self._put(each)

    def _put(self, value: object) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def _send(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(404 if value is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Ignore log messages."""
