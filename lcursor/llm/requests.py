"""What is sent to a server of chats: addresses, bodies, and how they are bent to its quirks. Pure.

Source: llama.cpp's tools/server/README.md, Ollama's docs/api.md, the OpenAI API reference, vLLM's
`/tokenize`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from typing import Any, Literal

from lcursor.llm.records import Message, Served, Wish

Quirk = Literal[
    "no_usage",
    "completion_tokens",
    "no_temperature",
    "no_system",
    "no_schema",
    "no_stop",
    "no_seed",
]
REFUSALS = (400, 404, 415, 422, 500, 501)
"""Statuses with which servers refuse a field."""
KEEP_ALIVE = "30m"
"""How long Ollama keeps the model loaded; its own 5 minutes are over after a coffee."""
_VERSION = re.compile(r"v\d\w*")
_SIGNS: tuple[tuple[Quirk, re.Pattern[str]], ...] = (
    ("no_usage", re.compile(r"stream_options|include_usage", re.I)),
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


def split(url: str) -> tuple[str, str]:
    """Return where a server's own paths begin, and what stands before those of OpenAI's.

    People write the address with a version, and without; some have another version than 1.
    """
    url = url.rstrip("/")
    if url.endswith("/v1"):
        return url.removesuffix("/v1"), "/v1"
    path = url.partition("://")[2].partition("/")[2]
    is_versioned = any(_VERSION.fullmatch(part) for part in path.split("/"))
    return url, "" if is_versioned and not url.startswith("unix:") else "/v1"


def quirk(words: str, field: str) -> Quirk | None:
    """Return what a refusal is about, None when it is about no field of ours.

    Args:
        words: what the server says.
        field: that it names by itself; "" for none.
    """
    return next((name for name, sign in _SIGNS if sign.search(f"{field} {words}")), None)


def question(
    served: Served, api: str, messages: Sequence[Message], wish: Wish, quirks: Set[Quirk]
) -> tuple[str, dict[str, Any]]:
    """Return where a question goes, and the question."""
    rows = spoken(messages, quirks)
    if served.kind == "ollama":
        return "/api/chat", _ollama(served, rows, wish, quirks)
    body: dict[str, Any] = {"messages": rows, "stream": True}
    if served.model:
        body["model"] = served.model
    if "no_temperature" not in quirks:
        body["temperature"] = wish.temperature
    if wish.max_tokens:
        is_new = "completion_tokens" in quirks
        body["max_completion_tokens" if is_new else "max_tokens"] = wish.max_tokens
    if "no_usage" not in quirks:
        body["stream_options"] = {"include_usage": True}
    if wish.stop and "no_stop" not in quirks:
        body["stop"] = list(wish.stop)
    if wish.seed >= 0 and "no_seed" not in quirks:
        body["seed"] = wish.seed
    if wish.schema is not None and "no_schema" not in quirks:
        held = {"name": "answer", "schema": dict(wish.schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": held}
    if served.kind == "llama.cpp":
        body |= {"cache_prompt": True, "return_progress": served.can_progress}
        if wish.slot >= 0:
            body["id_slot"] = wish.slot
        if wish.grammar and "no_schema" not in quirks:
            body["grammar"] = wish.grammar
        if wish.has_counts:
            body["timings_per_token"] = True
    return f"{api}/chat/completions", body


def spoken(messages: Sequence[Message], quirks: Set[Quirk]) -> list[dict[str, str]]:
    """Return messages as they are sent."""
    rows = [{"role": message.role, "content": message.text} for message in messages]
    if "no_system" in quirks and len(rows) > 1 and rows[0]["role"] == "system":
        first = {**rows[1], "content": f"{rows[0]['content']}\n\n{rows[1]['content']}"}
        rows = [first, *rows[2:]] if first["role"] == "user" else rows
    return rows


def counting(
    served: Served,
    what: str | Sequence[Message],
    quirks: Set[Quirk],
    ask: Callable[[str, dict[str, Any]], dict[str, Any]],
) -> int | None:
    """Return how many tokens a server counts, None when it does not say.

    Args:
        served: the server.
        what: a text by itself, or a prompt.
        quirks: of the server.
        ask: posts to a path, and returns what comes back.
    """
    if served.kind != "llama.cpp":  # vLLM
        body: dict[str, Any] = {"model": served.model}
        if isinstance(what, str):
            body |= {"prompt": what, "add_special_tokens": False}
        else:
            body["messages"] = spoken(what, quirks)
        count = ask("/tokenize", body).get("count")
        return count if isinstance(count, int) else None
    special = not isinstance(what, str)
    content = what
    if not isinstance(what, str):
        content = ask("/apply-template", {"messages": spoken(what, quirks)}).get("prompt") or ""
    found = ask("/tokenize", {"content": content, "add_special": special, "parse_special": special})
    numbers = found.get("tokens")
    return len(numbers) if isinstance(numbers, list) else None


def _ollama(
    served: Served, rows: list[dict[str, str]], wish: Wish, quirks: Set[Quirk]
) -> dict[str, Any]:
    """By Ollama's own API: the other one cannot say how long the context shall be."""
    options: dict[str, Any] = {"temperature": wish.temperature}
    if served.context_tokens:
        options["num_ctx"] = served.context_tokens
    if wish.max_tokens:
        options["num_predict"] = wish.max_tokens
    if wish.stop:
        options["stop"] = list(wish.stop)
    if wish.seed >= 0:
        options["seed"] = wish.seed
    body = {
        "model": served.model,
        "messages": rows,
        "stream": True,
        "keep_alive": KEEP_ALIVE,
        # Else it drops what does not fit, and says nothing.
        "truncate": False,
        "shift": False,
        "options": options,
    }
    if wish.schema is not None and "no_schema" not in quirks:
        body["format"] = dict(wish.schema)
    return body
