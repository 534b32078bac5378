#!/usr/bin/env python3
"""A fake llama-server: prints a version, and serves /health, /props, /v1/models.

Behaves as the environment says: FAKE_VERSION is its build number; FAKE_SAID, a file that gets its
arguments, a JSON list a line; FAKE_LOAD_S, how long it loads; FAKE_MOST_TOKENS, the context above
which it runs out of memory; FAKE_BUSY, a file that is there while it writes an answer; FAKE_HOLD, a
file for whose end an answer waits after its first word; FAKE_DIE, a file that it removes at the
next question, and then ends without an answer; FAKE_DEVICES, what --list-devices says; FAKE_END,
how it ends at once.
"""

from __future__ import annotations

import json
import os
import signal
import socketserver
import sys
import time
from http.server import BaseHTTPRequestHandler

BEGAN_S = time.monotonic()
ENV = os.environ


def value(*names: str) -> str:
    """Return what follows a flag on the command line."""
    for name in names:
        if name in sys.argv:
            return sys.argv[sys.argv.index(name) + 1]
    return ""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "here"  # a unix socket has no host

    def do_GET(self) -> None:
        if os.path.exists(ENV.get("FAKE_DIE", "/absent")):
            os.unlink(ENV["FAKE_DIE"])
            os._exit(1)
        if time.monotonic() - BEGAN_S < float(ENV.get("FAKE_LOAD_S", "0")):
            return self.answer(503, {"error": {"message": "Loading model", "code": 503}})
        tables: dict[str, object] = {
            "/health": {"status": "ok"},
            "/props": {
                "is_sleeping": False,
                "pid": os.getpid(),
                "default_generation_settings": {"n_ctx": int(value("--ctx-size", "-c") or 4096)},
                "total_slots": 1,
                "model_path": value("--model", "-m"),
                "build_info": "b9999-fake",
            },
            "/slots": [{"id": 0, "is_processing": os.path.exists(ENV.get("FAKE_BUSY", "/absent"))}],
            "/v1/models": {"data": [{"id": value("--alias", "-a") or "x"}]},
        }
        return self.answer(200 if self.path in tables else 404, tables.get(self.path, {}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions" or not body.get("stream"):
            return self.answer(404, {})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for word, finish in (("So", None), (" be it.", None), ("", "stop")):
            choice = {"index": 0, "delta": {"content": word}, "finish_reason": finish}
            row = json.dumps({"model": "x", "choices": [choice]})
            self.wfile.write(f"data: {row}\n\n".encode())
            self.wfile.flush()
            while os.path.exists(ENV.get("FAKE_HOLD", "/absent")):
                time.sleep(0.01)
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True
        return None

    def answer(self, status: int, table: object) -> None:
        body = json.dumps(table).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Unix(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def main() -> None:
    if "--version" in sys.argv:
        sys.stderr.write(f"version: {ENV.get('FAKE_VERSION', '9999')} (abcdef0)\nbuilt with cc\n")
        return
    if "--list-devices" in sys.argv:
        sys.stdout.write(ENV.get("FAKE_DEVICES", "Available devices:\n"))
        return
    with open(ENV["FAKE_SAID"], "a", encoding="utf-8") as file:
        file.write(json.dumps(sys.argv) + "\n")
    if ENV.get("FAKE_END"):
        sys.exit(f"error: {ENV['FAKE_END']}")
    tokens = int(value("--ctx-size", "-c") or 0)
    if tokens > int(ENV.get("FAKE_MOST_TOKENS", "10000000")):
        sys.stderr.write("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 12000.00 MiB on ")
        sys.exit("device 0: cudaMalloc failed: out of memory")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    Unix(value("--host"), Handler).serve_forever()


main()
