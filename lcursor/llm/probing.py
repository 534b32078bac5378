"""Finds out what a server of chats is and can do, with questions that cost it nothing.

Must not know how to ask: it is given that. Runs on the thread that calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, Protocol

from lcursor.errors import (
    ConfigInvalid,
    ServerDenied,
    ServerError,
    ServerFailed,
    ServerGarbled,
    ServerInsecure,
    ServerModelMissing,
    ServerSlow,
    ServerUnreachable,
)
from lcursor.http import address
from lcursor.llm.records import Served, Target

NOT_NOW = (500, 502, 503, 504)
"""What a server answers that is not ready, llama-server while it loads its model."""
OLLAMA_TOKENS = 16384
"""Context to ask Ollama for where nobody says one; its own may be 4,096, and costs no less to cut.
"""
LENGTHS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Where lists of models say how much one reads: vLLM; OpenRouter, Together; Groq; LM Studio."""


class Ask(Protocol):
    """Asks a server: a GET, or a POST with a body."""

    def __call__(self, path: str, body: dict[str, Any] | None = None, /) -> dict[str, Any]:
        """Return the object that comes back, or raise `ServerError`."""


def probe(target: Target, api: str, ask: Ask, who: str) -> Served:
    """Find out what a target's server is.

    Args:
        target: which, and what is known of it.
        api: what stands before OpenAI's paths.
        ask: asks it.
        who: its name, for messages.

    Raises:
        ServerError: nothing answers, or nothing that can be used.
        ConfigInvalid: it is not said which of its models to use.
    """
    look = _Look(target, api, ask, who)
    kinds: dict[str, tuple[str, Callable[[Mapping[str, Any]], Served | None]]] = {
        "llama.cpp": ("/props", look.llama),
        "ollama": ("/api/version", look.ollama),
        "openai": (f"{api}/models", look.openai),
    }
    if target.kind:
        return look.named(*kinds[target.kind])
    reason: ServerError | None = None
    for path, read in kinds.values():
        try:
            found = ask(path)
        except (ServerUnreachable, ServerInsecure, ServerSlow):
            raise
        except ServerError as e:
            is_locked = isinstance(e, ServerDenied) and not target.key
            if is_locked or e.status in NOT_NOW:
                raise
            # Others refuse, each in its way, what they do not know.
            reason = reason or (e if isinstance(e, (ServerDenied, ServerFailed)) else None)
            continue
        served = read(found)
        if served is not None:
            return served
    if target.model and reason is None:
        return look.openai({})  # type: ignore[return-value]  # it need not list what it has
    raise reason or ServerGarbled(
        f"{who} is neither a llama-server nor an Ollama, and has no {api}/models",
        f"Correct {address.named(target.setting, 'url')}, or name what it speaks in "
        f"{address.named(target.setting, 'api')}",
    )


class _Look:
    """Reads what each kind of server says of itself."""

    def __init__(self, target: Target, api: str, ask: Ask, who: str) -> None:
        self.target, self.api, self.ask, self.who = target, api, ask, who

    def named(self, path: str, read: Callable[[Mapping[str, Any]], Served | None]) -> Served:
        """Ask a server whose kind the user says."""
        try:
            found = self.ask(path)
        except ServerGarbled:
            if self.target.kind != "openai" or not self.target.model:
                raise
            found = {}  # a gateway need not list what it has
        served = read(found)
        if served is None:
            raise ServerGarbled(
                f"{self.who} is no {self.target.kind}",
                f"Correct {address.named(self.target.setting, 'api')}",
            )
        return served

    def llama(self, props: Mapping[str, Any]) -> Served | None:
        """Read `/props` of a llama-server."""
        settings = props.get("default_generation_settings")
        if not isinstance(settings, Mapping):
            return None
        alias, path = str(props.get("model_alias") or ""), str(props.get("model_path") or "")
        alias = "" if alias == path else alias  # nobody chose it
        names = [name for name in (alias, PurePath(path).name) if name][:1]
        if props.get("role") == "router":
            names = self._ids(self._try(f"{self.api}/models"))
        model = self.target.model or self._only(names)
        tokens = _count(settings, "n_ctx")
        if not tokens and model:
            more = self._try(f"/props?model={model}").get("default_generation_settings")
            tokens = _count(more, "n_ctx")
        return Served(
            "llama.cpp",
            model,
            self._least(tokens),
            can_count=True,
            can_progress=True,
            # Any question but the first would wake one that sleeps, which takes long.
            can_keep=props.get("is_sleeping") is True or self._can_keep(),
            slots=max(_count(props, "total_slots"), 1),
            models=tuple(names),
        )

    def ollama(self, version: Mapping[str, Any]) -> Served | None:
        """Read `/api/version`, and ask for the rest."""
        if not isinstance(version.get("version"), str):
            return None
        names = _named(self.ask("/api/tags").get("models"), "name")
        model = self.target.model or self._only(names)
        shown = self.ask("/api/show", {"model": model})
        tokens = self.target.context_tokens
        if not tokens:
            info = shown.get("model_info")
            info = info if isinstance(info, Mapping) else {}
            lengths = [_count(info, key) for key in info if key.endswith(".context_length")]
            trained = max(lengths, default=0)
            asked = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.M)
            tokens = int(asked[1]) if asked else min(trained or OLLAMA_TOKENS, OLLAMA_TOKENS)
        return Served("ollama", model, tokens, models=tuple(names))

    def openai(self, listed: Mapping[str, Any]) -> Served | None:
        """Read a list of models."""
        rows = listed.get("data")
        if not isinstance(rows, list) and (listed or not self.target.model):
            return None
        names = self._ids(listed)
        model = self.target.model or self._only(names)
        row: Mapping[str, Any] = next((one for one in rows or [] if _id(one) == model), {})
        tokens = next((_count(row, name) for name in LENGTHS if _count(row, name)), 0)
        is_vllm = "max_model_len" in row
        return Served("openai", model, self._least(tokens), is_vllm, models=tuple(names))

    def _can_keep(self) -> bool:
        """Whether slots can be saved: a server without a folder for them refuses any action."""
        try:
            self.ask("/slots/0?action=none", {"filename": "none"})
        except ServerError as e:
            return e.status in (400, 500)
        return False

    def _least(self, tokens: int) -> int:
        """Return the context: what the user says, if the server does not say that it has less."""
        wanted = self.target.context_tokens
        return min(wanted, tokens) if wanted and tokens else wanted or tokens

    def _try(self, path: str) -> dict[str, Any]:
        try:
            return self.ask(path)
        except ServerError:
            return {}

    def _ids(self, listed: Mapping[str, Any]) -> list[str]:
        return _named(listed.get("data"), "id")

    def _only(self, names: list[str]) -> str:
        """Return the one model that is meant."""
        if len(names) == 1:
            return names[0]
        where = address.named(self.target.setting, "model")
        if not names:
            raise ServerModelMissing(f"{self.who} names no model", f"Name one in {where}")
        raise ConfigInvalid(
            f"{self.who} has several models: {', '.join(names[:8])}", f"Name one in {where}"
        )


def _count(table: object, field: str) -> int:
    value = table.get(field) if isinstance(table, Mapping) else None
    return value if isinstance(value, int) and value > 0 else 0


def _id(row: object) -> str:
    return str(row.get("id")) if isinstance(row, Mapping) else ""


def _named(rows: object, field: str) -> list[str]:
    found = rows if isinstance(rows, list) else []
    return [str(row[field]) for row in found if isinstance(row, Mapping) and row.get(field)]
