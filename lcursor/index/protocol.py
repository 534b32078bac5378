"""What a client and the worker say to each other: one JSON object a line over a unix socket.

Vocabulary and pure functions; opens nothing. A question is `{"id": 7, "do": "search", …}`, its
answer `{"id": 7, "ok": {…}}` or `{"id": 7, "error": {"code", "message", "hint"}}`; an event is
`{"event": "state", …}` and goes to who asked for them with `subscribe`. Lines are ASCII: bytes of
paths that are no UTF-8 travel as escaped surrogates. The worker may be older or newer than its
client: `VERSION` is in each state, and unknown fields are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints

from lcursor import errors
from lcursor.errors import LcursorError, MessageInvalid
from lcursor.index.records import Hit, Mode, StoredSymbol

VERSION = 2
"""Of these messages; a client ends a worker that speaks another one, and starts its own."""
MOST_BYTES = 8 << 20
"""Of one line: an unsaved buffer of 1 MB, escaped, and some room."""

Do = Literal[
    "search",
    "symbols",
    "retrieve",
    "around",
    "status",
    "report",
    "why",
    "buffer",
    "changed",
    "typing",
    "recent",
    "subscribe",
    "secrets",
    "begin",
    "stop",
]
Phase = Literal["idle", "surveying", "reading", "embedding", "ready", "paused", "failed"]
"""What the worker does; `idle` until it is told to begin, `paused` while someone types."""


class Search(TypedDict, total=False):
    """Find what a text is about; answered with `Found`."""

    text: str
    limit: int
    mode: Mode


class Symbols(TypedDict, total=False):
    """Find definitions by name; answered with `Symbolic`."""

    name: str
    limit: int
    prefix: bool


class Retrieve(TypedDict, total=False):
    """Find what fits into a prompt; answered with `Retrieved`."""

    text: str
    tokens: int
    mode: Mode


class Around(TypedDict):
    """Find what belongs to a place in the code; answered with hits."""

    path: str
    before: str
    after: str


class Nothing(TypedDict):
    """A question that says all with its name."""


class PathOnly(TypedDict):
    """A question about one path of the project."""

    path: str


class Buffer(TypedDict):
    """What this client has unsaved of a file; null when it is as on disk. Gone with the client."""

    path: str
    text: str | None


class Paths(TypedDict):
    """`recent`: open in this client, newest first. `changed`: saved by it just now."""

    paths: list[str]


class Secrets(TypedDict):
    """What this client calls secret by its name; it holds from now on, whoever else says less."""

    globs: list[str]


class Begin(TypedDict, total=False):
    """Index the project, now and from now on whenever a worker runs."""

    confirmed: bool
    """Also a home directory or what is above it."""
    rebuild: bool
    """Forget what there is."""


class State(TypedDict):
    """What the worker does and what it has; answers `status`, and is the event `state`."""

    root: str
    phase: Phase
    detail: str
    """Why it failed, or what is not as it should be; else empty."""
    done: int
    """Of `total`: files while reading, chunks while embedding."""
    total: int
    seconds_left: float
    """An estimate; -1 where there is none."""
    files: int
    chunks: int
    symbols: int
    embedded: int
    by_language: dict[str, int]
    embedder: str
    """Its name; empty where there is none, or none yet."""
    embedder_note: str
    """Why there is none."""
    watching: str
    """How changes are seen; empty where they are not."""
    remarks: list[str]
    """What went wrong and was mended, newest last."""
    is_begun: bool
    is_home: bool
    memory_bytes: int
    pid: int
    version: int
    clients: int
    generation: int
    """Grows with each change of what can be found."""


class Found(TypedDict):
    """Hits, best first."""

    hits: list[dict[str, Any]]
    """Each with the fields of `records.Hit`."""
    ms: float
    phase: Phase
    embedder: str


class Symbolic(TypedDict):
    """Definitions, best first."""

    symbols: list[dict[str, Any]]
    """Each with path, language, name, kind, first_row, end_row, scope."""


class Retrieved(TypedDict):
    """What fits into a prompt, best first."""

    used: list[dict[str, Any]]
    """Each with the fields of `records.Hit`."""
    left_out: list[dict[str, Any]]
    """The same without text, with `reason`."""
    tokens: int
    """Of what is used, by a rough count."""


REQUESTS: dict[str, type] = {
    "search": Search,
    "symbols": Symbols,
    "retrieve": Retrieve,
    "around": Around,
    "status": Nothing,
    "report": Nothing,
    "why": PathOnly,
    "buffer": Buffer,
    "changed": Paths,
    "typing": Nothing,
    "recent": Paths,
    "subscribe": Nothing,
    "secrets": Secrets,
    "begin": Begin,
    "stop": Nothing,
}
DEFAULTS: dict[str, Any] = {
    "limit": 20,
    "mode": "hybrid",
    "prefix": False,
    "confirmed": False,
    "rebuild": False,
}
MOST_LIMIT = 1000


def encode(message: Mapping[str, Any]) -> bytes:
    """Return the line of a message, with its end."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Return the message of a line.

    Raises:
        MessageInvalid: it is no JSON object, or too long.
    """
    if len(line) > MOST_BYTES:
        raise MessageInvalid(f"a message of {len(line)} bytes is too long")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise MessageInvalid(f"a message is no JSON: {error}") from error
    if not isinstance(message, dict):
        raise MessageInvalid("a message is no JSON object")
    return message


def question(message: Mapping[str, Any]) -> tuple[int, str, dict[str, Any]]:
    """Return number, name and checked fields of a question; those left out have their default.

    Raises:
        MessageInvalid: it is none, or a field is missing or of another type.
    """
    number, name = message.get("id"), message.get("do")
    if type(number) is not int:
        raise MessageInvalid("a question has no number")
    if not isinstance(name, str) or name not in REQUESTS:
        raise MessageInvalid(f"unknown question {name!r}")
    checked = {}
    for field, kind in get_type_hints(REQUESTS[name]).items():
        value = message.get(field, DEFAULTS.get(field))
        if not _is_of(value, kind):
            raise MessageInvalid(f"{name}: {field} is {value!r:.60}")
        checked[field] = value
    if "limit" in checked:
        checked["limit"] = min(max(checked["limit"], 1), MOST_LIMIT)
    return number, name, checked


def answer(number: int, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a question."""
    return {"id": number, "ok": dict(value)}


