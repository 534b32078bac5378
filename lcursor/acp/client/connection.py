"""A child process that speaks JSON-RPC in lines of JSON over its standard streams.

    with Connection(words, env) as connection:
        found = connection.call("initialize", {...}, handle, max_s=30)

Threads read its output into a queue of bounded length, so that a child that floods is slowed down.
All else happens on the thread of the run: `call` handles what comes until the answer. Requests in
both directions have ids of their own. What is no JSON object is skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lcursor.errors import AgentEnded, AgentFailed, AgentRequestFailed
from lcursor.process.supervise import send_signal

MAX_LINE_BYTES: Final = 64 << 20
"""Longer lines are skipped; answers of 1 MB occur."""
BLOCK_BYTES: Final = 1 << 16
MAX_QUEUED: Final = 1000
TAIL_LINES: Final = 12
TAIL_CHARS: Final = 300
"""Of a line of standard error in a message."""
TICK_S: Final = 0.05
TERM_S: Final = 2.0
UNKNOWN_METHOD: Final = -32601
FAILED: Final = -32603


@dataclass(frozen=True, slots=True)
class Message:
    """A notification of the agent, or a request if it has an id."""

    method: str
    params: Mapping[str, Any]
    id: int | str | None = None

    @property
    def is_request(self) -> bool:
        """Whether it waits for an answer."""
        return self.id is not None


Handle = Callable[[Message | None], None]
"""Called with each message, and with None every `TICK_S` without one."""


class Connection:
    """A child process. Thread: that of the run, except for `kill`.

    Args:
        words: the program and its arguments.
    """

    def __init__(self, words: Sequence[str], env: Mapping[str, str]) -> None:
        self._words, self._env = list(words), dict(env)
        self._received: queue.Queue[Mapping[str, Any] | None] = queue.Queue(MAX_QUEUED)
        """Objects in their order; None at the end."""
        self._errors: deque[str] = deque(maxlen=TAIL_LINES)
        self._threads = list[threading.Thread]()
        self._last_id = 0
        self._has_ended = False

    def __enter__(self) -> Connection:
        try:
            self._process = subprocess.Popen(
                self._words,
                env=self._env,
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise AgentFailed(f"{self._words[0]} cannot be started: {error.strerror}") from error
        for work in (self._read, self._read_errors):
            thread = threading.Thread(target=work, name="lcursor-acp", daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self.close(0.0)

    def call(self, method: str, params: Mapping[str, Any], handle: Handle, *, max_s: float) -> Any:
        """Send a request and return its result; handle what comes until then.

        Raises:
            AgentRequestFailed: the answer is an error.
            AgentEnded: the process has ended, or did not answer in time.
        """
        number = self.send(method, params)
        return self.wait(number, method, handle, max_s=max_s)

    def send(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request; return its id, for `wait`.

        Raises:
            AgentEnded: the process has ended.
        """
        self._last_id += 1
        self._write({"id": self._last_id, "method": method, "params": params})
        return self._last_id

    def wait(self, number: int, method: str, handle: Handle, *, max_s: float) -> Any:
        """Wait for the answer to a request, as `call`."""
        end_s = time.monotonic() + max_s
        while True:
            row = self._next()
            if row is None:
                if self._has_ended:
                    raise AgentEnded(self._why_ended())
                if time.monotonic() > end_s:
                    raise AgentEnded(self._with_errors(f"no answer to {method} in {max_s:.0f} s"))
                handle(None)
            elif "method" in row:
                handle(_message(row))
            elif row.get("id") == number:
                if "error" in row:
                    code, text = _error(row["error"])
                    words = f"the agent answers {method} with an error: {text}"
                    raise AgentRequestFailed(words, number=code)
                return row.get("result")

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification.

        Raises:
            AgentEnded: the process has ended.
        """
        self._write({"method": method, "params": params})

    def answer(self, message: Message, result: Mapping[str, Any]) -> None:
        """Answer a request of the agent.

        Raises:
            AgentEnded: the process has ended.
        """
        self._write({"id": message.id, "result": result})

    def reject(self, message: Message, why: str, code: int = UNKNOWN_METHOD) -> None:
        """Answer a request of the agent with an error.

        Raises:
            AgentEnded: the process has ended.
        """
        self._write({"id": message.id, "error": {"code": code, "message": why}})

    def close(self, wait_s: float, handle: Handle = lambda _: None) -> None:
        """End the process and all of its group: close its input, wait, then kill it.

        Args:
            handle: called with what it still sends.
        """
        with contextlib.suppress(OSError):
            assert self._process.stdin
            self._process.stdin.close()
        end_s = time.monotonic() + wait_s
        while not self._has_ended and time.monotonic() < end_s and self._process.poll() is None:
            row = self._next()
            if row is not None and "method" in row:
                handle(_message(row))
        for number, max_s in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, TERM_S)):
            send_signal(self._process.pid, number, is_group=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max_s)
                break
        end_s = time.monotonic() + TERM_S
        while not self._has_ended and time.monotonic() < end_s:
            row = self._next()
            if row is not None and "method" in row:
                handle(_message(row))
        for thread in self._threads:
            thread.join(TERM_S)

    def kill(self) -> None:
        """End the process at once. Thread: any."""
        send_signal(self._process.pid, signal.SIGTERM, is_group=True)

    # Parts of the above.

    def _next(self) -> Mapping[str, Any] | None:
        """Return the next object; None if none came for a moment, or at the end."""
        try:
            row = self._received.get(timeout=0 if self._has_ended else TICK_S)
        except queue.Empty:
            return None
        self._has_ended = self._has_ended or row is None
        return row

    def _write(self, row: Mapping[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **row}).encode() + b"\n"
        try:
            assert self._process.stdin
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise AgentEnded(self._why_ended()) from error

    def _why_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(TERM_S)
        status = self._process.returncode
        return self._with_errors(f"the agent's process has ended with status {status}")

    def _with_errors(self, text: str) -> str:
        return "\n".join([text, *self._errors])

    # Threads of their own.

    def _read(self) -> None:
        """Read lines of standard output."""
        assert self._process.stdout
        fd, parts, size = self._process.stdout.fileno(), list[bytes](), 0
        while block := os.read(fd, BLOCK_BYTES):
            *lines, rest = block.split(b"\n")
            for line in lines:
                if size + len(line) <= MAX_LINE_BYTES:
                    self._receive(b"".join([*parts, line]))
                parts, size = [], 0
            size += len(rest)
            if size <= MAX_LINE_BYTES:
                parts.append(rest)
            else:
                parts = []
        self._process.stdout.close()
        self._received.put(None)

    def _receive(self, line: bytes) -> None:
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict):
            self._received.put(row)
        elif line.strip():
            self._note(line)  # a message of a program that has no standard error

    def _read_errors(self) -> None:
        assert self._process.stderr
        with self._process.stderr as errors:
            while line := errors.readline(BLOCK_BYTES):
                self._note(line)

    def _note(self, line: bytes) -> None:
        if text := line.decode("utf-8", "replace").strip():
            self._errors.append(text[:TAIL_CHARS])


def _message(row: Mapping[str, Any]) -> Message:
    params, number = row.get("params"), row.get("id")
    is_id = isinstance(number, int | str)
    return Message(
        str(row["method"]), params if isinstance(params, dict) else {}, number if is_id else None
    )


def _error(row: object) -> tuple[int, str]:
    """Return code and message of an error, with the details that some agents put into `data`."""
    if not isinstance(row, dict):
        return FAILED, str(row)
    code, data = row.get("code"), row.get("data")
    details = data.get("details") or data.get("message") if isinstance(data, dict) else data
    words = [str(row.get("message") or "unknown"), *([str(details)] if details else [])]
    return code if isinstance(code, int) else FAILED, ": ".join(words)
