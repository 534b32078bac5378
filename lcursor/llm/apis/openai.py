"""The chat API of OpenAI, which most servers have. Pure.

Source: the OpenAI API reference.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from lcursor.llm import tool_calls
from lcursor.llm.apis.api import Api, Quirk, Request
from lcursor.llm.records import Message, SamplingParams, Served, ToolSpec


class OpenAI(Api):
    """The API."""

    name = "openai"
    summary = "OpenAI's chat API, which most servers have"

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
        body: dict[str, Any] = {"messages": tool_calls.openai_rows(messages), "stream": True}
        if tools:
            body["tools"] = tool_calls.listed(tools)
        if served.model:
            body["model"] = served.model
        if "no_temperature" not in quirks:
            body["temperature"] = sampling.temperature
        if sampling.max_tokens and "no_limit" not in quirks:
            is_new = "completion_tokens" in quirks
            body["max_completion_tokens" if is_new else "max_tokens"] = sampling.max_tokens
        if "no_usage" not in quirks:
            body["stream_options"] = {"include_usage": True}
        if sampling.stop and "no_stop" not in quirks:
            body["stop"] = list(sampling.stop)
        if sampling.seed >= 0 and "no_seed" not in quirks:
            body["seed"] = sampling.seed
        if sampling.schema is not None and "no_schema" not in quirks:
            schema = {"name": "answer", "schema": dict(sampling.schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return f"{api}/chat/completions", body
