"""The messages between Neovim and the host, with their fields: a module for each feature.

`lua/lcursor/protocol.lua` is generated from this package (`make docs`).

All messages are notifications with one table of arguments. Positions are 0-based rows and byte
columns, ends exclusive. Text is UTF-8 with `\\n` between lines; other bytes are surrogate escapes.
Messages about buffers include `tick`, the buffer's changedtick, to detect stale ones.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from lcursor.errors import MessageInvalid
from lcursor.protocol import agent, chat, edit, fim, index, next_edit, session

PROTOCOL = 9
"""Version of the protocol; both sides must have the same one."""

FEATURES = (session, fim, index, chat, edit, next_edit, agent)
TO_PYTHON = {name: kind for each in FEATURES for name, kind in each.TO_PYTHON.items()}
TO_LUA = {name: kind for each in FEATURES for name, kind in each.TO_LUA.items()}


@cache
def fields(message: type) -> dict[str, object]:
    """Return each field of a message with its type; all are required."""
    return get_type_hints(message)


def check(method: str, params: object, table: dict[str, type] = TO_PYTHON) -> dict[str, Any]:
    """Return `params` if it is a valid message of that name; unknown fields are ignored.

    Raises:
        MessageInvalid: the name is unknown, a field is missing or has a wrong type.
    """
    message = table.get(method)
    if message is None:
        raise MessageInvalid(f"unknown message {method!r}")
    if params == []:  # an empty Lua table has no type of its own
        params = {}
    if not isinstance(params, dict):
        raise MessageInvalid(f"{method}: expected a table, found {type(params).__name__}")
    for name, hint in fields(message).items():
        if name not in params:
            raise MessageInvalid(f"{method}: field {name!r} is missing")
        if not _fits(params[name], hint):
            raise MessageInvalid(f"{method}: field {name!r} is not of type {_name(hint)}")
    return params


def _fits(value: object, hint: object) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin is dict or is_typeddict(hint):
        return isinstance(value, dict) or value == []
    if origin is list:
        return isinstance(value, list)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(hint, type) and isinstance(value, hint)


def _name(hint: object) -> str:
    return getattr(hint, "__name__", str(hint))
