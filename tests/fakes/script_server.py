"""A llama-server that plays a script to an agent, in tokens or in messages.

    with ScriptServer([call(view), Fault.ABORT, call(done)]) as server:
        ...

Tokens are characters, and the two markers of ChatML. Each request for an answer plays one entry of
the script, the last one for all further. The server caches the last prompt, as a slot does, and
records for each request which part of the prompt was new.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.fakes.chat_server import (
    Abort,
    Answer,
    ChatServer,
    Gone,
    Hang,
    Part,
    Wait,
    common_length,
    delta,
    overflow,
    refuse,
)
from tests.fakes.loopback import Handler, sse

START, END = 1, 2
SPECIAL = {"<|im_start|>": START, "<|im_end|>": END}
PIECE = 16
"""Characters of an answer in one object of the stream."""


class Fault(enum.Enum):
    """What a server does in place of an answer."""

    ABORT = "it resets the connection at once"
    CUT = "it resets the connection in the middle of an answer"
    SHORT = "it ends the stream in the middle of an answer, without its end"
    ERROR = "it answers with status 500"
    BUSY = "it answers with status 503"
    GARBAGE = "it sends what is no JSON"
    FULL = "it says that the context is full"
    EMPTY = "it sends no token"
    SILENCE = "it sends nothing until the client leaves"


class Slow(str):
    """An answer whose first byte comes late."""

    delay_s = 0.3


class Long(str):
    """An answer that ends at the limit of tokens."""


class Stream(str):
    """An answer that is sent slowly, until the client leaves."""


Entry = str | Fault | Wait


class ScriptServer(ChatServer):
    """The server.

    Args:
        script: answers, faults, or a function that returns one for the text of a prompt.
        context_tokens: limit of a prompt.
        is_raw: it continues tokens; else only messages.

    Attributes:
        prompts: the text of each prompt, of faults too.
        ids: the tokens of each prompt that was answered.
        fresh: the number of its tokens that were not cached.
        requests: the bodies.
    """

    def __init__(
        self,
        script: Sequence[Entry] | Callable[[str], Entry],
        *,
        context_tokens: int = 32_768,
        is_raw: bool = True,
        port: int = 0,
    ) -> None:
        self.play = script
        self.prompts: list[str] = []
        self.ids: list[list[int]] = []
        self.fresh: list[int] = []
        self.requests: list[dict[str, Any]] = []
        self._cache: list[int] = []
        self._order = threading.Lock()
        kind: Any = "llama.cpp" if is_raw else "openai"
        super().__init__(None, context_tokens=context_tokens, kind=kind, port=port)

    def template(self, messages: Sequence[Any]) -> str:
        """Return a prompt in ChatML."""
        rows = [f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in messages]
        return "".join(rows) + "<|im_start|>assistant\n"

    def answer(self, ask: Handler, body: dict[str, Any]) -> None:
        """Answer a request."""
        if ask.path == "/completion":
            self.asked.append((ask.command, ask.path, dict(ask.headers)))
            self.running += 1
            try:
                self._follow(ask, self._raw(body))
            except (Gone, ConnectionError):
                self.gone_s.append(time.monotonic())
                ask.close_connection = True
            finally:
                self.running -= 1
        else:
            super().answer(ask, body)

    def _llama(self, bare: str, path: str, body: dict[str, Any]) -> tuple[int, object]:
        if bare == "/tokenize":
            return 200, {"tokens": _ids(str(body["content"]), body.get("parse_special") is True)}
        return super()._llama(bare, path, body)

    def _reply(self, body: dict[str, Any]) -> Answer:
        """Answer a request with messages."""
        prompt = self.template(body["messages"])
        return self._make(prompt, _ids(prompt, True), body)

    def _raw(self, body: dict[str, Any]) -> Answer:
        ids = list(body["prompt"])
        return self._make(_text(ids), ids, body)

    def _make(self, prompt: str, ids: list[int], body: dict[str, Any]) -> Answer:
        with self._order:
            self.prompts.append(prompt)
            self.requests.append(body)
            at = len(self.prompts) - 1
        if len(ids) >= self.context_tokens:
            return overflow(len(ids), self.context_tokens)
        play = self.play
        entry = play(prompt) if callable(play) else play[min(at, len(play) - 1)]
        if entry is Fault.FULL:
            return overflow(self.context_tokens + 1, self.context_tokens)
        if entry is Fault.ERROR:
            return refuse(500, "the model crashed")
        if entry is Fault.BUSY:
            return refuse(503, "no slot is free")
        if entry is Fault.ABORT:
            return Answer([Abort()])
        if entry is Fault.SILENCE:
            return Answer([Hang()])
        if entry is Fault.GARBAGE:
            return Answer([b"data: {not json\n\n", b"data: <html>\n\n"])
        if isinstance(entry, Wait):
            return Answer([entry, *self._parts("", ids, body, "stop")])
        text = entry if isinstance(entry, str) else ""
        limit = body.get("n_predict") or body.get("max_tokens") or len(text) + 1
        is_cut = isinstance(entry, Long) or len(text) > limit > 0
        text = text[: limit if is_cut and not isinstance(entry, Long) else None]
        parts = self._parts(text or "a" * 3 * PIECE, ids, body, "length" if is_cut else "stop")
        if entry is Fault.EMPTY:
            parts = self._parts("", ids, body, "stop")
        if entry is Fault.CUT:
            return Answer([*parts[:2], Abort()])
        if entry is Fault.SHORT:
            return Answer(parts[:2])
        if isinstance(entry, Slow):
            return Answer([Slow.delay_s, *parts])
        if isinstance(entry, Stream):
            return Answer([each for part in parts[:-1] for each in (part, 0.02)] + [Hang()])
        common = common_length(self._cache, ids)
        self.ids.append(ids)
        self.fresh.append(len(ids) - common)
        self._cache = [*ids, *map(ord, text)]
        return Answer(parts)

    def _parts(self, text: str, ids: list[int], body: dict[str, Any], end: str) -> list[Part]:
        """Return the objects of a stream."""
        cached = common_length(self._cache, ids)
        timings = {
            "cache_n": cached, "prompt_n": len(ids) - cached, "prompt_ms": 1.0,
            "predicted_n": len(text), "predicted_ms": 1.0,
        }  # fmt: skip
        pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
        if "messages" in body:
            rows = [delta(content=each) for each in pieces]
            last = {**delta(end), "timings": timings}
            return [*map(sse, [*rows, last]), b"data: [DONE]\n\n"]
        rows = [{"content": each, "tokens": [*map(ord, each)], "stop": False} for each in pieces]
        stop = "limit" if end == "length" else "eos"
        eos = [] if end == "length" else [END]
        rows.append({"content": "", "tokens": eos, "stop": False})
        rows.append(
            {"content": "", "tokens": [], "stop": True, "stop_type": stop, "timings": timings}
        )
        return [*map(sse, rows)]


def _ids(text: str, is_special: bool) -> list[int]:
    for marker, token in SPECIAL.items():
        text = text.replace(marker, chr(token)) if is_special else text
    return [ord(each) for each in text]


def _text(ids: Sequence[int]) -> str:
    names = {token: marker for marker, token in SPECIAL.items()}
    return "".join(names.get(each, chr(each)) for each in ids)
