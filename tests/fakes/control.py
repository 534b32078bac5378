"""The test's side of the fake host: records all messages from Neovim and sends the answers.

Owns the socket to which the fake processes (`host.py`) connect, one connection per process.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import msgpack

from lcursor.errors import MessageInvalid
from lcursor.protocol import PROTOCOL, TO_LUA, check

SCRIPT = Path(__file__).with_name("host.py")
ECHO = "echo"
"""A message of the test harness, which no real host knows."""
STATS = {
    "prompt_tokens": 100,
    "reused_tokens": 90,
    "decoded_tokens": 10,
    "passes": 1,
    "generated_tokens": 5,
    "queue_ms": 0.1,
    "prompt_ms": 20.0,
    "first_ms": 30.0,
    "total_ms": 50.0,
    "confidence": 0.9,
    "threshold": 0.4,
    "source": "model",
    "window": "full",
}

Params = dict[str, Any]


class FakeHost:
    """All host processes that the Neovims of one test start.

    Attributes:
        is_polite: answer `hello` at once, as a host whose model is loaded.
        protocol: the number that the answer to `hello` tells.
        reply: when set, each request is answered at once with what it returns.
        stats: what of the cost of each answer differs from `STATS`.
        log: all messages from Neovim, as (process, method, params).
        pids: the processes, oldest first.
        invalid: what is wrong with messages that a real host would have refused, among them
            Neovim's own about an error in Lua. Leaving the context fails if there were any.
    """

    def __init__(self) -> None:
        self.is_polite = True
        self.protocol = PROTOCOL
        self.reply: Callable[[Params], str] | None = None
        self.stats: Params = {}
        self.log: list[tuple[int, str, Params]] = []
        self.pids: list[int] = []
        self.invalid: list[str] = []
        self._ends: dict[int, socket.socket] = {}
        self._changed = threading.Condition()
        self._echoes = itertools.count(1)
        self._taken = 0
        self._folder = Path(tempfile.mkdtemp(prefix="lcf"))
        self.path = self._folder / "s"
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self.path))
        self._server.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> FakeHost:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown(socket.SHUT_RDWR)  # closing it alone wakes no thread in accept()
        self._server.close()
        for end in self._ends.values():
            end.close()
        shutil.rmtree(self._folder)
        assert not self.invalid, f"Neovim sent messages that the host refuses: {self.invalid}"

    def init(self) -> str:
        """Return Lua for an init.lua that replaces the real host by this one."""
        packages = str(Path(msgpack.__file__).parent.parent)
        argv = json.dumps([sys.executable, "-ES", str(SCRIPT), str(self.path), packages])[1:-1]
        return f"""
        require("lcursor.host.environment").python = function()
          return {json.dumps(sys.executable)}
        end
        require("lcursor.host").argv = function() return {{ {argv} }} end
        """

    def wait(self, predicate: Callable[[], Any], timeout_s: float = 10) -> Any:
        """Wait until `predicate` is true and return its value.

        Raises:
            TimeoutError: it never was; the message holds what came from Neovim.
        """
        with self._changed:
            value = self._changed.wait_for(predicate, timeout_s)
        if not value:
            names = [method for _, method, _ in self.log]
            raise TimeoutError(f"not true in {timeout_s} s; Neovim said {names}")
        return value

    def wait_count(self, count: int) -> None:
        """Wait until so many processes were started and have received `hello`."""
        self.wait(lambda: len(self.pids) == len(self.messages("hello")) == count)

    def messages(self, method: str) -> list[Params]:
        """Return the parameters of all messages of a name so far."""
        return [params for _, name, params in self.log if name == method]

    @property
    def requests(self) -> list[Params]:
        """All requests so far."""
        return self.messages("fim.request")

    def request(self, timeout_s: float = 10) -> Params:
        """Wait for the next request that this method has not returned yet."""
        self.wait(lambda: len(self.requests) > self._taken, timeout_s)
        self._taken += 1
        return self.requests[self._taken - 1]

    def skip(self) -> None:
        """Mark all requests so far as returned."""
        self._taken = len(self.requests)

    @property
    def cancelled(self) -> list[int]:
        """Ids of the requests that were cancelled."""
        return [params["id"] for params in self.messages("fim.cancel")]

    def send(self, method: str, params: Params, pid: int | None = None) -> None:
        """Send a valid message to Neovim, from the newest process unless told otherwise.

        Raises:
            MessageInvalid: the real host would never send this; see `send_unchecked`.
        """
        self.send_unchecked(method, check(method, params, TO_LUA), pid)

    def send_unchecked(self, method: str, params: object, pid: int | None = None) -> None:
        """Send any message to Neovim, also an invalid one."""
        self._order({"do": "send", "method": method, "params": params}, pid)

    def ready(self, pid: int | None = None) -> None:
        """Answer `hello` and report a loaded model."""
        self.greet(pid)
        self.state("ready", pid=pid)

    def greet(self, pid: int | None = None) -> None:
        """Answer `hello` only."""
        pid = pid or self.pids[-1]
        answer = {"protocol": self.protocol, "version": "fake", "python": "3", "pid": pid}
        self.send("ready", answer, pid)

    def state(
        self, state: str, detail: str = "", progress: float = -1, pid: int | None = None
    ) -> None:
        """Report the state of the host."""
        self.send("state", {"state": state, "detail": detail, "progress": progress}, pid)

    def partial(self, request: Params, text: str) -> None:
        """Stream: all text of a request so far."""
        self.send("fim.partial", {**self._of(request), "text": text}, request["pid"])

    def done(self, request: Params, text: str, reason: str = "end", replaces: int = 0) -> None:
        """Finish a request."""
        said = {"text": text, "replaces": replaces}
        answer = {**self._of(request), **said, "reason": reason, "stats": {**STATS, **self.stats}}
        self.send("fim.done", answer, request["pid"])

    def improved(
        self, request: Params, text: str, replaces: int = 0, reason: str = "end", **stats: Any
    ) -> None:
        """Send a better answer to a request that was answered.

        Args:
            stats: what of its cost differs from `STATS`.
        """
        answer = {**self._of(request), "text": text, "replaces": replaces, "reason": reason}
        self.send("fim.improved", {**answer, "stats": {**STATS, **stats}}, request["pid"])

    def alternatives(self, request: Params, texts: list[str]) -> None:
        """Send alternatives to the answer of a request."""
        answer = {"id": request["id"], "texts": texts}
        self.send("fim.alternatives", answer, request["pid"])

    def raw(self, data: bytes) -> None:
        """Write bytes into Neovim's channel."""
        self._order({"do": "raw", "data": data})

    def stderr(self, text: str) -> None:
        """Write to the process's stderr."""
        self._order({"do": "stderr", "text": text})

    def exit(self, code: int) -> None:
        """Let the newest process end by itself."""
        self._order({"do": "exit", "code": code})

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the newest process with a signal."""
        os.kill(self.pids[-1], number)

    def sync(self) -> None:
        """Wait until Neovim has handled all messages and its own messages have arrived."""
        number = next(self._echoes)
        code = f'local chan, n = ... vim.rpcnotify(chan, "{ECHO}", {{ n = n }})'
        self._order({"do": "lua", "code": code, "args": [number]})
        self.wait(lambda: {"n": number} in self.messages(ECHO))

    def _of(self, request: Params) -> Params:
        return {"id": request["id"], "buf": request["buf"], "tick": request["tick"]}

    def _order(self, order: Params, pid: int | None = None) -> None:
        end = self._ends[pid or self.pids[-1]]
        end.sendall(msgpack.packb(order, unicode_errors="surrogateescape"))

    def _accept(self) -> None:
        while True:
            try:
                end, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=(end,), daemon=True).start()

    def _read(self, end: socket.socket) -> None:
        pid = 0
        events = msgpack.Unpacker(strict_map_key=False, unicode_errors="surrogateescape")
        with contextlib.suppress(OSError), end:
            while data := end.recv(1 << 16):
                events.feed(data)
                for event in events:
                    with self._changed:
                        if event["event"] == "start":
                            pid = event["pid"]
                            self._ends[pid] = end
                            self.pids.append(pid)
                        else:
                            self._hear(pid, event["method"], event["params"])
                        self._changed.notify_all()

    def _hear(self, pid: int, method: str, params: Params) -> None:
        if method != ECHO:
            try:
                check(method, params)
            except MessageInvalid as error:
                self.invalid.append(f"{error}: {params}")
        if method == "fim.request":
            params = {**params, "pid": pid}
        self.log.append((pid, method, params))
        if method == "hello" and self.is_polite:
            self.ready(pid)
        elif method == "fim.request" and self.reply:
            self.done(params, self.reply(params))
