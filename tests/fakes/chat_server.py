"""A scripted chat server on the loopback interface or a unix socket.

Without a script it is a small llama-server: it counts tokens, caches one prompt, and answers.

    with ChatServer([say("Hel", "lo"), refuse(500, "oops")]) as server:
        client = ChatClient(Target("fake", server.url))
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from tests.fakes.loopback import Handler, Loopback, sse

QUESTIONS = (
    "/chat/completions",
    "/api/chat",
    "/messages",
    "/responses",
    ":streamGenerateContent",
)
KEY_HEADERS = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
EXCHANGES = Path(__file__).parents[1] / "recorded/exchanges"
Kind = Literal["llama.cpp", "ollama", "openai", "anthropic", "gemini", "responses"]


class Abort:
    """A part of an answer that resets the connection, as when a server's process dies."""


class Hang:
    """A part of an answer that lasts until the client disconnects or the server ends."""


class Wait:
    """A part of an answer that waits until the test sets `event`."""

    def __init__(self) -> None:
        self.event = threading.Event()


Part = bytes | float | Abort | Hang | Wait


@dataclass(frozen=True)
class Answer:
    """One scripted answer of `/v1/chat/completions`.

    Attributes:
        parts: bytes are sent, a number is a pause in seconds, the classes above do what they say.
        is_whole: the end of the chunked body is sent; else the connection just closes.
    """

    parts: Sequence[Part] = ()
    status: int = 200
    kind: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = True


Script = Sequence[Answer] | Callable[[dict[str, Any]], Answer]


def delta(finish: str | None = None, **fields: object) -> dict[str, Any]:
    """Return one object of a stream."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "model": "fake", "choices": [choice]}


def say(
    *texts: str,
    reasoning: Sequence[str] = (),
    every_s: float = 0.0,
    finish: str | None = "stop",
    usage: Mapping[str, Any] | None = None,
    timings: Mapping[str, Any] | None = None,
    progress: Sequence[Mapping[str, Any]] = (),
    is_done: bool = True,
) -> Answer:
    """Return an answer that streams texts, one token each.

    Args:
        texts: the tokens of the answer.
        reasoning: tokens of reasoning that come first.
        every_s: pause before each object.
        finish: finish reason; None sends none.
        usage: sent in an object of its own at the end, as OpenAI does.
        timings: sent in the last object, as llama-server does.
        progress: objects of `prompt_progress`, sent before everything else.
        is_done: whether `[DONE]` is sent.
    """
    rows: list[dict[str, Any]] = []
    rows += [{**delta(), "prompt_progress": dict(one)} for one in progress]
    rows.append(delta(role="assistant", content=None))
    rows += [delta(reasoning_content=one) for one in reasoning]
    rows += [delta(content=one) for one in texts]
    if finish is not None:
        rows.append({**delta(finish), **({"timings": dict(timings)} if timings else {})})
    if usage is not None:
        rows.append({"choices": [], "usage": dict(usage)})
    parts: list[Part] = []
    for row in rows:
        if every_s:
            parts.append(every_s)
        parts.append(sse(row))
    if is_done:
        parts.append(b"data: [DONE]\n\n")
    return Answer(parts)


def say_ollama(*texts: str, thinking: Sequence[str] = (), reason: str = "stop") -> Answer:
    """Return an answer of Ollama's own API: lines of JSON."""
    rows: list[dict[str, Any]] = [
        {"message": {"role": "assistant", "content": "", "thinking": one}, "done": False}
        for one in thinking
    ]
    rows += [{"message": {"role": "assistant", "content": one}, "done": False} for one in texts]
    end = {"done_reason": reason, "prompt_eval_count": 9, "prompt_eval_duration": 2_000_000}
    end |= {"eval_count": len(texts), "eval_duration": 4_000_000}
    rows.append({"message": {"role": "assistant", "content": ""}, "done": True, **end})
    parts = [json.dumps(row).encode() + b"\n" for row in rows]
    return Answer(parts, kind="application/x-ndjson")


