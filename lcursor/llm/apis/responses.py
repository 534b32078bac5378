"""OpenAI's Responses API, with nothing stored at the provider. Pure.

Answers with calls go back as their items came, because the model's reasoning is encrypted in them:
a model that reasons keeps it from call to call only with this API. The provider caches prompts by
itself.

Source: the OpenAI API reference of responses and their streams, and the types of its library
openai 3.57.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from lcursor.llm.apis.api import CUT_OFF, Api, Chunk, Quirk, Request, delta, positive, table_in
from lcursor.llm.records import Message, SamplingParams, Served, ToolSpec
from lcursor.llm.tool_calls import RETURNED, returned

ENCRYPTED: Final = "reasoning.encrypted_content"
LENGTH: Final = "max_output_tokens"
"""Why an answer is not complete that is as long as it may be."""


class Responses(Api):
    """The API."""

    name = "responses"
    summary = "OpenAI's Responses API, for models that reason"

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
        """Return a request for an answer; see `Api`. The API has no stop texts and no seed."""
        body: dict[str, Any] = {
            "model": served.model,
            "input": items(messages),
            "stream": True,
            "store": False,
        }
        system = "\n\n".join(message.text for message in messages if message.role == "system")
        if system:
            body["instructions"] = system
        if "no_reasoning" not in quirks:
            body["include"] = [ENCRYPTED]
        if tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                    "strict": False,  # the default allows no optional arguments
                }
                for tool in tools
            ]
        if "no_temperature" not in quirks:
            body["temperature"] = sampling.temperature
        if sampling.max_tokens and "no_limit" not in quirks:
            body["max_output_tokens"] = sampling.max_tokens
        if sampling.schema is not None and "no_schema" not in quirks:
            form = {"type": "json_schema", "name": "answer", "schema": dict(sampling.schema)}
            body["text"] = {"format": {**form, "strict": True}}
        return f"{api}/responses", body


def items(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as the API has them: calls and results are items beside the messages."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        if message.role == "tool":
            kind = "function_call_output"
            found.append({"type": kind, "call_id": message.call_id, "output": message.text})
            continue
        parts = returned(message, Responses.name)
        found += parts
        if message.text and not parts:
            found.append(_message(message))
        known = {part.get("call_id") for part in parts}
        found += [
            {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments or "{}",
            }
            for call in message.calls
            if call.id not in known
        ]
    return found


def _message(message: Message) -> dict[str, Any]:
    if message.role == "user":
        return {"role": "user", "content": message.text}
    # llama-server knows an answer only by these types.
    content = [{"type": "output_text", "text": message.text}]
    return {"type": "message", "role": "assistant", "content": content}


class Translator:
    """Turns the events of a stream into objects of OpenAI's chat."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}  # of calls, by the ids of their items

    def chunk(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an event as an object of OpenAI's chat; errors as they are."""
        text, item = event.get("delta"), table_in(event, "item")
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                return delta({"content": text})
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return delta({"thinking": text})
            case "response.output_item.added" if item.get("type") == "function_call":
                function = {"name": item.get("name"), "arguments": item.get("arguments") or ""}
                return self._call(item.get("id"), {"id": item.get("call_id"), "function": function})
            case "response.function_call_arguments.delta":
                return self._call(event.get("item_id"), {"function": {"arguments": text}})
            case "response.output_item.done":
                return delta({RETURNED: {Responses.name: _parts_to_return(item)}})
            case "response.completed" | "response.incomplete" | "response.failed":
                return _ended(table_in(event, "response"))
            case "error":
                return event
        return delta({})

    def _call(self, item: object, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a part of a call; not all servers number the items."""
        number = self._numbers.setdefault(item, len(self._numbers))
        return delta({"tool_calls": [{"index": number, **part}]})


def _parts_to_return(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return an item that goes back; reasoning without its encrypted content cannot."""
    is_useless = item.get("type") == "reasoning" and not item.get("encrypted_content")
    return [] if is_useless or not item else [dict(item)]


def _ended(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the end of an answer, with its counts."""
    error = response.get("error")
    if error or response.get("status") == "failed":
        return {"type": "error", "error": error}
    reason = table_in(response, "incomplete_details").get("reason")
    finish = "length" if reason == LENGTH else CUT_OFF if reason else "stop"
    return {**delta({}, finish, str(reason)), **_counted(table_in(response, "usage"))}


def _counted(usage: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the counts in the fields of OpenAI's chat."""
    if not usage:
        return {}
    return {
        "usage": {
            "prompt_tokens": positive(usage, "input_tokens"),
            "completion_tokens": positive(usage, "output_tokens"),
            "prompt_tokens_details": {
                "cached_tokens": positive(table_in(usage, "input_tokens_details"), "cached_tokens")
            },
        }
    }
