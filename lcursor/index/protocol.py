"""The messages between clients and the worker: one JSON object per line, over a unix socket.

    {"id": 7, "do": "search", "text": "parse a date"}       a request
    {"id": 7, "ok": {"hits": [...]}}                        its result
    {"id": 7, "error": {"code": ..., "message": ..., "hint": ...}}
    {"event": "state", "phase": "ready", ...}               for clients that sent `subscribe`

Lines are ASCII; bytes of a path that are not UTF-8 travel as escaped surrogates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, get_args, get_origin

from lcursor import errors
from lcursor.errors import LcursorError, MessageInvalid
from lcursor.index.records import Mode

VERSION = 3
"""Part of each state. A client stops a worker of another version, and starts its own."""
MAX_BYTES = 8 << 20
"""Length of a line: an unsaved buffer of 1 MB, escaped."""
MAX_LIMIT = 1000

Phase = Literal["idle", "surveying", "reading", "embedding", "ready", "paused", "failed"]
"""What the worker does: `idle` until it is asked to begin, `paused` while the user types."""

REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "search": {"text": str, "limit": int, "mode": Mode},  # hits: fields of `records.Hit`
    "symbols": {"name": str, "limit": int, "prefix": bool},  # definitions by name
    "retrieve": {"text": str, "tokens": int, "mode": Mode},  # hits that fit into a prompt
    "around": {"path": str, "before": str, "after": str},  # hits for a completion at a cursor
    "status": {},  # a `State`
    "report": {},  # what indexing would read
    "why": {"path": str},  # the reason why a file is not in the index
    "buffer": {"path": str, "text": str | None},  # unsaved text; None once it is saved
    "changed": {"paths": list[str]},  # saved just now
    "typing": {},  # the user pressed a key
    "recent": {"paths": list[str]},  # open files, newest first
    "subscribe": {},  # send events to this client
    "secrets": {"globs": list[str]},  # files to keep out of the index, from now on
    "begin": {"confirmed": bool, "rebuild": bool},  # index the project; also a home directory
    "stop": {},
}
"""The fields of each request and their types."""
DEFAULTS: Mapping[str, Any] = {
    "limit": 20,
    "mode": "hybrid",
    "prefix": False,
    "confirmed": False,
    "rebuild": False,
}


class State(TypedDict):
    """The state of a worker: the result of `status`, and the event `state`."""

    root: str
    phase: Phase
    detail: str
    """Why it failed; else empty."""
    done: int
    """Of `total`: files while reading, chunks while embedding."""
    total: int
    seconds_left: float
    """An estimate; -1 if unknown."""
    files: int
    chunks: int
    symbols: int
    embedded: int
    by_language: dict[str, int]
    embedder: str
    """Its name; empty if none is loaded."""
    embedder_note: str
    """Why none is loaded."""
    watching: str
    """How changes are noticed: `watching`, `polling`, or empty."""
    remarks: list[str]
    """Problems that were handled, newest last."""
    is_begun: bool
    is_home: bool
    memory_bytes: int
    pid: int
    version: int
    clients: int
    generation: int
    """Grows with each change of the index."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Return the line of a message, with its line feed."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Return the message of a line.

    Raises:
        MessageInvalid: it is not a JSON object, or too long.
    """
    if len(line) > MAX_BYTES:
        raise MessageInvalid(f"a message of {len(line)} bytes is too long")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MessageInvalid(f"a message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise MessageInvalid("a message is not a JSON object")
    return message


def parse_request(message: Mapping[str, Any]) -> tuple[int, str, dict[str, Any]]:
    """Return id, name and checked fields of a request; missing fields get their defaults.

    Raises:
        MessageInvalid: it is not a request, or a field is missing or of the wrong type.
    """
    number, name = message.get("id"), message.get("do")
    if type(number) is not int:
        raise MessageInvalid("a request has no id")
    if not isinstance(name, str) or name not in REQUESTS:
        raise MessageInvalid(f"unknown request {name!r}")
    checked = {}
    for field, kind in REQUESTS[name].items():
        value = message.get(field, DEFAULTS.get(field))
        if not _is_of(value, kind):
            raise MessageInvalid(f"{name}: {field} is {value!r:.60}")
        checked[field] = value
    if "limit" in checked:
        checked["limit"] = min(max(checked["limit"], 1), MAX_LIMIT)
    return number, name, checked


def result(number: int, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message with the result of a request."""
    return {"id": number, "ok": dict(value)}


def failure(number: int, error: LcursorError) -> dict[str, Any]:
    """Return the message for a request that failed."""
    fields = {"code": error.code, "message": error.message, "hint": error.hint}
    return {"id": number, "error": fields}


def to_error(fields: Mapping[str, Any]) -> LcursorError:
    """Return the error of a failed request, as an instance of its own class."""
    classes = {kind.code: kind for kind in errors.tree()}
    error = LcursorError.__new__(classes.get(str(fields.get("code")), LcursorError))
    message, hint = str(fields.get("message", "")), str(fields.get("hint", ""))
    LcursorError.__init__(error, message, hint)
    return error


def _is_of(value: object, kind: Any) -> bool:
    """Return whether a value has exactly a type: True is not an int here."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return value in inner
    if origin is list:
        return isinstance(value, list) and all(_is_of(each, inner[0]) for each in value)
    if origin is not None:  # a union
        return any(_is_of(value, each) for each in inner)
    return type(value) is kind
