"""The API of llama-server: OpenAI's with more fields, and its own to continue tokens. Pure.

Source: llama.cpp's tools/server/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import PurePath
from typing import Any

from lcursor.errors import ServerError
from lcursor.http import detect
from lcursor.llm import tool_calls
from lcursor.llm.apis.api import Ask, Quirk, Request, positive, smaller_context, table_in
from lcursor.llm.apis.openai import OpenAI
from lcursor.llm.records import (
    Message,
    SamplingParams,
    Served,
    ServedModel,
    TokenPrompt,
    ToolSpec,
)


class LlamaServer(OpenAI):
    """The API."""

    name = "llama.cpp"
    summary = "llama-server"
    sign = detect.SIGNS["llama.cpp"]

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
        path, body = super().request(served, api, messages, tools, sampling, quirks)
        body |= {"cache_prompt": True, "return_progress": served.can_progress}
        if sampling.grammar and "no_schema" not in quirks:
            body["grammar"] = sampling.grammar
        if sampling.has_counts:
            body["timings_per_token"] = True
        return path, body

    def describe(
        self, target: ServedModel, reply: Mapping[str, Any], api: str, ask: Ask, server: str
    ) -> Served:
        """Read `/props`."""

        def try_to_ask(path: str) -> dict[str, Any]:
            try:
                return ask(path)
            except ServerError:
                return {}

        def can_save_slots() -> bool:
            try:  # a server without a folder for saved slots rejects all actions
                ask("/slots/0?action=none", {"filename": "none"})
            except ServerError as e:
                return e.status in (400, 500)
            return False

        alias, path = str(reply.get("model_alias") or ""), str(reply.get("model_path") or "")
        alias = "" if alias == path else alias  # not chosen by the user
        names = [name for name in (alias, PurePath(path).name) if name][:1]
        if reply.get("role") == "router":
            names = detect.model_names(try_to_ask(f"{api}/models").get("data"), "id")
        model = target.model or detect.only_model(names, server, target.setting)
        tokens = positive(reply["default_generation_settings"], "n_ctx")
        if not tokens and model:
            more = try_to_ask(f"/props?model={model}").get("default_generation_settings")
            tokens = positive(more, "n_ctx")
        return Served(
            self.name,
            model,
            smaller_context(target, tokens),
            can_count=True,
            can_progress=True,
            # Any request but the first makes a sleeping server load its model, which takes long.
            can_save_slots=reply.get("is_sleeping") is True or can_save_slots(),
            slots=max(positive(reply, "total_slots"), 1),
            models=tuple(names),
            has_tools=table_in(reply, "chat_template_caps").get("supports_tools") is True,
        )

    def count_tokens(self, served: Served, what: str | Sequence[Message], ask: Ask) -> int | None:
        """Return the tokens of a text or a prompt."""
        is_prompt = not isinstance(what, str)
        content = what
        if not isinstance(what, str):
            rows = tool_calls.openai_rows(what)
            content = ask("/apply-template", {"messages": rows}).get("prompt") or ""
        options = {"add_special": is_prompt, "parse_special": is_prompt}
        found = ask("/tokenize", {"content": content, **options})
        numbers = found.get("tokens")
        return len(numbers) if isinstance(numbers, list) else None


def completion_request(served: Served, prompt: TokenPrompt, sampling: SamplingParams) -> Request:
    """Return a request to continue tokens."""
    body: dict[str, Any] = {
        "prompt": list(prompt.ids),
        "stream": True,
        "return_tokens": True,
        "cache_prompt": True,
        "timings_per_token": True,
        "temperature": sampling.temperature,
        "n_predict": sampling.max_tokens or -1,
    }
    if served.model:
        body["model"] = served.model
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.seed >= 0:
        body["seed"] = sampling.seed
    if sampling.grammar:
        body["grammar"] = sampling.grammar
    if sampling.preserved:
        body["preserved_tokens"] = list(sampling.preserved)
    if sampling.grammar and sampling.trigger:
        body["grammar_lazy"] = True
        body["grammar_triggers"] = [{"type": 1, "value": sampling.trigger}]  # 1 is a text
    return "/completion", body
