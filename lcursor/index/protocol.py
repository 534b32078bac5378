"""The messages between clients and the worker: one JSON object per line, over a unix socket.

    {"id": 7, "do": "search", "text": "parse a date"}       a request
    {"id": 7, "ok": {"hits": [...]}}                        its result
    {"id": 7, "error": {"code": ..., "message": ..., "hint": ...}}
    {"event": "state", "phase": "ready", ...}               to clients that sent `subscribe`

Lines are ASCII; bytes of a path that are not UTF-8 are escaped surrogates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from lcursor import errors
from lcursor.errors import LcursorError, MessageInvalid
from lcursor.storage import json_text

VERSION = 4
"""Part of each state. A client stops a worker with another version, and starts its own."""
MAX_BYTES = 8 << 20
"""Maximum length of a line, enough for an escaped buffer of 1 MB."""
MAX_LIMIT = 1000

Phase = Literal["idle", "surveying", "reading", "embedding", "ready", "paused", "failed"]
"""The activity of the worker: `idle` until `begin`, `paused` while the user types."""

REQUESTS: Mapping[str, tuple[str, ...]] = {
    "search": ("text", "limit", "mode"),  # hits: fields of `records.Hit`
    "symbols": ("name", "limit", "prefix"),  # definitions by name
    "retrieve": ("text", "tokens", "mode"),  # hits that fit into a prompt
    "around": ("path", "before", "after"),  # hits for a completion at a cursor
    "similar": ("text", "texts"),  # how similar a text is to others in meaning
    "status": (),  # a `State`
    "report": (),  # a preview of indexing
    "why": ("path",),  # the reason why a file is not in the index
    "buffer": ("path", "text"),  # unsaved text; None once it is saved
    "changed": ("paths",),  # just saved
    "typing": (),  # the user pressed a key
    "recent": ("paths",),  # open files, newest first
    "subscribe": (),  # send events to this client
    "secrets": ("globs",),  # files to exclude from now on
    "begin": ("confirmed", "rebuild"),  # index the project; also a home directory
    "stop": (),
}
"""The fields of each request."""
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
    """Files while reading, chunks while embedding, out of `total`."""
    total: int
    seconds_left: float
    """Estimate; -1 if unknown."""
    files: int
    chunks: int
    symbols: int
    embedded: int
    by_language: dict[str, int]
    wanted_embedder: str
    """Its name in the settings; `none` for none."""
    embedder: str
    """Its name; empty if none is loaded."""
    embedder_note: str
    """Why none is loaded."""
    watching: str
    """How changes are detected: `watching`, `polling`, or empty."""
    remarks: list[str]
    """Handled problems, newest last."""
    is_begun: bool
    is_home: bool
    memory_bytes: int
    pid: int
    version: int
    clients: int
    generation: int
    """Incremented with each change of the index."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line with its line feed."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Return the message of a line.

    Raises:
        MessageInvalid: it is not a JSON object, or too long.
    """
    if len(line) > MAX_BYTES:
        raise MessageInvalid(f"a message of {len(line)} bytes is too long")
    try:
        message = json_text.parse(line)
    except ValueError as error:
        raise MessageInvalid(f"a message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise MessageInvalid("a message is not a JSON object")
    return message


def parse_request(message: Mapping[str, Any]) -> tuple[int, str, dict[str, Any]]:
    """Return id, name and fields of a request; missing fields get their defaults.

    Raises:
        MessageInvalid: it is not a request, or a field without a default is missing.
    """
    number, name = message.get("id"), message.get("do")
    if type(number) is not int:
        raise MessageInvalid("a request has no id")
    if not isinstance(name, str) or name not in REQUESTS:
        raise MessageInvalid(f"unknown request {name!r}")
    known = {**DEFAULTS, **message}
    try:
        fields = {field: known[field] for field in REQUESTS[name]}
    except KeyError as missing:
        raise MessageInvalid(f"{name}: {missing} is missing") from missing
    if "limit" in fields:
        fields["limit"] = min(max(fields["limit"], 1), MAX_LIMIT)
    return number, name, fields


def result(number: int, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message with the result of a request."""
    return {"id": number, "ok": dict(value)}


def failure(number: int, error: LcursorError) -> dict[str, Any]:
    """Return the message for a request that failed."""
    fields = {"code": error.code, "message": error.message, "hint": error.hint}
    return {"id": number, "error": fields}


def to_error(fields: Mapping[str, Any]) -> LcursorError:
    """Return the error of a failed request, as an instance of its original class."""
    classes = {kind.code: kind for kind in errors.tree()}
    error = LcursorError.__new__(classes.get(str(fields.get("code")), LcursorError))
    message, hint = str(fields.get("message", "")), str(fields.get("hint", ""))
    LcursorError.__init__(error, message, hint)
    return error