def failure(number: int, error: LcursorError) -> dict[str, Any]:
    """Return the answer to a question that could not be answered."""
    words = {"code": error.code, "message": error.message, "hint": error.hint}
    return {"id": number, "error": words}


def raised(words: Mapping[str, Any]) -> LcursorError:
    """Return the error that a failed answer tells of, as its own class."""
    classes = {kind.code: kind for kind in errors.tree()}
    error = LcursorError.__new__(classes.get(str(words.get("code")), LcursorError))
    message, hint = str(words.get("message", "")), str(words.get("hint", ""))
    LcursorError.__init__(error, message, hint)
    return error


def hit(value: Hit) -> dict[str, Any]:
    """Return a hit as it travels."""
    parts = {name: float(part) for name, part in value.parts.items()}  # maybe numpy's
    return asdict(value) | {"score": float(value.score), "parts": parts}


def hit_of(value: Mapping[str, Any]) -> Hit:
    """Return the hit that travelled."""
    names = Hit.__dataclass_fields__
    return Hit(**{name: value[name] for name in names if name in value})


def symbol(value: StoredSymbol) -> dict[str, Any]:
    """Return a definition as it travels."""
    return {"path": value.path, "language": value.language, **asdict(value.symbol)}


def _is_of(value: object, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Literal:
        return value in get_args(kind)
    if origin is list:
        (inner,) = get_args(kind)
        return isinstance(value, list) and all(_is_of(each, inner) for each in value)
    if origin is not None:  # a union
        return any(_is_of(value, each) for each in get_args(kind))
    if kind is type(None):
        return value is None
    return type(value) is kind
