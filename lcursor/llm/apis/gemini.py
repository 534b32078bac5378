"""Gemini's own API. Pure.

Answers with calls go back as their parts came, because the model's thoughts are signed in them, and
newer models reject a call without its signature. The provider caches prompts by itself.

Source: Google's references of `generateContent`, function calling and thought signatures, and the
types of its library google-genai 3.6.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from lcursor.http import detect
from lcursor.http.detect import Sign
from lcursor.llm.apis.api import (
    CUT_OFF,
    Api,
    Ask,
    Chunk,
    Quirk,
    Request,
    delta,
    positive,
    smaller_context,
    table_in,
)
from lcursor.llm.records import Message, SamplingParams, Served, ServedModel, ToolSpec
from lcursor.llm.tool_calls import RETURNED, arguments_of, returned

PREFIX: Final = "models/"
"""Before the names of models."""
UNSIGNED: Final = "skip_thought_signature_validator"
"""Signature of a call that another model wrote."""
ENDS: Final = {"STOP": "stop", "MAX_TOKENS": "length"}
"""Reasons of complete answers; any other cuts the answer off."""
MALFORMED: Final = "MALFORMED_FUNCTION_CALL"
"""Reason of an answer with a call that the server could not read."""
MALFORMED_CALL: Final = "malformed_call"
"""Name of the call that stands for it, so that the model is told."""


class Gemini(Api):
    """The API."""

    name = "gemini"
    summary = "Gemini's own API"
    version = "/v1beta"
    openai_path = "/openai"
    sign = Sign("{api}/models?pageSize=1000", "models", list, is_list=True)

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers of all requests."""
        return {"x-goog-api-key": key}

    def chunks(self) -> Chunk:
        """Return what translates the objects of a new stream."""
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
        # No temperature: Google advises against changing that of its newer models.
        options: dict[str, Any] = {}
        if sampling.max_tokens and "no_limit" not in quirks:
            options["maxOutputTokens"] = sampling.max_tokens
        if sampling.stop and "no_stop" not in quirks:
            options["stopSequences"] = list(sampling.stop)
        if sampling.seed >= 0 and "no_seed" not in quirks:
            options["seed"] = sampling.seed
        if "no_reasoning" not in quirks:
            options["thinkingConfig"] = {"includeThoughts": True}
        if sampling.schema is not None and "no_schema" not in quirks:
            options["responseMimeType"] = "application/json"
            options["responseJsonSchema"] = dict(sampling.schema)
        body: dict[str, Any] = {"contents": contents(messages), "generationConfig": options}
        system = "\n\n".join(message.text for message in messages if message.role == "system")
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if tools:
            declared = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": dict(tool.parameters),
                }
                for tool in tools
            ]
            body["tools"] = [{"functionDeclarations": declared}]
        model = served.model.removeprefix(PREFIX)
        return f"{api}/{PREFIX}{model}:streamGenerateContent?alt=sse", body

    def describe(
        self, target: ServedModel, reply: Mapping[str, Any], api: str, ask: Ask, server: str
    ) -> Served:
        """Read the list of models."""
        rows = [row for row in reply.get("models") or [] if isinstance(row, Mapping)]
        names = [name.removeprefix(PREFIX) for name in detect.model_names(rows, "name")]
        model = target.model or detect.only_model(names, server, target.setting)
        named = f"{PREFIX}{model.removeprefix(PREFIX)}"
        row: Mapping[str, Any] = next((row for row in rows if row.get("name") == named), {})
        tokens = smaller_context(target, positive(row, "inputTokenLimit"))
        return Served(self.name, model, tokens, models=tuple(names), has_tools=True)


