"""Which kind of server answers at an address, found out by questions that cost it nothing.

Both slots ask by these rules. Must not know how to ask, it is given that, nor what is asked of a
server afterwards. Runs on the thread that calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from lcursor.errors import (
    ServerDenied,
    ServerError,
    ServerFailed,
    ServerGarbled,
    ServerInsecure,
    ServerSlow,
    ServerUnreachable,
)
from lcursor.http import address

Kind = Literal["llama.cpp", "ollama", "openai"]

NOT_NOW = (500, 502, 503, 504)
"""What a server answers that is not ready, llama-server while it loads its model."""


@dataclass(frozen=True, slots=True)
class Found:
    """A server that was recognized."""

    kind: Kind
    path: str
    """That it was recognized by."""
    said: Mapping[str, Any]
    """What it said there."""


def path_of(kind: Kind, api: str = "/v1") -> str:
    """Return the path that a kind answers in its own way."""
    return _PATHS[kind] or f"{api}/models"


def is_it(kind: Kind, said: Mapping[str, Any]) -> bool:
    """Return whether an answer at that path is the kind's."""
    if kind == "llama.cpp":  # the settings of its slots
        return isinstance(said.get("default_generation_settings"), Mapping)
    if kind == "ollama":
        return isinstance(said.get("version"), str)
    return isinstance(said.get("data"), list)


def find(
    ask: Callable[[str], Mapping[str, Any]], *, api: str = "/v1", has_key: bool
) -> Found | None:
    """Return what a server is; None where it answers and is none of those that are known.

    Args:
        ask: asks it for a path; raises `ServerError`.
        api: what stands before OpenAI's paths.
        has_key: whether it is sent a key.

    Raises:
        ServerError: nothing answers, it wants a key, or it is not ready.
    """
    reason: ServerError | None = None
    for kind in KINDS:
        path = path_of(kind, api)
        try:
            said = ask(path)
        except (ServerUnreachable, ServerInsecure, ServerSlow):
            raise
        except ServerError as e:
            is_locked = isinstance(e, ServerDenied) and not has_key
            if is_locked or e.status in NOT_NOW:
                raise
            # Others refuse, each in its way, what they do not know.
            reason = reason or (e if isinstance(e, (ServerDenied, ServerFailed)) else None)
            continue
        if is_it(kind, said):
            return Found(kind, path, said)
    if reason is not None:
        raise reason
    return None


def unknown(who: str, setting: str, api: str = "/v1") -> ServerGarbled:
    """Return what is wrong with a server that is none of those that are known.

    Args:
        who: its name.
        setting: what its settings begin with; see `address.named`.
        api: what stands before OpenAI's paths.
    """
    return ServerGarbled(
        f"{who} is neither a llama-server nor an Ollama, and has no {api}/models",
        f"Correct {address.named(setting, 'url')}, or name what it speaks in "
        f"{address.named(setting, 'api')}",
    )


def named(rows: object, field: str) -> list[str]:
    """Return the names in a list of models: `id` of OpenAI's, `name` of Ollama's."""
    found = rows if isinstance(rows, list) else []
    return [str(row[field]) for row in found if isinstance(row, Mapping) and row.get(field)]


_PATHS: Mapping[Kind, str] = MappingProxyType(
    {"llama.cpp": "/props", "ollama": "/api/version", "openai": ""}
)
KINDS: tuple[Kind, ...] = tuple(_PATHS)
"""In the order in which they are tried: llama-server and Ollama answer the last question as well.
"""
