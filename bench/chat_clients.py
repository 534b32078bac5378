"""The two clients of `bench chat`: the chat slot of lcursor, and a minimal HTTP client.

Both record the times of an answer (`time.perf_counter`). The bare client uses the standard library
only, so that it shares no code with the slot.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcursor.chat.service import ChatService
from lcursor.config import ChatConfig
from lcursor.errors import LcursorError
from lcursor.http import endpoint
from lcursor.llm.records import ServedModel

MAX_ANSWER_S = 300.0
"""Long prompts are evaluated slowly without a GPU."""
Message = tuple[float, str, Mapping[str, Any]]
"""When it came, its name and its parameters."""


@dataclass(slots=True)
class Answer:
    """One answer, with its times and token counts.

    Attributes:
        first_s: when the first text came.
        last_s: when the last text came.
        prompt_ms: prompt time reported by the server.
        number: number of the answer's message.
    """

    sent_s: float
    first_s: float = 0.0
    last_s: float = 0.0
    text: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    prompt_ms: float = 0.0
    number: int = 0
    reason: str = ""

    @property
    def first_ms(self) -> float:
        """From the question to the first text."""
        return (self.first_s - self.sent_s) * 1000

    @property
    def first_share(self) -> float:
        """`first_ms` divided by the server's prompt time."""
        return self.first_ms / max(self.prompt_ms, 1e-3)

    @property
    def tokens_per_s(self) -> float:
        """The speed of the answer after its first token."""
        return (self.answer_tokens - 1) / max(self.last_s - self.first_s, 1e-6)

    def add(self, text: str, at_s: float) -> None:
        """Add text that came at a time."""
        self.first_s, self.last_s = self.first_s or at_s, at_s
        self.text += text


class Chat:
    """A `ChatService`, used as an editor uses it.

    Args:
        config: the settings of the chat.
        folder: for chats and the server.
        idle_s: idle time after which the server saves its cache.
    """

    def __init__(self, config: ChatConfig, folder: Path, idle_s: float = 3600.0) -> None:
        self._messages: list[Message] = []
        self._changed = threading.Condition()
        self._number = 0
        self.slot = ChatService(
            config, self._receive, folder=folder / "chats", server=folder / "server", idle_s=idle_s
        )

    def __enter__(self) -> Chat:
        return self

    def __exit__(self, *_: object) -> None:
        self.slot.close()

    def _receive(self, method: str, params: Mapping[str, Any]) -> None:
        now_s = time.perf_counter()
        with self._changed:
            self._messages.append((now_s, method, params))
            self._changed.notify_all()

    def _next(self) -> int:
        """Return the id of a new question, and forget earlier messages."""
        self._number += 1
        with self._changed:
            self._messages.clear()
        return self._number

    def wait(self, number: int, method: str) -> Message:
        """Wait for a message about a question.

        Raises:
            LcursorError: an error came instead, or nothing came.
        """

        def found() -> Message | None:
            for message in self._messages:
                if message[2].get("id") == number and message[1] in (method, "error"):
                    return message
            return None

        with self._changed:
            message = self._changed.wait_for(found, MAX_ANSWER_S)
        if not message:
            raise LcursorError(
                f"no message of the chat for {MAX_ANSWER_S:.0f} s", "Run it on a quiet machine"
            )
        if message[1] == "error":
            raise LcursorError(str(message[2]["message"]), str(message[2]["hint"]))
        return message

    def open(self, path: Path, chat: str = "") -> str:
        """Open a chat, or start a new one; return its key."""
        number = self._next()
        self.slot.open({"id": number, "chat": chat, "path": str(path)})
        return str(self.wait(number, "chat.opened")[2]["chat"])

    def send(
        self, chat: str, text: str, path: Path, *, after: int = 0, attachments: Sequence[Any] = ()
    ) -> tuple[int, float]:
        """Ask; return the id of the question and its time."""
        number, sent_s = self._next(), time.perf_counter()
        self.slot.send(
            {
                "id": number,
                "chat": chat,
                "after": after,
                "text": text,
                "path": str(path),
                "attachments": list(attachments),
                "dropped": [],
                "model": "",
                "again": 0,
                "call": "",
                "choice": "",
            }
        )
        return number, sent_s

    def ask(self, chat: str, text: str, path: Path, **more: Any) -> Answer:
        """Ask, and wait for the whole answer; see `send`."""
        return self.end(*self.send(chat, text, path, **more))

    def end(self, number: int, sent_s: float) -> Answer:
        """Wait for the end of an answer."""
        done = self.wait(number, "chat.done")[2]
        names = ("prompt_tokens", "cached_tokens", "answer_tokens", "prompt_ms", "reason")
        answer = Answer(sent_s, **{name: done[name] for name in names})
        with self._changed:
            messages = [each for each in self._messages if each[2].get("id") == number]
        for at_s, method, params in messages:
            if method == "chat.delta":
                answer.add(params["text"], at_s)
            elif method == "chat.started":
                answer.number = params["answer"]
        return answer


class _Unix(http.client.HTTPConnection):
    """A connection through a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=MAX_ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Bare:
    """A client that asks a server and reads its answer line by line.

    Args:
        target: the server.
    """

    def __init__(self, target: ServedModel) -> None:
        path = endpoint.socket_path(target.url)
        self._http = (
            _Unix(path)
            if path
            else http.client.HTTPConnection(
                target.url.removeprefix("http://"), timeout=MAX_ANSWER_S
            )
        )
        self._headers = {"Content-Type": "application/json"}
        if target.key:
            self._headers["Authorization"] = f"Bearer {target.key}"

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def _send(self, path: str, body: Mapping[str, Any] | None) -> http.client.HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        self._http.close()  # the server may have done so
        self._http.request("GET" if body is None else "POST", path, data, self._headers)
        return self._http.getresponse()

    def call(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send another request to the server."""
        return json.loads(self._send(path, body).read() or b"null")

    def ask(self, messages: Sequence[Mapping[str, str]], max_tokens: int) -> Answer:
        """Ask, and wait for the whole answer."""
        answer = Answer(time.perf_counter())
        options = {"stream": True, "temperature": 0, "max_tokens": max_tokens}
        reply = self._send("/v1/chat/completions", {"messages": list(messages), **options})
        for row in _rows(reply):
            choice = (row.get("choices") or [{}])[0]
            text = (choice.get("delta") or {}).get("content")
            if text:
                answer.add(text, time.perf_counter())
            if timings := row.get("timings"):
                answer.cached_tokens = timings["cache_n"]
                answer.prompt_tokens = timings["prompt_n"] + timings["cache_n"]
                answer.answer_tokens = timings["predicted_n"]
                answer.prompt_ms = timings["prompt_ms"]
        return answer


def _rows(reply: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Yield the objects of a stream."""
    if reply.status != 200:
        raise LcursorError(f"the bare server says {reply.status}", "Look at its log")
    for line in reply:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])
