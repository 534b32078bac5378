"""A host process without a model: it does what a test tells it over a socket.

Speaks msgpack-RPC with Neovim on stdin and stdout, as the real host does, and lines of JSON with
`control.FakeHost` on the Unix socket named by its one argument.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from typing import Any

import msgpack

RECEIVE = 'require("lcursor.rpc").receive(...)'


def main() -> None:
    """Pass messages on in both directions until either end closes."""
    wire = socket.socket(socket.AF_UNIX)
    wire.connect(sys.argv[1])
    channel: list[int] = []
    known = threading.Event()
    lock = threading.Lock()

    def write(data: bytes) -> None:
        with lock:
            os.write(1, data)

    def pack(message: list[Any]) -> bytes:
        packed: bytes = msgpack.packb(message, unicode_errors="surrogateescape")
        return packed

    def tell(**event: Any) -> None:
        wire.sendall(json.dumps(event).encode() + b"\n")

    def obey() -> None:
        for line in wire.makefile("rb"):
            order = json.loads(line)
            known.wait()
            if order["do"] == "send":
                args = [channel[0], order["method"], order["params"]]
                write(pack([2, "nvim_exec_lua", [RECEIVE, args]]))
            elif order["do"] == "lua":
                write(pack([2, "nvim_exec_lua", [order["code"], [channel[0], *order["args"]]]]))
            elif order["do"] == "raw":
                write(bytes.fromhex(order["hex"]))
            elif order["do"] == "stderr":
                sys.stderr.write(order["text"])
                sys.stderr.flush()
            elif order["do"] == "exit":
                os._exit(order["code"])

    tell(event="start", pid=os.getpid())
    threading.Thread(target=obey, daemon=True).start()
    write(pack([0, 1, "nvim_get_api_info", []]))
    unpacker = msgpack.Unpacker(strict_map_key=False, unicode_errors="surrogateescape")
    while data := os.read(0, 1 << 16):
        unpacker.feed(data)
        for message in unpacker:
            if message[0] == 1:
                channel.append(message[3][0])
                known.set()
            else:
                params = message[2][0] if message[2] else {}
                if message[1] == "nvim_error_event":  # a Lua handler raised an error
                    params = {"error": message[2][1]}
                tell(event="message", method=message[1], params=params)


if __name__ == "__main__":
    main()
