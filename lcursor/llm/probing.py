"""Finds out what a server of chats is and can do, with questions that cost it nothing.

Must not know how to ask: it is given that. Runs on the thread that calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, Protocol

from lcursor.errors import ConfigInvalid, ServerError, ServerGarbled, ServerModelMissing
from lcursor.http import detect, endpoint
from lcursor.http.detect import Detected, Kind
from lcursor.llm.records import Served, Target

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
    found = look.named(target.kind) if target.kind else None
    found = found or detect.detect(ask, api=api, has_key=bool(target.key))
    if found is None and target.model:
        return look.openai({})  # it need not list what it has
    if found is None:
        raise detect.unknown_server(who, target.setting, api)
    reads: Mapping[Kind, Callable[[Mapping[str, Any]], Served]] = {
        "llama.cpp": look.llama,
        "ollama": look.ollama,
        "openai": look.openai,
    }
    return reads[found.kind](found.reply)


class _Look:
    """Reads what each kind of server says of itself."""

    def __init__(self, target: Target, api: str, ask: Ask, who: str) -> None:
        self.target, self.api, self.ask, self.who = target, api, ask, who

    def named(self, name: Kind) -> Detected:
        """Ask a server whose kind the user says."""
        path, is_gateway = detect.probe_path(name, self.api), name == "openai" and self.target.model
        try:
            said = self.ask(path)
        except ServerGarbled:
            if not is_gateway:
                raise
            said = {}
        # A gateway need not list anything.
        if not detect.matches(name, said) and (said or not is_gateway):
            setting = endpoint.setting_name(self.target.setting, "api")
            raise ServerGarbled(f"{self.who} is no {name}", f"Correct {setting}")
        return Detected(name, path, said)

    def llama(self, props: Mapping[str, Any]) -> Served:
        """Read `/props` of a llama-server."""
        settings = props["default_generation_settings"]
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

    def ollama(self, _: Mapping[str, Any]) -> Served:
        """Ask for all but its version."""
        names = detect.model_names(self.ask("/api/tags").get("models"), "name")
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

    def openai(self, listed: Mapping[str, Any]) -> Served:
        """Read a list of models."""
        rows = listed.get("data")
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
        return detect.model_names(listed.get("data"), "id")

    def _only(self, names: list[str]) -> str:
        """Return the one model that is meant."""
        if len(names) == 1:
            return names[0]
        where = endpoint.setting_name(self.target.setting, "model")
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
