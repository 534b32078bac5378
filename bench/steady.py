"""A chat server that streams a text at a steady pace, for `bench chat screen`.

Runs in a process of its own (`python -m bench.steady TOKENS_PER_S TOKENS`), so that it does not
share an interpreter with the measurement. Prints its port, and ends with its standard input.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle, islice

from lcursor.drive.editor import ROOT

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


@contextmanager
def running(tokens_per_s: int, count: int) -> Iterator[str]:
    """Run the server in a process, and yield its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.steady", str(tokens_per_s), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()
            process.terminate()


class _Handler(BaseHTTPRequestHandler):
    tokens_per_s = 200.0
    count = 2400

    def do_GET(self) -> None:
        """Return the list of models."""
        model = {"id": "steady", "object": "model", "max_model_len": 65536}
        is_models = self.path == "/v1/models"
        data = json.dumps({"object": "list", "data": [model]} if is_models else {}).encode()
        self.send_response(200 if is_models else 404)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        """Stream the text; the end of the connection ends it."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != "/v1/chat/completions":
            self.do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        began_s = time.perf_counter()
        for number, text in enumerate(tokens(self.count)):
            time.sleep(max(0.0, began_s + number / self.tokens_per_s - time.perf_counter()))
            self._put({"choices": [{"index": 0, "delta": {"content": text}}]})
        self._put({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})

    def _put(self, row: object) -> None:
        self.wfile.write(b"data: " + json.dumps(row).encode() + b"\n\n")

    def log_message(self, *_: object) -> None:
        """Ignore log messages."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect."""


if __name__ == "__main__":
    _Handler.tokens_per_s, _Handler.count = float(sys.argv[1]), int(sys.argv[2])
    with _Server(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_port, flush=True)
        sys.stdin.read()
