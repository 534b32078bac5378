"""The host's side of the helper process, which starts with the first request. Thread: any."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from lcursor.errors import Cancelled, DependencyMissing, McpFailed
from lcursor.installer.process import ROOT
from lcursor.process.run import Cancel
from lcursor.storage import json_text

PACKAGES: Final = str(Path(__file__).resolve().parents[3])
COMMAND: Final = (
    sys.executable,
    "-I",
    "-c",
    f"import sys; sys.path.insert(0, {PACKAGES!r}); "
    "from lcursor.mcp.client.helper import main; main()",
)
"""Command that starts a helper, isolated from the user's modules."""
START_S: Final = 20.0
GRACE_S: Final = 10.0
"""Time after its own limit within which the helper must answer."""
END_S: Final = 6.0
POLL_S: Final = 0.05
Event = Mapping[str, Any]


class HelperProcess:
    """A helper, running or not.

    Args:
        on_event: called on the reader's thread: the list of tools of a server has changed, or it
            asks a question.
    """

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._on_event = on_event
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: dict[int, dict[str, Any] | None] = {}
        """By request that waits; None until it is answered."""
        self._answered = threading.Condition(self._lock)
        self._last = 0
        self._open_questions = 0
        self._answered_s = 0.0
        """When the user answered the last question."""
        self._is_closed = False
        self.starts = 0
        """How often a process was started."""

    def request(self, op: str, max_s: float, cancel: Cancel = lambda: False, **fields: Any) -> Any:
        """Return the answer to a request. Blocks.

        Raises:
            McpFailed: the server or the helper failed.
            DependencyMissing: the package of the protocol is not installed.
            Cancelled: `cancel` returned true.
        """
        self._start()
        with self._lock:
            self._last += 1
            number = self._last
            self._answers[number] = None
        try:
            self._send({"id": number, "op": op, "max_s": max_s, **fields})
            answer = self._wait(number, max_s, cancel)
        finally:
            with self._lock:
                del self._answers[number]
        if "error" in answer:
            raise McpFailed(str(answer["error"]))
        return answer["result"]

    def answer(self, question: int, action: str, content: Mapping[str, Any] | None) -> None:
        """Answer a question of a server."""
        with self._lock:
            self._open_questions -= 1
            self._answered_s = time.monotonic()
        with contextlib.suppress(McpFailed):  # it has ended
            self._send({"op": "answer", "question": question, "action": action, "content": content})

    def is_running(self) -> bool:
        """Return whether the process runs."""
        process = self._process
        return process is not None and process.poll() is None

    def close(self) -> None:
        """End the process, and with it all servers. Blocks."""
        with self._lock:
            self._is_closed = True
            process = self._process
        if process is not None:
            _end(process)

    def _start(self) -> None:
        with self._lock:
            if self._is_closed:
                raise McpFailed("the servers are closed, because the settings have changed")
            if self._process is not None and self._process.poll() is None:
                return
            if importlib.util.find_spec("mcp") is None:
                raise DependencyMissing(
                    "the package for servers of tools is not installed",
                    f"Run {sys.executable} {ROOT}/lcursor/install.py --venv {sys.prefix} "
                    "--with mcp",
                )
            try:
                self._process = process = subprocess.Popen(
                    COMMAND,
                    cwd="/",
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                raise McpFailed(f"the helper cannot be started: {error}") from error
            self.starts += 1
            self._open_questions = 0
            threading.Thread(
                target=self._read, args=(process,), name="lcursor-mcp", daemon=True
            ).start()

    def _send(self, row: Mapping[str, Any]) -> None:
        data = json.dumps(row).encode() + b"\n"
        process = self._process
        try:
            if process is None or process.stdin is None:
                raise McpFailed("the helper does not run")
            process.stdin.write(data)
            process.stdin.flush()
        except (OSError, ValueError) as error:
            raise McpFailed("the helper has ended") from error

    def _wait(self, number: int, max_s: float, cancel: Cancel) -> Mapping[str, Any]:
        """Return the answer to a request; it also waits for the user's answer to a question."""
        begun_s, most_s = time.monotonic(), START_S + max_s + GRACE_S
        while True:
            with self._answered:
                if (answer := self._answers[number]) is not None:
                    return answer
                self._answered.wait(POLL_S)
                if self._answers[number] is not None:
                    continue
                waited_s = time.monotonic() - max(begun_s, self._answered_s)
                is_late = waited_s > most_s and not self._open_questions
                process = self._process
            if cancel():
                with contextlib.suppress(McpFailed):
                    self._send({"op": "cancel", "id": number})
                raise Cancelled("the call was stopped")
            if is_late and process is not None:
                process.kill()
                raise McpFailed("the helper did not answer, and was ended")

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        """Distribute what a process prints, until it ends."""
        assert process.stdout
        for line in process.stdout:
            with contextlib.suppress(ValueError):
                self._receive(json_text.parse(line))
        process.stdout.close()
        process.wait()
        with self._answered:
            for number, answer in self._answers.items():
                if answer is None and self._process is process:
                    self._answers[number] = {"error": "the helper has ended"}
            self._answered.notify_all()

    def _receive(self, row: Any) -> None:
        if "event" in row:
            if row["event"] == "question":
                with self._lock:
                    self._open_questions += 1
            self._on_event(row)
            return
        with self._answered:
            if row["id"] in self._answers:
                self._answers[row["id"]] = row
                self._answered.notify_all()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the input of a process, which ends it; kill it if it does not."""
    with contextlib.suppress(OSError):
        if process.stdin:
            process.stdin.close()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
