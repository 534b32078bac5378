"""Detect the kind of server at an address, with cheap requests.

Used for completion and for chat. Blocks the calling thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

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

Kind = Literal["llama.cpp", "ollama", "openai"]
Ask: TypeAlias = Callable[[str], Mapping[str, Any]]
"""Requests a path from a server; raises `ServerError`."""
AUTO = "auto"


class Sign(NamedTuple):
    """What identifies a kind of server: the type of a field in the reply at a path."""

    path: str
    """`{api}` is the prefix of OpenAI's paths."""
    field: str
    type: type
    is_list: bool = False
    """Whether it is a list of models, which is optional if a model is configured."""


SIGNS: Mapping[Kind, Sign] = MappingProxyType(
    {
        "llama.cpp": Sign("/props", "default_generation_settings", Mapping),
        "ollama": Sign("/api/version", "version", str),
        "openai": Sign("{api}/models", "data", list, is_list=True),
    }
)
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


def kind_of(name: str, setting: str) -> Kind | Literal[""]:
    """Return a configured kind; "" to detect it.

    Args:
        setting: prefix of the server's settings: `models.NAME.`.

    Raises:
        ConfigInvalid: there is no such kind.
    """
    if name == AUTO:
        return ""
    found = next((kind for kind in SIGNS if kind == name), None)
    if found is None:
        known = ", ".join((AUTO, *SIGNS))
        raise ConfigInvalid(
            f"{setting}api: there is no {name!r} for completion", f"Set it to one of {known}"
        )
    return found


def find(
    get: Ask,
    kind: Kind | Literal[""],
    *,
    api: str,
    has_key: bool,
    model: str,
    server: str,
    setting: str,
) -> Detected:
    """Return the kind of a server, configured or detected.

    A server with a configured model that is of no other kind is taken for one with OpenAI's API,
    where a list of models is optional.

    Args:
        kind: the configured one; "" to detect it.
        api: the prefix of OpenAI's paths.
        model: the configured one; "" for none.
        server: its name for messages.
        setting: prefix of its settings.

    Raises:
        ServerError: nothing answers, or it is of another or no known kind.
    """
    if kind:
        sign = SIGNS[kind]
        reply = check(get, kind, sign, api=api, model=model, server=server, setting=setting)
        return Detected(kind, sign.path.format(api=api), reply)
    found = detect(get, api=api, has_key=has_key)
    if found is not None:
        return found
    if not model:
        raise unknown_server(server, setting, api)
    return Detected("openai", f"{api}/models", {})


def check(
    get: Ask, kind: str, sign: Sign, *, api: str, model: str, server: str, setting: str
) -> Mapping[str, Any]:
    """Return the reply at the path of a configured kind's sign; {} if it is optional.

    Args:
        kind: its name for messages.

    Raises:
        ServerError: nothing answers, or it is of another kind.
    """
    may_list_nothing = sign.is_list and bool(model)
    reply: Mapping[str, Any] = {}
    try:
        reply = get(sign.path.format(api=api))
    except (ServerGarbled, ServerDenied, ServerFailed):
        if not may_list_nothing:
            raise  # else the list may need other rights than an answer
    if not _matches(sign, reply) and (reply or not may_list_nothing):
        raise ServerGarbled(f"{server} is not a {kind} server", f"Correct {setting}api")
    return reply


def _matches(sign: Sign, reply: Mapping[str, Any]) -> bool:
    """Return whether a reply identifies a kind."""
    return isinstance(reply.get(sign.field), sign.type)


def detect(get: Ask, *, api: str = "/v1", has_key: bool) -> Detected | None:
    """Return the kind of a server; None if it answers and is unknown.

    Args:
        api: the prefix of OpenAI's paths.

    Raises:
        ServerError: nothing answers, it requires a key, or it is not ready.
    """
    reason: ServerError | None = None
    for kind, sign in SIGNS.items():
        path = sign.path.format(api=api)
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
        if _matches(sign, reply):
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


def only_model(
    names: Sequence[str],
    server: str,
    setting: str,
    is_suitable: Callable[[str], bool] = lambda _: True,
) -> str:
    """Return the only model of a server, or the only suitable one.

    Raises:
        ServerModelMissing: it lists no model.
        ConfigInvalid: it has several models, of which not exactly one is suitable.
    """
    candidates = names if len(names) == 1 else [name for name in names if is_suitable(name)]
    if len(candidates) == 1:
        return candidates[0]
    hint = f"Name one in {setting}model"
    if not names:
        raise ServerModelMissing(f"{server} lists no model", hint)
    raise ConfigInvalid(f"{server} has several models: {', '.join(names[:8])}", hint)