def say_anthropic(
    *texts: str,
    calls: Sequence[tuple[str, object]] = (),
    thinking: str = "",
    reason: str = "",
    cached: int = 0,
) -> Answer:
    """Return an answer of Anthropic's API: blocks of reasoning, text and calls, in pieces."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": cached, "output_tokens": 1}
    rows: list[dict[str, Any]] = [{"type": "message_start", "message": {"usage": usage}}]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if thinking:
        parts = [{"type": "thinking_delta", "thinking": each} for each in thinking.split()]
        parts.append({"type": "signature_delta", "signature": "signed"})
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, parts))
    if texts:
        said = [{"type": "text_delta", "text": each} for each in texts]
        blocks.append(({"type": "text", "text": ""}, said))
    for number, (name, arguments) in enumerate(calls):
        written = json.dumps(arguments)
        pieces = [written[at : at + 7] for at in range(0, len(written), 7)]
        head = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        blocks.append(
            (head, [{"type": "input_json_delta", "partial_json": each} for each in pieces])
        )
    for number, (block, deltas) in enumerate(blocks):
        rows.append({"type": "content_block_start", "index": number, "content_block": block})
        rows += [{"type": "content_block_delta", "index": number, "delta": each} for each in deltas]
        rows += [{"type": "content_block_stop", "index": number}, {"type": "ping"}]
    reason = reason or ("tool_use" if calls else "end_turn")
    ended = {"delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}
    rows += [{"type": "message_delta", **ended}, {"type": "message_stop"}]
    return Answer([f"event: {row['type']}\n".encode() + sse(row) for row in rows])


def recorded(name: str, events: int | None = None) -> Answer:
    """Return a recorded stream.

    Args:
        events: after how many the connection is cut; None for all.
    """
    parts = (EXCHANGES / f"{name}.sse").read_bytes().split(b"\n\n")[1:]  # the first is a comment
    sent = [part.strip() + b"\n\n" for part in parts if part.strip()]
    return Answer(sent[:events], is_whole=events is None)


def refuse(
    status: int, message: str, headers: Mapping[str, str] | None = None, **more: object
) -> Answer:
    """Return an error response."""
    body = {"error": {"message": message, "code": status, **more}}
    return Answer([json.dumps(body).encode()], status, "application/json", dict(headers or {}))


def overflow(prompt_tokens: int, context_tokens: int) -> Answer:
    """Return llama-server's error for a prompt that does not fit."""
    return refuse(
        400,
        f"request ({prompt_tokens} tokens) exceeds the available context size "
        f"({context_tokens} tokens), try increasing it",
        type="exceed_context_size_error",
        n_prompt_tokens=prompt_tokens,
        n_ctx=context_tokens,
    )


class Gone(Exception):
    """The client has closed its connection."""


