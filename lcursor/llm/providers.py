"""The differences between chat servers: probing, capabilities, requests and unsupported fields.

Builds requests and parses replies; callers pass a function that sends them. Runs on the caller's
thread.

Source: llama.cpp's tools/server/README.md, Ollama's docs/api.md, the OpenAI API reference, vLLM's
`/tokenize`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import PurePath
from typing import Any, Literal

from lcursor.errors import ServerError
from lcursor.http import detect
from lcursor.llm import anthropic, tool_calls
from lcursor.llm.records import (
    Message,
    SamplingParams,
    Served,
    ServedModel,
    TokenPrompt,
    ToolSpec,
)

OLLAMA_TOKENS = 16384
"""Context to request from Ollama if none is configured; its default may be 4,096."""
CONTEXT_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Fields with a model's context in lists: vLLM; OpenRouter, Together; Groq; LM Studio."""
Quirk = Literal[
    "no_usage",
    "no_limit",
    "completion_tokens",
    "no_temperature",
    "no_system",
    "no_schema",
    "no_stop",
    "no_seed",
    "no_tools",
]
"""A part of a request that a server does not support."""
UNSUPPORTED_STATUSES = (400, 404, 415, 422, 500, 501)
"""Statuses of servers for an unsupported field."""
KEEP_ALIVE = "30m"
"""How long Ollama keeps the model loaded; its default of 5 minutes is too short."""
Ask = Callable[..., dict[str, Any]]
"""Sends a GET, or a POST with a body, to a path; returns the object or raises `ServerError`."""
_QUIRK_SIGNS: tuple[tuple[Quirk, re.Pattern[str]], ...] = (
    (
        "no_tools",
        re.compile(
            r"\btools?\b.{0,60}(support|requires?\b|unknown|unrecognized)"
            r"|(support|unknown|unrecognized|unexpected).{0,60}\btools?\b|^tools\b",
            re.I,
        ),
    ),
    ("no_usage", re.compile(r"stream_options|include_usage", re.I)),
    ("no_limit", re.compile(r"max_(completion_)?tokens.{0,80}(large|most|exceed|maximum)", re.I)),
    (
        "completion_tokens",
        re.compile(r"max_completion_tokens|max_tokens.{0,40}not supported", re.I),
    ),
    ("no_temperature", re.compile(r"temperature", re.I)),
    ("no_schema", re.compile(r"response_format|json_schema|structured.?output|grammar", re.I)),
    ("no_stop", re.compile(r"^stop\b|[\"'`]stop[\"'`]", re.I)),
    ("no_seed", re.compile(r"^seed\b|[\"'`]seed[\"'`]", re.I)),
    ("no_system", re.compile(r"system.{0,20}(role|message|prompt).{0,40}support", re.I)),
)


# Probing.


def probe(target: ServedModel, api: str, ask: Ask, server: str) -> Served:
    """Detect the kind and capabilities of a target's server, with cheap requests.

    Args:
        api: the prefix of OpenAI's paths.
        server: its name for messages.

    Raises:
        ServerError: nothing answers, or the server is unusable.
        ConfigInvalid: the settings do not name one of its models.
    """
    found = detect.find(
        ask,
        target.kind,
        api=api,
        has_key=bool(target.key),
        model=target.model,
        server=server,
        setting=target.setting,
    )
    if found.kind == "llama.cpp":
        return _probe_llama(target, found.reply, api, ask, server)
    if found.kind == "ollama":
        return _probe_ollama(target, ask, server)
    return _probe_openai(target, found.reply, server)


def _probe_llama(
    target: ServedModel, props: Mapping[str, Any], api: str, ask: Ask, server: str
) -> Served:
    """Read `/props` of a llama-server."""

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

    alias, path = str(props.get("model_alias") or ""), str(props.get("model_path") or "")
    alias = "" if alias == path else alias  # not chosen by the user
    names = [name for name in (alias, PurePath(path).name) if name][:1]
    if props.get("role") == "router":
        names = detect.model_names(try_to_ask(f"{api}/models").get("data"), "id")
    model = target.model or detect.only_model(names, server, target.setting)
    tokens = _positive(props["default_generation_settings"], "n_ctx")
    if not tokens and model:
        more = try_to_ask(f"/props?model={model}").get("default_generation_settings")
        tokens = _positive(more, "n_ctx")
    return Served(
        "llama.cpp",
        model,
        _smaller_context(target, tokens),
        can_count=True,
        can_progress=True,
        # Any request but the first would make a sleeping server load its model, which takes long.
        can_save_slots=props.get("is_sleeping") is True or can_save_slots(),
        slots=max(_positive(props, "total_slots"), 1),
        models=tuple(names),
        has_tools=_template_has_tools(props),
    )


def _template_has_tools(props: Mapping[str, Any]) -> bool:
    found = props.get("chat_template_caps")
    return isinstance(found, Mapping) and found.get("supports_tools") is True


def _probe_ollama(target: ServedModel, ask: Ask, server: str) -> Served:
    names = detect.model_names(ask("/api/tags").get("models"), "name")
    model = target.model or detect.only_model(names, server, target.setting)
    shown = ask("/api/show", {"model": model})
    tokens = target.context_tokens
    if not tokens:
        info = shown.get("model_info")
        info = info if isinstance(info, Mapping) else {}
        lengths = [_positive(info, key) for key in info if key.endswith(".context_length")]
        trained = max(lengths, default=0)
        setting = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.M)
        tokens = int(setting[1]) if setting else min(trained or OLLAMA_TOKENS, OLLAMA_TOKENS)
    can = shown.get("capabilities")
    has_tools = isinstance(can, list) and "tools" in can
    return Served("ollama", model, tokens, models=tuple(names), has_tools=has_tools)


