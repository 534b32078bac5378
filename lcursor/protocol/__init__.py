"""The messages between Neovim and the host, with their fields: a module for each feature.

`lua/lcursor/host/protocol.lua` is generated from this package (`make docs`).

All messages are notifications with one table of arguments. Positions are 0-based rows and byte
columns, ends exclusive. Text is UTF-8 with `\\n` between lines; other bytes are surrogate escapes.
Messages about buffers include `tick`, the buffer's changedtick, to detect stale ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints, is_typeddict

from lcursor.errors import MessageInvalid
from lcursor.protocol import agent, chat, edit, fim, index, mcp, next_edit, session

PROTOCOL = 13
"""Version of the protocol; both sides must have the same one."""

Test = Callable[[object], bool]

FEATURES = (session, fim, index, chat, edit, next_edit, agent, mcp)
PATHS: Final = frozenset({"path", "paths"})
"""Fields that name files, which no system call may refuse as malformed."""
MAX_PATH_BYTES: Final = 4096

TO_PYTHON = {name: kind for each in FEATURES for name, kind in each.TO_PYTHON.items()}
TO_LUA = {name: kind for each in FEATURES for name, kind in each.TO_LUA.items()}


@cache
def fields(message: type) -> dict[str, object]:
    """Return each field of a message with its type; all are required."""
    return get_type_hints(message)


def check(method: str, params: object, table: dict[str, type] = TO_PYTHON) -> dict[str, Any]:
    """Return `params` if it is a valid message of that name; unknown fields are ignored.

    Raises:
        MessageInvalid: the name is unknown; a field, also one in a list or table, is missing, has
            a wrong type, or names no possible path.
    """
    message = table.get(method)
    if message is None:
        raise MessageInvalid(f"unknown message {method!r}")
    if params == []:  # an empty Lua table has no type of its own
        params = {}
    if not isinstance(params, dict):
        raise MessageInvalid(f"{method}: expected a table, found {type(params).__name__}")
    for name, fits in _tests(message).items():
        if name not in params:
            raise MessageInvalid(f"{method}: field {name!r} is missing")
        if not fits(params[name]):
            kind = "a path" if name in PATHS else f"of type {_name(fields(message)[name])}"
            raise MessageInvalid(f"{method}: field {name!r} is not {kind}")
    return params


@cache
def _tests(message: type) -> dict[str, Test]:
    """Return for each field a function that says whether a value is valid."""
    return {name: _test(hint, name in PATHS) for name, hint in fields(message).items()}


def _test(hint: Any, is_path: bool) -> Test:
    """Return a function that says whether a value is of a type, with all that is in it."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in args
    if origin is list:
        return _test_of_list(args[0], is_path)
    if origin is dict:
        fits = _test(args[1], False)
        # An empty Lua table has no type of its own.
        return lambda value: (
            all(map(fits, value.values())) if isinstance(value, dict) else value == []
        )
    if is_typeddict(hint):
        return _test_of_table(hint)
    if hint is Any:
        return lambda _: True
    if is_path:
        return _is_path
    types = _types(hint)
    return lambda value: type(value) in types


def _types(hint: type) -> frozenset[type]:
    """Return the types of decoded values that a simple type allows; an int is no bool."""
    return frozenset({int, float} if hint is float else {hint})


def _test_of_list(hint: Any, is_path: bool) -> Test:
    if hint in (int, float, str, bool) and not is_path:  # as fast as possible: it may be a text
        types = _types(hint)
        return lambda value: isinstance(value, list) and types.issuperset(map(type, value))
    fits = _test(hint, is_path)
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _test_of_table(hint: type) -> Test:
    tests = [*_tests(hint).items()]

    def fits(value: object) -> bool:
        if not isinstance(value, dict):
            return value == [] and not tests
        for name, fits_field in tests:
            if name not in value or not fits_field(value[name]):
                return False
        return True

    return fits


def _is_path(value: object) -> bool:
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        return len(os.fsencode(value)) < MAX_PATH_BYTES
    except UnicodeEncodeError:
        return False


def _name(hint: object) -> str:
    return getattr(hint, "__name__", str(hint))
