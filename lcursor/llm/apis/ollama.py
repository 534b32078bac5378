"""The API of Ollama: its OpenAI API cannot set the context size. Pure.

Source: Ollama's docs/api.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from lcursor.http import detect
from lcursor.llm import tool_calls
from lcursor.llm.apis.api import Api, Ask, Quirk, Request, positive, table_in
from lcursor.llm.records import Message, SamplingParams, Served, ServedModel, ToolSpec

CONTEXT_TOKENS: Final = 16384
"""Context to request if none is configured; the server's default may be 4,096."""
KEEP_ALIVE: Final = "30m"
"""How long the server keeps the model loaded; its default of 5 minutes is too short."""


class Ollama(Api):
    """The API."""

    name = "ollama"
    summary = "Ollama"
    sign = detect.SIGNS["ollama"]

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
        options: dict[str, Any] = {"temperature": sampling.temperature}
        if served.context_tokens:
            options["num_ctx"] = served.context_tokens
        if sampling.max_tokens:
            options["num_predict"] = sampling.max_tokens
        if sampling.stop:
            options["stop"] = list(sampling.stop)
        if sampling.seed >= 0:
            options["seed"] = sampling.seed
        body = {
            "model": served.model,
            "messages": tool_calls.ollama_rows(messages),
            "stream": True,
            "keep_alive": KEEP_ALIVE,
            # Otherwise it silently truncates the prompt.
            "truncate": False,
            "shift": False,
            "options": options,
        }
        if sampling.schema is not None and "no_schema" not in quirks:
            body["format"] = dict(sampling.schema)
        if tools:
            body["tools"] = tool_calls.listed(tools)
        return "/api/chat", body

    def describe(
        self, target: ServedModel, reply: Mapping[str, Any], api: str, ask: Ask, server: str
    ) -> Served:
        """Read the list of models, and what the server tells of one."""
        names = detect.model_names(ask("/api/tags").get("models"), "name")
        model = target.model or detect.only_model(names, server, target.setting)
        shown = ask("/api/show", {"model": model})
        tokens = target.context_tokens
        if not tokens:
            info = table_in(shown, "model_info")
            lengths = [positive(info, key) for key in info if key.endswith(".context_length")]
            trained = max(lengths, default=0)
            setting = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.M)
            tokens = int(setting[1]) if setting else min(trained or CONTEXT_TOKENS, CONTEXT_TOKENS)
        can = shown.get("capabilities")
        has_tools = isinstance(can, list) and "tools" in can
        return Served(self.name, model, tokens, models=tuple(names), has_tools=has_tools)