def _probe_openai(target: ServedModel, listed: Mapping[str, Any], server: str) -> Served:
    rows = listed.get("data")
    names = detect.model_names(rows, "id")
    model = target.model or detect.only_model(names, server, target.setting)
    rows = [row for row in rows or [] if isinstance(row, Mapping)]
    row: Mapping[str, Any] = next((row for row in rows if str(row.get("id")) == model), {})
    tokens = next((_positive(row, name) for name in CONTEXT_FIELDS if _positive(row, name)), 0)
    is_vllm = "max_model_len" in row
    return Served(
        "anthropic" if target.kind == "anthropic" else "openai",
        model,
        _smaller_context(target, tokens),
        is_vllm,
        models=tuple(names),
        has_tools=True,
    )


def _smaller_context(target: ServedModel, tokens: int) -> int:
    """Return the configured context, unless the server has less."""
    wanted = target.context_tokens
    return min(wanted, tokens) if wanted and tokens else wanted or tokens


def _positive(table: object, field: str) -> int:
    value = table.get(field) if isinstance(table, Mapping) else None
    return value if isinstance(value, int) and value > 0 else 0


# Requests.


def quirk_of(words: str, field: str) -> Quirk | None:
    """Return the unsupported part that an error names; None for other errors.

    Args:
        words: the server's message.
        field: the field in the error; "" for none.
    """
    return next((name for name, sign in _QUIRK_SIGNS if sign.search(f"{field} {words}")), None)


def chat_request(
    served: Served,
    api: str,
    messages: Sequence[Message],
    sampling: SamplingParams,
    quirks: Set[Quirk],
) -> tuple[str, dict[str, Any]]:
    """Return the path and the body of a request for an answer."""
    tools = sampling.tools if "no_tools" not in quirks else ()
    if sampling.tools and not tools:
        messages = tool_calls.as_text(messages, sampling.tools)
    if served.kind == "anthropic":
        return f"{api}{anthropic.PATH}", anthropic.request(
            served.model, messages, tools, sampling, quirks
        )
    if served.kind == "ollama":
        return "/api/chat", _ollama_request(served, messages, tools, sampling, quirks)
    body: dict[str, Any] = {"messages": message_rows(messages, quirks), "stream": True}
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
    if served.kind == "llama.cpp":
        body |= {"cache_prompt": True, "return_progress": served.can_progress}
        if sampling.slot >= 0:
            body["id_slot"] = sampling.slot
        if sampling.grammar and "no_schema" not in quirks:
            body["grammar"] = sampling.grammar
        if sampling.has_counts:
            body["timings_per_token"] = True
    return f"{api}/chat/completions", body


def chunks(served: Served | None) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return what turns the objects of a new stream into those that `ResponseReader` reads."""
    if served is not None and served.kind == "anthropic":
        return anthropic.Translator().chunk
    return lambda found: found


def completion_request(
    served: Served, prompt: TokenPrompt, sampling: SamplingParams
) -> tuple[str, dict[str, Any]]:
    """Return the path and the body of a llama-server's request to continue tokens."""
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
    if sampling.slot >= 0:
        body["id_slot"] = sampling.slot
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


def message_rows(messages: Sequence[Message], quirks: Set[Quirk]) -> list[dict[str, Any]]:
    """Return messages in the format of a request."""
    rows = [
        tool_calls.openai_row(message)
        if message.calls or message.role == "tool"
        else {"role": message.role, "content": message.text}
        for message in messages
    ]
    if "no_system" in quirks and len(rows) > 1 and rows[0]["role"] == "system":
        first = {**rows[1], "content": f"{rows[0]['content']}\n\n{rows[1]['content']}"}
        rows = [first, *rows[2:]] if first["role"] == "user" else rows
    return rows


def count_tokens(
    served: Served, what: str | Sequence[Message], quirks: Set[Quirk], ask: Ask
) -> int | None:
    """Return the tokens of a text or a prompt; None if the server cannot count."""
    if served.kind != "llama.cpp":  # vLLM
        body: dict[str, Any] = {"model": served.model}
        if isinstance(what, str):
            body |= {"prompt": what, "add_special_tokens": False}
        else:
            body["messages"] = message_rows(what, quirks)
        count = ask("/tokenize", body).get("count")
        return count if isinstance(count, int) else None
    is_prompt = not isinstance(what, str)
    content = what
    if not isinstance(what, str):
        rows = message_rows(what, quirks)
        content = ask("/apply-template", {"messages": rows}).get("prompt") or ""
    options = {"add_special": is_prompt, "parse_special": is_prompt}
    found = ask("/tokenize", {"content": content, **options})
    numbers = found.get("tokens")
    return len(numbers) if isinstance(numbers, list) else None


def _ollama_request(
    served: Served,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    sampling: SamplingParams,
    quirks: Set[Quirk],
) -> dict[str, Any]:
    """Return a request of Ollama's own API: its OpenAI API cannot set the context size."""
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
    return body
