"""A host process without a model: it does what a test tells it over a socket.

Speaks msgpack-RPC with Neovim on stdin and stdout, as the real host does, and msgpack with
`control.FakeHost` on the Unix socket named by its first argument. The second is the folder of the
package msgpack: tests start more than a thousand of these, so Python runs without site packages,
and `socket`, which imports much, is not imported.
"""

from __future__ import annotations

import _socket
import os
import sys
import threading

sys.path.append(sys.argv[2])

import msgpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RECEIVE = 'require("lcursor.host.rpc").receive(...)'


def main() -> None:
    """Pass messages on in both directions until either end closes."""
    wire = _socket.socket(_socket.AF_UNIX)
    wire.connect(sys.argv[1])
    channel: list[int] = []
    known = threading.Event()
    lock = threading.Lock()

    def write(data: bytes) -> None:
        with lock:
            os.write(1, data)

    def pack(message: object) -> bytes:
        packed: bytes = msgpack.packb(message, unicode_errors="surrogateescape")
        return packed

    def unpacker() -> Any:
        return msgpack.Unpacker(strict_map_key=False, unicode_errors="surrogateescape")

    def tell(**event: Any) -> None:
        wire.sendall(pack(event))

    def obey(order: dict[str, Any]) -> None:
        if order["do"] == "send":
            args = [channel[0], order["method"], order["params"]]
            write(pack([2, "nvim_exec_lua", [RECEIVE, args]]))
        elif order["do"] == "lua":
            write(pack([2, "nvim_exec_lua", [order["code"], [channel[0], *order["args"]]]]))
        elif order["do"] == "raw":
            write(order["data"])
        elif order["do"] == "stderr":
            sys.stderr.write(order["text"])
            sys.stderr.flush()
        elif order["do"] == "exit":
            os._exit(order["code"])

    def read_orders() -> None:
        orders = unpacker()
        while data := wire.recv(1 << 16):
            orders.feed(data)
            for order in orders:
                known.wait()
                obey(order)

    tell(event="start", pid=os.getpid())
    threading.Thread(target=read_orders, daemon=True).start()
    write(pack([0, 1, "nvim_get_api_info", []]))
    messages = unpacker()
    while data := os.read(0, 1 << 16):
        messages.feed(data)
        for message in messages:
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
