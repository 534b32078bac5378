"""The API of Anthropic. Pure.

The end of the system text and of the conversation are marked for the provider's prompt cache, so
that each request of a run reads the one before from it.

Source: Anthropic's references of the Messages API, of streaming and of prompt caching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from lcursor.llm.apis.api import CUT_OFF, Api, Chunk, Quirk, Request, delta, table_in
from lcursor.llm.records import Message, SamplingParams, Served, ToolSpec
from lcursor.llm.tool_calls import RETURNED, arguments_of, returned

VERSION: Final = "2023-06-01"
MAX_TOKENS: Final = 16_000
"""Limit of an answer that has none; the API requires one."""
FEWER_TOKENS: Final = 4096
"""Limit for a model that rejected a larger one."""
CACHED: Final = {"cache_control": {"type": "ephemeral"}}
ENDS: Final = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": CUT_OFF,
}
"""Reasons of answers that are not complete."""


class Anthropic(Api):
    """The API."""

    name = "anthropic"
    summary = "Anthropic's Messages API, with its prompt cache"

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers of all requests."""
        return {"anthropic-version": VERSION, "x-api-key": key}

    def chunks(self) -> Chunk:
        """Return what translates the events of a new stream."""
        return Translator().chunk

    def request(
        self,
        served: Served,
        api: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        sampling: SamplingParams,
        quirks: Set[Quirk],
    ) -> Request:
        """Return a request for an answer; see `Api`."""
        system = "\n\n".join(message.text for message in messages if message.role == "system")
        limit = FEWER_TOKENS if "no_limit" in quirks else sampling.max_tokens or MAX_TOKENS
        body: dict[str, Any] = {
            "model": served.model,
            "max_tokens": limit,
            "messages": rows(messages),
            "stream": True,
        }
        if system:
            body["system"] = [{"type": "text", "text": system, **CACHED}]
        if tools:
            body["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.parameters,
                }
                for tool in tools
            ]
        if "no_temperature" not in quirks:
            body["temperature"] = sampling.temperature
        if sampling.stop:
            body["stop_sequences"] = list(sampling.stop)
        return f"{api}/messages", body


def rows(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as the API has them: roles take turns, and contents are blocks."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if found and found[-1]["role"] == role:
            found[-1]["content"] += blocks
        elif blocks:
            found.append({"role": role, "content": blocks})
    if found:
        found[-1]["content"][-1] |= CACHED
    return found


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        content = message.text or "(nothing)"
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": content}]
    blocks: list[dict[str, Any]] = [*returned(message, Anthropic.name)]
    if message.text.strip():
        blocks.append({"type": "text", "text": message.text.rstrip()})
    for call in message.calls:
        values = arguments_of(call) or {}
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": values})
    return blocks


class Translator:
    """Turns the events of a stream into objects of OpenAI's stream."""

    def __init__(self) -> None:
        self._thoughts: dict[int, dict[str, Any]] = {}
        self._usage: dict[str, Any] = {}

    def chunk(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an event as an object of OpenAI's stream; errors as they are."""
        kind, number = event.get("type"), event.get("index")
        number = number if isinstance(number, int) else 0
        match kind:
            case "message_start":
                return self._counted(table_in(event, "message").get("usage"))
            case "content_block_start":
                return self._begun(number, table_in(event, "content_block"))
            case "content_block_delta":
                return self._continued(number, table_in(event, "delta"))
            case "content_block_stop":
                thought = self._thoughts.pop(number, None)
                return delta({RETURNED: {Anthropic.name: [thought]}} if thought else {})
            case "message_delta":
                reason = table_in(event, "delta").get("stop_reason")
                finish = ENDS.get(str(reason), "stop") if reason else None
                ended = delta({}, finish, str(reason))
                return {**ended, **self._counted(event.get("usage"))}
            case "error":
                return event
        return delta({})

    def _begun(self, number: int, block: Mapping[str, Any]) -> Mapping[str, Any]:
        if block.get("type") == "tool_use":
            function = {"name": block.get("name"), "arguments": ""}
            return delta(
                {"tool_calls": [{"index": number, "id": block.get("id"), "function": function}]}
            )
        if block.get("type") in {"thinking", "redacted_thinking"}:
            self._thoughts[number] = dict(block)
            return delta({})
        return delta({"content": block.get("text") or ""})

    def _continued(self, number: int, part: Mapping[str, Any]) -> Mapping[str, Any]:
        match part.get("type"):
            case "text_delta":
                return delta({"content": part.get("text")})
            case "input_json_delta":
                function = {"arguments": part.get("partial_json") or ""}
                return delta({"tool_calls": [{"index": number, "function": function}]})
            case "thinking_delta" | "signature_delta":
                field = "thinking" if part.get("type") == "thinking_delta" else "signature"
                thought = self._thoughts.setdefault(number, {"type": "thinking"})
                thought[field] = f"{thought.get(field) or ''}{part.get(field) or ''}"
                return delta({"thinking": part.get("thinking")} if field == "thinking" else {})
        return delta({})

    def _counted(self, usage: object) -> Mapping[str, Any]:
        """Return the counts so far, in OpenAI's fields."""
        if isinstance(usage, Mapping):
            self._usage |= {name: value for name, value in usage.items() if value is not None}
        read, stored = (
            self._usage.get(f"cache_{name}_input_tokens") or 0 for name in ("read", "creation")
        )
        return {
            "usage": {
                "prompt_tokens": (self._usage.get("input_tokens") or 0) + read + stored,
                "completion_tokens": self._usage.get("output_tokens") or 0,
                "prompt_tokens_details": {"cached_tokens": read},
            }
        }
