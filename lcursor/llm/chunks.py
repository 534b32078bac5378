"""What a server of chats sends while it answers, read into events. Pure.

Takes the objects of a stream (decoded by `http.sse`) in the form of `/v1/chat/completions`, with
the fields that each server adds in its way, or of Ollama's `/api/chat`.

Source: llama.cpp's tools/server/README.md, Ollama's docs/api.md, the OpenAI API reference, and the
streams of vLLM, DeepSeek, Kimi, GLM, Mistral and OpenRouter as their references show them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lcursor.errors import ServerFailed
from lcursor.http import sse
from lcursor.llm import tokens
from lcursor.llm.records import End, Event, Progress, Reasoning, Text, Usage
from lcursor.llm.thinking import Thinking

REASONING = ("reasoning_content", "reasoning", "thinking")
"""Fields in which servers tell what a model thinks; some send it in two of them."""
TOO_LONG = ("length", "max_tokens", "model_length")
CUT_OFF = ("content_filter", "sensitive", "safety", "error")
_NOTHING: Mapping[str, Any] = {}


class Reader:
    """Reads one stream.

    Args:
        who: the server, for messages.
    """

    def __init__(self, who: str) -> None:
        self.reason: End | None = None
        """Why it ended, once the server has said so."""
        self.has_begun = False
        """Whether any object has come."""
        self._who = who
        self._thinking = Thinking()
        self._said_bytes = 0
        self._usage: Mapping[str, Any] = _NOTHING
        self._timings: Mapping[str, Any] = _NOTHING
        self._local: Mapping[str, Any] = _NOTHING  # Ollama's last object
        self._tool = ""

    def feed(self, found: Mapping[str, Any]) -> list[Event]:
        """Return the events of one object.

        Raises:
            ServerFailed: it is an error, or says that the answer was cut off.
        """
        self.has_begun = True
        told: list[Event] = []
        progress = found.get("prompt_progress")
        if isinstance(progress, Mapping):
            told.append(_progress(progress))
        choices = found.get("choices")
        if isinstance(choices, list):
            choice = choices[0] if choices and isinstance(choices[0], Mapping) else _NOTHING
            told += self._message(choice.get("delta") or choice.get("message"))
            if not told and isinstance(choice.get("text"), str):
                told += self._thinking.feed(choice["text"])
            self._end(choice.get("finish_reason"))
            self._count(choice.get("usage"))
        elif "done" in found:
            told += self._message(found.get("message"))
            if found["done"] is True:
                self._end(found.get("done_reason") or "stop")
                self._local = found
        elif found.get("object") == "error" or found.get("type") == "error":
            self._fail(found)
        self._count(found.get("usage"))
        timings = found.get("timings")
        if isinstance(timings, Mapping):
            self._timings = timings
        return told

    def finish(self) -> list[Event]:
        """Return what was held back, as it might have been the beginning of a tag."""
        return list(self._thinking.finish())

    def usage(self, prompt_tokens: int) -> Usage:
        """Return what the turn cost.

        Args:
            prompt_tokens: an estimate, for a server that does not say.
        """
        times = self._timings
        read, cached = _number(times, "prompt_n"), max(_number(times, "cache_n"), 0)
        if read >= 0:
            answer_tokens = max(int(_number(times, "predicted_n")), 0)
            accepted = max(int(_number(times, "draft_n_accepted")), 0)
            return Usage(
                int(read + cached),
                int(cached),
                answer_tokens,
                max(_number(times, "prompt_ms"), 0.0),
                max(_number(times, "predicted_ms"), 0.0),
                is_exact=True,
                draft_tokens=max(int(_number(times, "draft_n")), 0),
                accepted_tokens=accepted,
                passes=max(answer_tokens - accepted, 0),
            )
        if _number(self._local, "prompt_eval_count") >= 0:
            return Usage(
                int(_number(self._local, "prompt_eval_count")),
                0,
                max(int(_number(self._local, "eval_count")), 0),
                max(_number(self._local, "prompt_eval_duration"), 0.0) / 1e6,
                max(_number(self._local, "eval_duration"), 0.0) / 1e6,
                is_exact=True,
            )
        if _number(self._usage, "prompt_tokens") >= 0:
            return Usage(
                int(_number(self._usage, "prompt_tokens")),
                _cached(self._usage),
                max(int(_number(self._usage, "completion_tokens")), 0),
                is_exact=True,
            )
        answer_tokens = -int(-self._said_bytes // tokens.BYTES_PER_TOKEN)
        return Usage(prompt_tokens, 0, answer_tokens)

    def _message(self, message: object) -> list[Event]:
        if not isinstance(message, Mapping):
            return []
        told: list[Event] = []
        for name in REASONING:
            thought = message.get(name)
            if isinstance(thought, str) and thought:
                self._thinking.skip()
                told.append(Reasoning(thought))
                break
        content = message.get("content")
        if isinstance(content, list):
            told += self._parts(content)
        elif isinstance(content, str) and content:
            told += self._thinking.feed(content)
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal:
            told += self._thinking.feed(refusal)
        if message.get("tool_calls"):
            told += self._tools(message["tool_calls"])
        for event in told:
            if isinstance(event, (Text, Reasoning)):
                self._said_bytes += len(event.text.encode("utf-8", "replace"))
        return told

    def _parts(self, content: list[object]) -> list[Event]:
        """Read an answer in parts, as Mistral sends it."""
        told: list[Event] = []
        for part in content:
            if not isinstance(part, Mapping):
                continue
            if isinstance(part.get("text"), str):
                told += self._thinking.feed(part["text"])
            thoughts = part.get("thinking")
            for one in thoughts if isinstance(thoughts, list) else []:
                if isinstance(one, Mapping) and isinstance(one.get("text"), str):
                    self._thinking.skip()
                    told.append(Reasoning(one["text"]))
        return told

    def _tools(self, calls: object) -> list[Event]:
        """Show what a model wants to call, though it was offered nothing: it is its answer."""
        told: list[Event] = []
        for call in calls if isinstance(calls, list) else []:
            function = call.get("function") if isinstance(call, Mapping) else None
            if not isinstance(function, Mapping):
                continue
            name, arguments = function.get("name"), function.get("arguments")
            if isinstance(name, str) and name and name != self._tool:
                self._tool = name
                told += self._thinking.feed(f"\n{name} ")
            if isinstance(arguments, str):
                told += self._thinking.feed(arguments)
        return told

    def _end(self, reason: object) -> None:
        if not isinstance(reason, str) or not reason:
            return
        if reason in CUT_OFF:
            raise ServerFailed(
                f"{self._who} cut the answer off ({reason})", "Ask again, or in other words"
            )
        self.reason = "length" if reason in TOO_LONG else "stop"

    def _count(self, usage: object) -> None:
        if isinstance(usage, Mapping) and _number(usage, "prompt_tokens") >= 0:
            self._usage = usage

    def _fail(self, found: Mapping[str, Any]) -> None:
        raise sse.failure(found, self._who)


def _progress(found: Mapping[str, Any]) -> Progress:
    names = ("total", "cache", "processed")
    total, cached, done = (max(int(_number(found, name)), 0) for name in names)
    return Progress(total, cached, done, max(_number(found, "time_ms"), 0.0))


def _cached(usage: Mapping[str, Any]) -> int:
    """Find how much of a prompt was in the cache: each server has another place for it."""
    details = usage.get("prompt_tokens_details")
    found = _number(details, "cached_tokens") if isinstance(details, Mapping) else -1
    for name in ("cached_tokens", "prompt_cache_hit_tokens"):
        found = max(found, _number(usage, name))
    return max(int(found), 0)


def _number(table: Mapping[str, Any], name: str) -> float:
    """Return a number that a server tells, -1 where it does not."""
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return -1
    return value if abs(value) < 1e15 else -1  # a NaN is not
