"""A chat server that streams a text at a steady pace, for `bench chat screen`.

Runs in a process of its own (`python -m bench.steady`), so that it does not share an interpreter
with the measurement. Prints the port it listens on, on the loopback interface.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle, islice

TEXT = """\
The loop walks over both lists at once, and it ends where they differ for the first time. What
stands before that place is *common* to them; its length is what the function returns:

```python
def common(one: Sequence[int], other: Sequence[int]) -> int:
    length = min(len(one), len(other))
    for i in range(length):
        if one[i] != other[i]:
            return i
    return length
```

- With `zip` one would not need the index, but the length all the same.
- **Neither** of the lists is changed; a tuple does as well as a list.

"""
TOKEN = re.compile(r"\n+|\s*[^\W\d_]{1,6}|\s*\d|\s*[^\w\s]+|\s+|_")


def tokens(count: int) -> list[str]:
    """Return so many tokens of the text, repeated."""
    return list(islice(cycle(TOKEN.findall(TEXT)), count))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tokens_per_s = 200.0
    count = 2400

    def do_GET(self) -> None:
        """Return the list of models."""
        model = {"id": "steady", "object": "model", "max_model_len": 65536}
        is_models = self.path == "/v1/models"
        data = json.dumps({"object": "list", "data": [model]} if is_models else {}).encode()
        self.send_response(200 if is_models else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        """Stream the text."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != "/v1/chat/completions":
            self.do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        began_s = time.perf_counter()
        for number, text in enumerate(tokens(self.count)):
            time.sleep(max(0.0, began_s + number / self.tokens_per_s - time.perf_counter()))
            self._put({"choices": [{"index": 0, "delta": {"content": text}}]})
        self._put({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.wfile.write(b"0\r\n\r\n")

    def _put(self, row: object) -> None:
        data = b"data: " + json.dumps(row).encode() + b"\n\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, *_: object) -> None:
        """Ignore log messages."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect."""


def main(arguments: list[str]) -> None:
    """Serve until standard input is closed.

    Args:
        arguments: tokens a second, and how many tokens an answer has.
    """
    _Handler.tokens_per_s, _Handler.count = float(arguments[0]), int(arguments[1])
    with _Server(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
