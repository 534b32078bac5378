"""A child Neovim and its msgpack-RPC channel, and requests to others at their sockets.

`Client` owns the process and one reader thread. Every request has a time limit. pynvim, which the
host uses, has neither time limits nor a stream of redraw events.
"""

from __future__ import annotations

import itertools
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any

import msgpack

ANSWER_S = 2.0
"""Time limit of a request to a Neovim at a socket."""
Notify = Callable[[str, list[Any]], None]


class NeovimError(Exception):
    """Neovim answered a request with an error, or has ended."""


class Client:
    """One child Neovim.

    Args:
        argv: command line; must contain `--embed`.
        env: the whole environment of the child.
        stderr: file for Neovim's stderr.
        on_notify: called for each notification, on the reader thread.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stderr: Path,
        on_notify: Notify,
    ) -> None:
        with stderr.open("wb") as sink:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                env=dict(env),
                cwd=cwd,
                bufsize=0,
            )
        self._on_notify = on_notify
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="neovim-reader", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    def request(self, method: str, *args: object, timeout_s: float = 20) -> Any:
        """Call an API function and wait for its result.

        Raises:
            NeovimError: the call failed or timed out, or Neovim has ended.
        """
        future: Future[Any] = Future()
        message = next(self._ids)
        with self._lock:
            self._waiting[message] = future
            self._send([0, message, method, list(args)])
        try:
            return future.result(timeout_s)
        except FutureTimeout:
            raise NeovimError(f"{method}: no answer in {timeout_s} s") from None

    def notify(self, method: str, *args: object) -> None:
        """Call an API function without waiting for its result."""
        with self._lock:
            self._send([2, method, list(args)])

    def close(self, timeout_s: float = 5) -> int:
        """Close the channel, wait until the child ends, return its exit status."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            self._reader.join(1)
            if self._process.stdout:
                self._process.stdout.close()

    def _send(self, message: list[Any]) -> None:
        stdin = self._process.stdin
        try:
            data = msgpack.packb(message, unicode_errors="surrogateescape")
            if stdin is None or stdin.write(data) is None:
                raise NeovimError("Neovim accepts no more input")
        except (OSError, ValueError) as error:
            raise NeovimError(f"Neovim is gone: {error}") from error

    def _read(self) -> None:
        unpacker = msgpack.Unpacker(
            strict_map_key=False, unicode_errors="surrogateescape", max_buffer_size=0
        )
        stdout = self._process.stdout
        while stdout is not None:
            data = stdout.read(1 << 16)
            if not data:
                break
            unpacker.feed(data)
            for message in unpacker:
                if message[0] == 1:
                    self._answer(*message[1:])
                elif message[0] == 2:
                    self._on_notify(message[1], message[2])
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_exception(NeovimError("Neovim is gone"))

    def _answer(self, message: int, error: Any, result: Any) -> None:
        with self._lock:
            future = self._waiting.pop(message, None)
        if future is None:
            return
        if error is not None:
            text = error[1] if isinstance(error, list) else error
            future.set_exception(NeovimError(str(text)))
        else:
            future.set_result(result)


def request(address: str, method: str, *arguments: object) -> Any:
    """Call an API function of the Neovim at a socket.

    Raises:
        OSError: nothing answers there in time.
        ValueError: the function failed, or the answer is not of the protocol.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_S)
        connection.connect(address)
        connection.sendall(msgpack.packb([0, 1, method, list(arguments)]))
        unpacker = msgpack.Unpacker(strict_map_key=False, unicode_errors="surrogateescape")
        while data := connection.recv(1 << 16):
            unpacker.feed(data)
            for message in unpacker:
                if isinstance(message, list) and message[:2] == [1, 1]:
                    if message[2]:
                        raise ValueError(message[2][1])
                    return message[3]
    raise ConnectionResetError(f"{address} ended the connection")
