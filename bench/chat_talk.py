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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcursor.chat.slot import ChatSlot
from lcursor.config import ChatConfig
from lcursor.errors import LcursorError
from lcursor.http import endpoint
from lcursor.llm.records import Target

MAX_ANSWER_S = 300.0
"""Long prompts are evaluated slowly without a GPU."""


@dataclass(slots=True)
class Heard:
    """One answer, with its times and token counts."""

    sent_s: float
    first_s: float = 0.0
    """When the first text came."""
    last_s: float = 0.0
    """When the last text came."""
    ended_s: float = 0.0
    text: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    prompt_ms: float = 0.0
    """Prompt time reported by the server."""
    number: int = 0
    """Of the answer's message."""
    reason: str = ""
    phases: list[str] = field(default_factory=list)

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


class Talk:
    """A `ChatSlot`, used as an editor uses it.

    Args:
        config: the settings of the chat.
        folder: for chats and the server.
        idle_s: idle time after which the server saves its cache.
    """

    def __init__(self, config: ChatConfig, folder: Path, idle_s: float = 3600.0) -> None:
        self._messages: list[tuple[float, str, Mapping[str, Any]]] = []
        self._changed = threading.Condition()
        self._number = 0
        self.slot = ChatSlot(
            config, self._hear, folder=folder / "chats", server=folder / "server", idle_s=idle_s
        )

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self.slot.close()

    def _hear(self, method: str, params: Mapping[str, Any]) -> None:
        now_s = time.perf_counter()
        with self._changed:
            self._messages.append((now_s, method, params))
            self._changed.notify_all()

    def next(self) -> int:
        """Return the number of a new question, and forget earlier messages."""
        self._number += 1
        with self._changed:
            self._messages.clear()
        return self._number

    def wait(
        self, number: int, *methods: str, within_s: float = MAX_ANSWER_S
    ) -> tuple[float, str, Mapping[str, Any]]:
        """Wait for one of these messages about a question; return its time, name and parameters.

        Raises:
            LcursorError: an error came instead, or nothing came.
        """

        def found() -> tuple[float, str, Mapping[str, Any]] | None:
            for message in self._messages:
                if message[2].get("id") == number and message[1] in (*methods, "error"):
                    return message
            return None

        with self._changed:
            message = self._changed.wait_for(found, within_s)
        if not message:
            raise LcursorError(
                f"no message of the chat for {within_s:.0f} s", "Run it on a quiet machine"
            )
        if message[1] == "error" and "error" not in methods:
            raise LcursorError(str(message[2]["message"]), str(message[2]["hint"]))
        return message

    def open(self, path: Path, chat: str = "") -> Mapping[str, Any]:
        """Open a chat, or start a new one."""
        number = self.next()
        self.slot.open({"id": number, "chat": chat, "path": str(path)})
        return self.wait(number, "chat.opened")[2]

    def send(
        self,
        chat: str,
        text: str,
        path: Path,
        *,
        after: int = 0,
        attachments: Sequence[Any] = (),
    ) -> tuple[int, float]:
        """Ask; return the number of the question and its time."""
        number = self.next()
        sent_s = time.perf_counter()
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
            }
        )
        return number, sent_s

    def ask(self, chat: str, text: str, path: Path, **more: Any) -> Heard:
        """Ask, and wait for the whole answer."""
        number, sent_s = self.send(chat, text, path, **more)
        return self.end(number, sent_s)

    def end(self, number: int, sent_s: float, within_s: float = MAX_ANSWER_S) -> Heard:
        """Wait for the end of an answer."""
        ended_s, _, done = self.wait(number, "chat.done", within_s=within_s)
        heard = Heard(sent_s, ended_s=ended_s, reason=done["reason"])
        heard.prompt_tokens = done["prompt_tokens"]
        heard.cached_tokens = done["cached_tokens"]
        heard.answer_tokens = done["answer_tokens"]
        heard.prompt_ms = done["prompt_ms"]
        with self._changed:
            messages = [each for each in self._messages if each[2].get("id") == number]
        for at_s, method, params in messages:
            if method == "chat.delta":
                heard.first_s, heard.last_s = heard.first_s or at_s, at_s
                heard.text += params["text"]
            elif method == "chat.started":
                heard.number = params["answer"]
            elif method == "chat.progress" and params["phase"] not in heard.phases[-1:]:
                heard.phases.append(params["phase"])
        return heard


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

    def __init__(self, target: Target) -> None:
        path = endpoint.socket_path(target.url)
        if path:
            self._http: http.client.HTTPConnection = _Unix(path)
        else:
            host = target.url.removeprefix("http://")
            self._http = http.client.HTTPConnection(host, timeout=MAX_ANSWER_S)
        self._headers = {"Content-Type": "application/json"}
        if target.key:
            self._headers["Authorization"] = f"Bearer {target.key}"

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send another request to the server."""
        data = None if body is None else json.dumps(body).encode()
        self._http.close()  # the server may have done so
        self._http.request("GET" if body is None else "POST", path, data, self._headers)
        return json.loads(self._http.getresponse().read() or b"null")

    def ask(self, messages: Sequence[Mapping[str, str]], max_tokens: int) -> Heard:
        """Ask, and wait for the whole answer."""
        body = {
            "messages": list(messages),
            "stream": True,
            "temperature": 0,
            "max_tokens": max_tokens,
        }
        self._http.close()
        heard = Heard(time.perf_counter())
        data = json.dumps(body).encode()
        self._http.request("POST", "/v1/chat/completions", data, self._headers)
        for row in _rows(self._http.getresponse()):
            choice = (row.get("choices") or [{}])[0]
            text = (choice.get("delta") or {}).get("content")
            if text:
                heard.last_s = time.perf_counter()
                heard.first_s = heard.first_s or heard.last_s
                heard.text += text
            if timings := row.get("timings"):
                heard.cached_tokens = timings["cache_n"]
                heard.prompt_tokens = timings["prompt_n"] + timings["cache_n"]
                heard.answer_tokens = timings["predicted_n"]
                heard.prompt_ms = timings["prompt_ms"]
        heard.ended_s = time.perf_counter()
        return heard


def _rows(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Yield the objects of a stream."""
    if answer.status != 200:
        raise LcursorError(f"the bare server says {answer.status}", "Look at its log")
    for line in answer:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])
