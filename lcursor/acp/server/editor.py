"""The other editor: requests and messages in both directions, as lines of JSON (JSON-RPC 2.0)."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

from lcursor.errors import AgentFailed

UNKNOWN_METHOD: Final = -32601
INVALID: Final = -32602
FAILED: Final = -32603
NOT_JSON: Final = -32700
POLL_S: Final = 0.1


class Problem(Exception):
    """A request of the editor cannot be carried out.

    Args:
        code: of JSON-RPC.
    """

    def __init__(self, message: str, code: int = INVALID) -> None:
        super().__init__(message)
        self.code = code


class OtherEditor:
    """The editor at the other end of two streams. `ask` on any thread, `requests` on one."""

    def __init__(self, received: BinaryIO, sent: BinaryIO) -> None:
        self._received, self._sent = received, sent
        self._writing, self._lock = threading.Lock(), threading.Lock()
        self._answers: dict[int, queue.SimpleQueue[Any]] = {}
        self._last_id = 0
        self._has_ended = False

    def requests(self) -> Iterator[Mapping[str, Any]]:
        """Yield requests and notifications until the editor ends; answers go to `ask`."""
        for line in self._received:
            try:
                row = json.loads(line)
            except ValueError:
                self._write({"id": None, "error": {"code": NOT_JSON, "message": "not JSON"}})
                continue
            if not isinstance(row, dict):
                continue
            if isinstance(row.get("method"), str):
                yield row
            else:
                self._deliver(row.get("id"), row)
        with self._lock:
            self._has_ended = True
            waiting = list(self._answers)
        for number in waiting:
            self._deliver(number, {"error": {"message": "the editor has ended"}})

    def ask(
        self, method: str, params: Mapping[str, Any], stopped: Callable[[], bool] = lambda: False
    ) -> Any:
        """Send a request, and return its result, {} for none; None if it was stopped meanwhile.

        Raises:
            AgentFailed: the answer is an error, or the editor has ended.
        """
        with self._lock:
            if self._has_ended:
                raise AgentFailed("the editor has ended")
            self._last_id += 1
            number = self._last_id
            answers = self._answers[number] = queue.SimpleQueue()
        try:
            self._write({"id": number, "method": method, "params": params})
            while not stopped():
                try:
                    row = answers.get(timeout=POLL_S)
                except queue.Empty:
                    continue
                if "error" in row:
                    error = row["error"]
                    text = error.get("message") if isinstance(error, dict) else error
                    raise AgentFailed(f"the editor answers {method} with an error: {text}")
                return row.get("result") or {}
        finally:
            with self._lock:
                del self._answers[number]
        return None

    def permission(
        self,
        session: str,
        call: Mapping[str, Any],
        options: Sequence[Mapping[str, str]],
        stopped: Callable[[], bool],
    ) -> str:
        """Ask the user about a tool call; return the id of the option, "" for none.

        Raises:
            AgentFailed: the editor has ended, or cannot ask.
        """
        params = {"sessionId": session, "toolCall": call, "options": list(options)}
        found = self.ask("session/request_permission", params, stopped)
        outcome = found.get("outcome") if isinstance(found, dict) else None
        if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
            return ""
        return str(outcome.get("optionId"))

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        self._write({"method": method, "params": params})

    def answer(self, number: Any, result: Mapping[str, Any]) -> None:
        """Answer a request of the editor."""
        self._write({"id": number, "result": result})

    def fail(self, number: Any, message: str, code: int = FAILED) -> None:
        """Answer a request of the editor with an error."""
        self._write({"id": number, "error": {"code": code, "message": message}})

    def _deliver(self, number: Any, row: Mapping[str, Any]) -> None:
        with self._lock:
            answers = self._answers.get(number) if isinstance(number, int) else None
        if answers is not None:
            answers.put(row)

    def _write(self, row: Mapping[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **row}).encode() + b"\n"
        with self._writing:
            try:
                self._sent.write(line)
                self._sent.flush()
            except (OSError, ValueError):  # it has ended; `requests` notices
                return