def contents(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages as the API has them: the results of an answer's calls are one content."""
    found: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    ids: set[str] = set()  # of the calls of the last answer
    role = ""
    for message in messages:
        if message.role == "tool":
            result = {"name": names.get(message.call_id, ""), "response": {"output": message.text}}
            key = {"id": message.call_id} if message.call_id in ids else {}
            part = {"functionResponse": {**key, **result}}
            if role == "tool":
                found[-1]["parts"].append(part)
            else:
                found.append({"role": "user", "parts": [part]})
        elif message.role == "assistant" and (parts := _answer(message)):
            names |= {call.id: call.name for call in message.calls}
            ids = {str(table_in(part, "functionCall").get("id")) for part in parts}
            found.append({"role": "model", "parts": parts})
        elif message.role == "user":
            found.append({"role": "user", "parts": [{"text": message.text}]})
        role = message.role
    return found


def _answer(message: Message) -> list[dict[str, Any]]:
    """Return the parts of an answer: as they came, or else made of its text and calls."""
    parts = _joined(returned(message, Gemini.name))
    if not parts and message.text.strip():
        parts.append({"text": message.text})
    known = sum("functionCall" in part for part in parts)
    for call in message.calls[known:]:
        made = {"id": call.id, "name": call.name, "args": arguments_of(call) or {}}
        parts.append({"functionCall": made, "thoughtSignature": UNSIGNED})
    return parts


def _joined(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of a stream with the pieces of a text as one; signed parts stay alone."""
    found: list[dict[str, Any]] = []
    for part in parts:
        last = found[-1] if found else {}
        if part.keys() == last.keys() <= {"text", "thought"} and "text" in part:
            found[-1] = {**last, "text": f"{last['text']}{part['text']}"}
        else:
            found.append(part)
    return found


class Translator:
    """Turns the objects of a stream into objects of OpenAI's stream."""

    def __init__(self) -> None:
        self._calls = 0

    def chunk(self, found: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an object of the stream as one of OpenAI's; errors as they are."""
        blocked = table_in(found, "promptFeedback").get("blockReason")
        if blocked:
            return delta({}, CUT_OFF, f"the prompt is blocked: {blocked}")
        candidates = found.get("candidates")
        candidate = candidates[0] if isinstance(candidates, list) and candidates else {}
        candidate = candidate if isinstance(candidate, Mapping) else {}
        parts = table_in(candidate, "content").get("parts")
        parts = parts if isinstance(parts, list) else []
        fields = self._fields([part for part in parts if isinstance(part, dict)])
        reason = candidate.get("finishReason")
        if reason == MALFORMED:
            written = str(candidate.get("finishMessage") or "")
            fields.setdefault("tool_calls", []).append(self._call(None, MALFORMED_CALL, written))
            reason = "STOP"
        end = ENDS.get(str(reason), CUT_OFF) if reason else None
        return {**delta(fields, end, str(reason)), **_counted(table_in(found, "usageMetadata"))}

    def _fields(self, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the fields of a delta for some parts."""
        fields: dict[str, Any] = {"thinking": "", "content": "", RETURNED: {Gemini.name: [*parts]}}
        for part in parts:
            field = "thinking" if part.get("thought") is True else "content"
            fields[field] += str(part.get("text") or "")
            if call := table_in(part, "functionCall"):
                arguments = json.dumps(table_in(call, "args"), ensure_ascii=False)
                made = self._call(call.get("id"), call.get("name"), arguments)
                fields.setdefault("tool_calls", []).append(made)
        return fields

    def _call(self, key: object, name: object, arguments: str) -> dict[str, Any]:
        """Return a call, which is always whole, as one of OpenAI's stream."""
        self._calls += 1
        function = {"name": name, "arguments": arguments}
        return {"index": self._calls - 1, "id": key, "function": function}


def _counted(usage: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the counts so far, in OpenAI's fields."""
    if not usage:
        return {}
    written = positive(usage, "candidatesTokenCount") + positive(usage, "thoughtsTokenCount")
    return {
        "usage": {
            "prompt_tokens": positive(usage, "promptTokenCount"),
            "completion_tokens": written,
            "prompt_tokens_details": {"cached_tokens": positive(usage, "cachedContentTokenCount")},
        }
    }