class ChatServer(Loopback):
    """A server that follows a script.

    Args:
        script: one answer for each question, the last one for all further; or a function of the
            question's body; None to answer by itself.
        kind: what it speaks besides.
        model: the name of its model.
        context_tokens: of its slot; a prompt that is longer is refused.
        key: that it wants; "" for none.
        socket_path: of a unix socket, in place of a port.
        port: 0 takes a free one.

    Attributes:
        bodies: of all questions, in order.
        asked: (method, path with query, headers) of every request.
        running: answers that are being sent now.
        extra: path to (status, object) for what else it shall answer, or in another way.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        kind: Kind = "llama.cpp",
        model: str = "fake-chat",
        context_tokens: int = 4096,
        key: str = "",
        socket_path: Path | None = None,
        port: int = 0,
    ) -> None:
        self.kind, self.model, self.context_tokens, self.key = kind, model, context_tokens, key
        self.bodies: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.running, self.slots = 0, 1
        self.extra: dict[str, tuple[int, object]] = {}
        self.saved: dict[str, str] = {}
        self.cached = ""
        self._script = script
        self._lock = threading.Lock()
        super().__init__(port, socket_path)

    def paths(self) -> list[str]:
        """Return the paths of all requests, in order, without their queries."""
        return [urlsplit(path).path for _, path, _ in self.asked]

    def tokens(self, text: str) -> int:
        """Count tokens: one for every four characters, rounded up."""
        return -(-len(text) // 4)

    def template(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the prompt of some messages."""
        rows = [f"<|{one['role']}|>{one['content']}<|end|>" for one in messages]
        return "".join(rows) + "<|assistant|>"

    # What it answers.

    def answer(self, ask: Handler, body: dict[str, Any]) -> None:
        """Follow the script for a chat request; describe the server otherwise."""
        self.asked.append((ask.command, ask.path, dict(ask.headers)))
        header = KEY_HEADERS.get(self.kind, "Authorization")
        key = self.key if self.kind in KEY_HEADERS else f"Bearer {self.key}"
        if self.key and ask.headers.get(header) != key:
            self._say(ask, 401, {"error": {"message": "Invalid API Key", "code": 401}})
        elif urlsplit(ask.path).path.endswith(QUESTIONS) and ask.path not in self.extra:
            self.running += 1
            try:
                self._follow(ask, self._reply(body))
            except (Gone, ConnectionError):
                self.gone_s.append(time.monotonic())
                ask.close_connection = True
            finally:
                self.running -= 1
        else:
            self._say(ask, *self._told(ask.command, ask.path, body))

    def _say(self, ask: Handler, status: int, value: object) -> None:
        ask.send(status, "application/json; charset=utf-8", json.dumps(value).encode())

    def _follow(self, ask: Handler, answer: Answer) -> None:
        ask.begin(answer.status, answer.kind, answer.headers)
        due = time.monotonic()
        for part in answer.parts:
            if isinstance(part, bytes):
                self._look(ask, 0.0)
                ask.piece(part)
            elif isinstance(part, Abort):
                # RST in place of FIN: what a dead process leaves.
                linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
                ask.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                ask.request.close()
                raise ConnectionError
            elif isinstance(part, Wait):
                while not part.event.is_set():
                    self._look(ask, 0.005)
                due = time.monotonic()
            elif isinstance(part, Hang):
                while True:
                    self._look(ask, 1.0)
            else:
                due += part
                self._look(ask, max(due - time.monotonic(), 0.0))
        if answer.is_whole:
            ask.piece(b"")
        else:
            ask.close_connection = True

    def _look(self, ask: Handler, wait_s: float) -> None:
        """Wait, and raise if the client has disconnected."""
        end = time.monotonic() + wait_s
        while True:
            if self.is_over.is_set():
                raise ConnectionError
            left = max(end - time.monotonic(), 0.0)
            ready, _, _ = select.select([ask.request], [], [], min(left, 0.05))
            if ready and not ask.request.recv(1, socket.MSG_PEEK):
                raise Gone
            if left <= 0.05:
                return

    def _reply(self, body: dict[str, Any]) -> Answer:
        with self._lock:
            self.bodies.append(body)
            at = len(self.bodies) - 1
        if callable(self._script):
            return self._script(body)
        if self._script:
            return self._script[min(at, len(self._script) - 1)]
        return self.natural(body)

    def natural(self, body: dict[str, Any], text: str = "", every_s: float = 0.0) -> Answer:
        """Return the unscripted answer, with the counts of a cache of one prompt."""
        prompt = self.template(body["messages"])
        total = self.tokens(prompt)
        if total >= self.context_tokens:
            return overflow(total, self.context_tokens)
        same = common_length(prompt, self.cached) // 4
        last = str(body["messages"][-1]["content"])
        text = text or f"You said: {last[:200]}"
        words = [text[at : at + 4] for at in range(0, len(text), 4)]
        if self.kind == "ollama":
            return say_ollama(*words)
        most = body.get("max_tokens") or len(words)
        self.cached = prompt + "".join(words[:most])
        timings = {
            "cache_n": same,
            "prompt_n": total - same,
            "prompt_ms": 1.0 * (total - same),
            "predicted_n": len(words[:most]),
            "predicted_ms": 5.0 * len(words[:most]),
        }
        progress = []
        if body.get("return_progress"):
            progress = [{"total": total, "cache": same, "processed": total, "time_ms": 1}]
        return say(
            *words[:most],
            every_s=every_s,
            finish="stop" if most >= len(words) else "length",
            timings=timings,
            progress=progress,
        )

    def _told(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, object]:
        """Answer any other request."""
        bare = urlsplit(path).path
        if path in self.extra or bare in self.extra:
            return self.extra.get(path) or self.extra[bare]
        if bare == "/v1beta/models" and self.kind == "gemini":
            row = {"name": f"models/{self.model}", "inputTokenLimit": self.context_tokens}
            return 200, {"models": [row]}
        if bare == "/v1/models":
            meta = {"n_ctx": self.context_tokens} if self.kind == "llama.cpp" else {}
            row = {"id": self.model, "object": "model", "meta": meta}
            return 200, {"object": "list", "data": [row]}
        if self.kind == "llama.cpp":
            return self._llama(bare, path, body)
        if self.kind == "ollama":
            return self._ollama(bare)
        return 404, {"detail": "Not Found"}

    def _ollama(self, bare: str) -> tuple[int, object]:
        if bare == "/api/version":
            return 200, {"version": "0.12.0"}
        if bare == "/api/tags":
            return 200, {"models": [{"name": self.model}]}
        if bare == "/api/show":
            info = {"general.architecture": "fake", "fake.context_length": self.context_tokens}
            return 200, {"model_info": info, "parameters": ""}
        return 404, {"error": "404 page not found"}

    def _llama(self, bare: str, path: str, body: dict[str, Any]) -> tuple[int, object]:
        slots = {"n_ctx": self.context_tokens}
        if bare == "/health":
            return 200, {"status": "ok"}
        if bare == "/props":
            return 200, {
                "default_generation_settings": slots,
                "total_slots": self.slots,
                "model_path": f"/models/{self.model}.gguf",
                "model_alias": self.model,
                "build_info": "b9999-fake",
            }
        if bare == "/slots":
            return 200, [{"id": 0, **slots, "is_processing": self.running > 0}]
        if bare == "/apply-template":
            return 200, {"prompt": self.template(body["messages"])}
        if bare == "/tokenize":
            return 200, {"tokens": list(range(self.tokens(str(body["content"]))))}
        if bare.startswith("/slots/") and "filename" in body:
            name = str(body["filename"])
            if path.endswith("action=save"):
                self.saved[name] = self.cached
                return 200, {"id_slot": 0, "filename": name, "n_saved": len(self.cached)}
            if path.endswith("action=restore") and name in self.saved:
                self.cached = self.saved[name]
                return 200, {"id_slot": 0, "filename": name, "n_restored": len(self.cached)}
            return 400, {"error": {"message": "Unable to restore slot", "code": 400}}
        return 404, {"error": {"message": "File Not Found", "code": 404}}


def common_length(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return the length of the common prefix of two texts or lists."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
