"""Calls of tools in the forms of chat servers: as fields of messages, or as text. Pure.

Source: the OpenAI API reference, Ollama's docs/api.md; the text form is that of Hermes, in which
many models write calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lcursor.llm.records import CallText, Message, Returned, ToolRequest, ToolSpec

CALL_START, CALL_END = "<tool_call>", "</tool_call>"
"""Around a call in a text."""
RETURNED_WITH_CALL = ("extra_content",)
"""Fields of a call that go back with it: Gemini signs its calls there."""
RETURNED_WITH_ANSWER = ("reasoning_content", "reasoning_details")
"""Fields of an answer with calls that go back with it: DeepSeek and Kimi; OpenRouter."""
RETURNED = "returned"
"""Field of a translated object: parts of the answer that go back with its calls, by the name of
their API. Another API gets none of them, after a change of the model."""


def listed(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Return the field `tools` of a request."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            },
        }
        for tool in tools
    ]


def without_system(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages whose system text is a part of the user's first message."""
    if [message.role for message in messages[:2]] != ["system", "user"]:
        return messages
    system, first, *rest = messages
    return [Message("user", f"{system.text}\n\n{first.text}"), *rest]


def openai_rows(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return messages in the form of OpenAI's API."""
    return [_openai_row(message) for message in messages]


def _openai_row(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": _function(call.name, call.arguments),
            **_only(RETURNED_WITH_CALL, call.extra),
        }
        for call in message.calls
    ]
    row = {"role": message.role, "content": message.text or None, "tool_calls": calls}
    return {**row, **_only(RETURNED_WITH_ANSWER, message.extra)}


def ollama_rows(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return messages in the form of Ollama's API, which names the tool of a result."""
    rows: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        row: dict[str, Any] = {"role": message.role, "content": message.text}
        if message.role == "tool":
            row["tool_name"] = names.get(message.call_id, "")
        if message.calls:
            names.update((call.id, call.name) for call in message.calls)
            row["tool_calls"] = [
                {"function": _function(call.name, arguments_of(call) or {})}
                for call in message.calls
            ]
        rows.append(row)
    return rows


def as_text(messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> list[Message]:
    """Return messages in which calls and results are texts, for servers and models without them.

    Consecutive messages of the user become one.

    Args:
        tools: to list in the system text.
    """
    rows: list[Message] = []
    for message in messages:
        text = message.text
        if message.role in {"tool", "user"}:
            text = f"<tool_response>\n{text}\n</tool_response>" if message.role == "tool" else text
            if rows and rows[-1].role == "user":
                text = f"{rows.pop().text}\n\n{text}"
            rows.append(Message("user", text))
            continue
        calls = "\n".join(f"{CALL_START}\n{_json(call)}\n{CALL_END}" for call in message.calls)
        text = "\n\n".join(filter(None, (text, calls)))
        rows.append(replace(message, text=text, calls=(), extra={}))
    if tools and rows and rows[0].role == "system":
        rows[0] = Message("system", f"{rows[0].text}\n\n{_described(tools)}")
    return rows


def returned(message: Message, api: str) -> Sequence[dict[str, Any]]:
    """Return the parts of an answer that go back to an API with its calls, in their order."""
    parts = message.extra.get(api)
    return parts if isinstance(parts, list) else ()


def arguments_of(call: ToolRequest) -> dict[str, Any] | None:
    """Return the arguments of a call; None if they are no JSON object."""
    try:
        values = json.loads(call.arguments or "{}", strict=False)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


class CallReader:
    """Collects the calls of a streamed answer, which arrive in parts."""

    def __init__(self) -> None:
        self._calls: dict[int, ToolRequest] = {}
        self._returned: dict[str, Any] = {}

    def keep(self, message: Mapping[str, Any]) -> None:
        """Add the fields of an object of the stream that go back to the server."""
        fields = {name: message.get(name) for name in RETURNED_WITH_ANSWER}
        parts = message.get(RETURNED)
        for name, value in {**fields, **(parts if isinstance(parts, Mapping) else {})}.items():
            old = self._returned.get(name)
            if isinstance(value, str) and value:
                self._returned[name] = old + value if isinstance(old, str) else value
            elif isinstance(value, list) and value:
                self._returned[name] = old + value if isinstance(old, list) else value

    def feed(self, parts: object) -> list[CallText]:
        """Add the parts in an object of the stream; return their texts."""
        found: list[CallText] = []
        for part in parts if isinstance(parts, list) else []:
            function = part.get("function") if isinstance(part, Mapping) else None
            if not isinstance(function, Mapping):
                continue
            number, key = part.get("index"), str(part.get("id") or "")
            old = self._calls.get(number) if type(number) is int else None
            if old is None or (key and key != old.id and function.get("name")):
                # A new call: some servers send whole calls without a number, or all with number 0.
                is_used = type(number) is not int or number in self._calls
                number = len(self._calls) if is_used else number
                old = ToolRequest(key or f"call_{number}", "", "")
            name, values = function.get("name"), function.get("arguments")
            text = values if isinstance(values, str) else json.dumps(values) if values else ""
            own = {each: part[each] for each in RETURNED_WITH_CALL if part.get(each)}
            self._calls[number] = ToolRequest(
                old.id,
                old.name or (name if isinstance(name, str) else ""),
                old.arguments + text,
                {**old.extra, **own},
            )
            new = f"{self._calls[number].name} " if not old.name else ""
            found += [CallText(new + text)] if new + text else []
        return found

    def finish(self) -> list[ToolRequest | Returned]:
        """Return the calls, in their order, and what goes back with them."""
        calls = [self._calls[number] for number in sorted(self._calls)]
        return [*calls, Returned(self._returned)] if calls and self._returned else [*calls]


def _only(names: Sequence[str], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in names if name in fields}


def _function(name: str, arguments: object) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def _json(call: ToolRequest) -> str:
    values = arguments_of(call)
    made = {"name": call.name, "arguments": call.arguments if values is None else values}
    return json.dumps(made, ensure_ascii=False)


def _described(tools: Sequence[ToolSpec]) -> str:
    rows = "\n".join(json.dumps(row, ensure_ascii=False) for row in listed(tools))
    form = f'{CALL_START}\n{{"name": NAME, "arguments": {{"ARGUMENT": VALUE}}}}\n{CALL_END}'
    return (
        f"# Tools\n\n<tools>\n{rows}\n</tools>\n\n"
        f"To call a tool, write this at the end of your message:\n\n{form}"
    )
