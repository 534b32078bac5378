"""Convert the stream of a chat server into events. Pure.

The input is the objects of a stream (decoded by `http.sse`) of `/v1/chat/completions`, with the
specific fields of each server, of llama.cpp's `/completion`, or of Ollama's `/api/chat`.

Source: llama.cpp's tools/server/README.md, Ollama's docs/api.md, the OpenAI API reference, and the
streams of vLLM, DeepSeek, Kimi, GLM, Mistral and OpenRouter according to their references.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from lcursor.errors import ServerFailed
from lcursor.http import sse
from lcursor.llm import tokens
from lcursor.llm.records import CallText, End, Event, Progress, Reasoning, Text, Usage
from lcursor.llm.tool_calls import CallReader

TAGS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"))
"""Tags around the reasoning of models."""
REASONING = ("reasoning_content", "reasoning", "thinking")
"""Fields for reasoning; some servers send it in two of them."""
LENGTH_REASONS = ("length", "max_tokens", "model_length")
CUT_OFF_REASONS = ("content_filter", "sensitive", "safety", "error")
_NOTHING: Mapping[str, Any] = {}


class ResponseReader:
    """Parses one stream; `server` is the name for messages."""

    def __init__(self, server: str) -> None:
        self.reason: End | None = None
        """Why it ended, as reported by the server."""
        self.has_begun = False
        """Whether any object has arrived."""
        self._server = server
        self._splitter = ReasoningSplitter()
        self._calls = CallReader()
        self._written_bytes = self._written_tokens = 0
        self._usage: Mapping[str, Any] = _NOTHING
        self._timings: Mapping[str, Any] = _NOTHING
        self._ollama: Mapping[str, Any] = _NOTHING  # the last object

    def feed(self, found: Mapping[str, Any]) -> list[Event]:
        """Return the events of one object.

        Raises:
            ServerFailed: it is an error, or reports that the answer was cut off.
        """
        self.has_begun = True
        events: list[Event] = []
        progress = found.get("prompt_progress")
        if isinstance(progress, Mapping):
            events.append(_progress(progress))
        choices = found.get("choices")
        if isinstance(choices, list):
            choice = choices[0] if choices and isinstance(choices[0], Mapping) else _NOTHING
            events += self._message(choice.get("delta") or choice.get("message"))
            self._end(choice.get("finish_reason"), choice.get("reason"))
            self._count(choice.get("usage"))
        elif "stop_type" in found or "tokens" in found:
            events += self._completion(found)
        elif "done" in found:
            events += self._message(found.get("message"))
            if found["done"] is True:
                self._end(found.get("done_reason") or "stop")
                self._ollama = found
        elif found.get("object") == "error" or found.get("type") == "error":
            raise sse.failure(found, self._server)
        self._count(found.get("usage"))
        timings = found.get("timings")
        if isinstance(timings, Mapping):
            self._timings = timings
        return events

    def finish(self) -> list[Event]:
        """Return the text that was held back as a possible start of a tag, and the calls."""
        return [*self._splitter.finish(), *self._calls.finish()]

    def usage(self, prompt_tokens: int) -> Usage:
        """Return the token counts and times; `prompt_tokens` is for servers that do not count."""
        if _has(self._timings, "prompt_n"):
            times, cached = self._timings, _count(self._timings, "cache_n")
            answer, accepted = _count(times, "predicted_n"), _count(times, "draft_n_accepted")
            return Usage(
                _count(times, "prompt_n") + cached,
                cached,
                answer,
                _number(times, "prompt_ms"),
                _number(times, "predicted_ms"),
                is_exact=True,
                draft_tokens=_count(times, "draft_n"),
                accepted_tokens=accepted,
                passes=max(answer - accepted, 0),
            )
        if _has(self._ollama, "prompt_eval_count"):
            return Usage(
                _count(self._ollama, "prompt_eval_count"),
                0,
                _count(self._ollama, "eval_count"),
                _number(self._ollama, "prompt_eval_duration") / 1e6,
                _number(self._ollama, "eval_duration") / 1e6,
                is_exact=True,
            )
        if _has(self._usage, "prompt_tokens"):
            prompt, answer = (
                _count(self._usage, f"{of}_tokens") for of in ("prompt", "completion")
            )
            return Usage(prompt, _cached(self._usage), answer, is_exact=True)
        answer_tokens = -int(-self._written_bytes // tokens.BYTES_PER_TOKEN)
        return Usage(prompt_tokens, 0, answer_tokens)

    def _message(self, message: object) -> list[Event]:
        if not isinstance(message, Mapping):
            return []
        events: list[Text | Reasoning | CallText] = []
        for name in REASONING:
            thought = message.get(name)
            if isinstance(thought, str) and thought:
                self._splitter.skip()
                events.append(Reasoning(thought))
                break
        for text in (message.get("content"), message.get("refusal")):
            if isinstance(text, list):
                events += self._parts(text)
            elif isinstance(text, str) and text:
                events += self._splitter.feed(text)
        self._calls.keep(message)
        events += self._calls.feed(message.get("tool_calls"))
        for event in events:
            self._written_bytes += len(event.text.encode("utf-8", "replace"))
        return list(events)

    def _completion(self, found: Mapping[str, Any]) -> list[Event]:
        """Parse an object of `/completion`."""
        if found.get("stop") is True:
            self._end("length" if found.get("stop_type") == "limit" else "stop")
        text, sent = found.get("content"), found.get("tokens")
        ids = tuple(each for each in sent if type(each) is int) if isinstance(sent, list) else ()
        total = max(_count(found, "tokens_predicted"), self._written_tokens)
        unsent = max(total - self._written_tokens - len(ids), 0) if ids else 0
        if not isinstance(text, str) or not (text or ids):
            return []
        self._written_tokens += unsent + len(ids)
        self._written_bytes += len(text.encode("utf-8", "replace"))
        return [Text(text, ids, unsent)]

    def _parts(self, content: list[object]) -> list[Text | Reasoning]:
        """Parse an answer in parts, as Mistral sends it."""
        events: list[Text | Reasoning] = []
        for part in content:
            if not isinstance(part, Mapping):
                continue
            if isinstance(part.get("text"), str):
                events += self._splitter.feed(part["text"])
            thoughts = part.get("thinking")
            for one in thoughts if isinstance(thoughts, list) else []:
                if isinstance(one, Mapping) and isinstance(one.get("text"), str):
                    self._splitter.skip()
                    events.append(Reasoning(one["text"]))
        return events

    def _end(self, reason: object, detail: object = None) -> None:
        """Keep why the answer ended; `detail` says why it was cut off."""
        if not isinstance(reason, str) or not reason:
            return
        if reason in CUT_OFF_REASONS:
            raise ServerFailed(
                f"{self._server} cut the answer off ({detail or reason})",
                "Try again, or rephrase the question",
            )
        self.reason = "length" if reason in LENGTH_REASONS else "stop"

    def _count(self, usage: object) -> None:
        if isinstance(usage, Mapping) and _has(usage, "prompt_tokens"):
            self._usage = usage


def _progress(found: Mapping[str, Any]) -> Progress:
    total, cached, done = (_count(found, name) for name in ("total", "cache", "processed"))
    return Progress(total, cached, done, _number(found, "time_ms"))


def _cached(usage: Mapping[str, Any]) -> int:
    """Return the cached tokens of a prompt; each server has a different field for it."""
    details = usage.get("prompt_tokens_details")
    tables = [details, usage] if isinstance(details, Mapping) else [usage]
    names = ("cached_tokens", "prompt_cache_hit_tokens")
    return max(_count(table, name) for table in tables for name in names)


def _has(table: Mapping[str, Any], name: str) -> bool:
    """Return whether a server sent a number."""
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < 1e15  # a NaN is not


def _number(table: Mapping[str, Any], name: str) -> float:
    return table[name] if _has(table, name) else 0.0


def _count(table: Mapping[str, Any], name: str) -> int:
    return int(_number(table, name))


class ReasoningSplitter:
    """Splits streamed text, for servers that leave reasoning in the answer.

    Tags may be split anywhere. They count only at the start: a later tag is part of the answer,
    which may be about tags.
    """

    def __init__(self) -> None:
        self._state: Literal["start", "inside", "gap", "answer"] = "start"
        self._held = ""
        self._end = ""

    def skip(self) -> None:
        """Treat the rest as the answer, because the server separates the reasoning itself."""
        if self._state == "start":
            self._state = "gap"

    def feed(self, text: str) -> list[Text | Reasoning]:
        """Return the certain part after the next text."""
        if self._state == "answer":
            return [Text(text)] if text else []
        self._held += text
        found: list[Text | Reasoning] = []
        if self._state == "start" and not self._starts():
            return found
        if self._state == "inside" and not self._reason(found):
            return found
        if self._state == "gap":  # skip empty lines between reasoning and answer
            self._held = self._held.lstrip()
            if not self._held:
                return found
            self._state = "answer"
        found.append(Text(self._held))
        self._held = ""
        return found

    def finish(self) -> list[Text | Reasoning]:
        """Return the held-back text at the end."""
        rest, self._held = self._held, ""
        if not rest or self._state == "gap":
            return []
        return [Reasoning(rest) if self._state == "inside" else Text(rest)]

    def _starts(self) -> bool:
        """Detect whether the text starts with a tag; return whether that is certain."""
        bare = self._held.lstrip()
        for start, end in TAGS:
            if bare.startswith(start):
                self._state, self._end = "inside", end
                self._held = bare[len(start) :]
                return True
        if any(start.startswith(bare) for start, _ in TAGS):
            return False
        self._state = "answer"
        return True

    def _reason(self, found: list[Text | Reasoning]) -> bool:
        """Add reasoning; return whether it has ended."""
        thought, end, rest = self._held.partition(self._end)
        if not end:  # the last characters may be the start of the tag
            starts = range(max(len(thought) - len(self._end) + 1, 0), len(thought))
            certain = next(
                (at for at in starts if self._end.startswith(thought[at:])), len(thought)
            )
            thought, rest = thought[:certain], thought[certain:]
        if thought:
            found.append(Reasoning(thought))
        self._held = rest
        if end:
            self._state = "gap"
        return bool(end)
