"""Detect the kind of server at an address, with cheap requests.

Used for completion and for chat. Blocks the calling thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from lcursor.errors import (
    ServerDenied,
    ServerError,
    ServerFailed,
    ServerGarbled,
    ServerInsecure,
    ServerSlow,
    ServerUnreachable,
)

Kind = Literal["llama.cpp", "ollama", "openai"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds in the order of detection: llama-server and Ollama also have OpenAI's API."""
NOT_READY = (500, 502, 503, 504)
"""Statuses of a server that is not ready, such as a llama-server that loads its model."""


@dataclass(frozen=True, slots=True)
class Detected:
    """A recognized server."""

    kind: Kind
    path: str
    """The path that identified it."""
    reply: Mapping[str, Any]


def probe_path(kind: Kind, api: str = "/v1") -> str:
    """Return the path whose reply identifies a kind of server."""
    return {"llama.cpp": "/props", "ollama": "/api/version", "openai": f"{api}/models"}[kind]


def matches(kind: Kind, reply: Mapping[str, Any]) -> bool:
    """Return whether a reply at `probe_path` identifies the kind."""
    if kind == "llama.cpp":
        return isinstance(reply.get("default_generation_settings"), Mapping)
    if kind == "ollama":
        return isinstance(reply.get("version"), str)
    return isinstance(reply.get("data"), list)


def detect(
    get: Callable[[str], Mapping[str, Any]], *, api: str = "/v1", has_key: bool
) -> Detected | None:
    """Return the kind of a server; None if it answers and is unknown.

    Args:
        get: requests a path from the server; raises `ServerError`.
        api: the prefix of OpenAI's paths.

    Raises:
        ServerError: nothing answers, it requires a key, or it is not ready.
    """
    reason: ServerError | None = None
    for kind in KINDS:
        path = probe_path(kind, api)
        try:
            reply = get(path)
        except (ServerUnreachable, ServerInsecure, ServerSlow):
            raise
        except ServerError as e:
            needs_key = isinstance(e, ServerDenied) and not has_key
            if needs_key or e.status in NOT_READY:
                raise
            # Servers respond to unknown paths in many ways.
            reason = reason or (e if isinstance(e, (ServerDenied, ServerFailed)) else None)
            continue
        if matches(kind, reply):
            return Detected(kind, path, reply)
    if reason is not None:
        raise reason
    return None


def unknown_server(server: str, setting: str, api: str = "/v1") -> ServerGarbled:
    """Return the error for a server of unknown kind; `setting` is the prefix of its settings."""
    return ServerGarbled(
        f"{server} is neither a llama-server nor an Ollama, and has no {api}/models",
        f"Correct {setting}url, or set {setting}api",
    )


def model_names(rows: object, field: str) -> list[str]:
    """Return the names in a list of models: `id` in OpenAI's, `name` in Ollama's."""
    found = rows if isinstance(rows, list) else []
    return [str(row[field]) for row in found if isinstance(row, Mapping) and row.get(field)]
