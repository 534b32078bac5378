"""The wire between the two halves: every message, its fields and its version.

Vocabulary: imports only errors. This file is the one source; `lua/lcursor/protocol.lua` is
generated from it (`make docs`) and a contract test compares both sides.

Rules of the wire. Notifications only, in both directions; one table of arguments a message.
Positions are 0-based rows and byte columns, ends exclusive. Text is UTF-8 with `\\n` between lines;
bytes that are no UTF-8 travel as surrogate escapes. Buffer messages carry `tick`, the buffer's
changedtick when the message was made, so that the receiver can tell a stale one.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

from lcursor import protocol_chat, protocol_edit
from lcursor.errors import Level, MessageInvalid

PROTOCOL = 6
"""Number of this version of the wire; both halves must have the same one."""

Trigger = Literal["auto", "manual"]
ChunkKind = Literal["visited", "edited", "yanked", "import", "diagnostics", "changes"]
HostState = Literal["loading_model", "ready", "failed"]
StopReason = Literal["end", "line", "tokens", "time", "trimmed", "unsure", "cancelled", "failed"]
"""Why a completion ended: the model said so, one line was asked for, a budget ran out, a rule of
`fim/trim/` cut it, its confidence was below the threshold, a newer request came, or the engine
failed."""
TextSource = Literal["model", "cache", "speculation"]
"""Where an answer came from: written now, kept from earlier, or written before it was asked for."""
Window = Literal["short", "medium", "full"]
"""How much text around the cursor an answer was made from; less of it is evaluated sooner."""
IndexPhase = Literal[
    "absent", "idle", "surveying", "reading", "embedding", "ready", "paused", "failed"
]
"""What the worker of an index does: `idle` until it is told to begin, `paused` while someone
types, `absent` when it is gone."""
Outcome = Literal["accepted", "partial", "typed", "rejected", "ignored"]
"""What became of a suggestion that was shown: all or a piece of it was accepted, it was typed to
its end, something else was typed or it was dismissed, or none of these."""


class Hello(TypedDict):
    """First message to a new host: who is calling, and with what settings."""

    protocol: int
    version: str
    config: dict[str, Any]


class ConfigChanged(TypedDict):
    """The settings changed; the same table as in `hello`."""

    config: dict[str, Any]


class Empty(TypedDict):
    """A message that says all with its name."""


class FimRequest(TypedDict):
    """Complete at a cursor; a newer request supersedes an older one."""

    id: int
    buf: int
    tick: int
    path: str  # absolute; empty for a buffer without a file
    name: str  # relative to the project's root, as the model shall see it
    repo: str  # name of the project's root folder
    filetype: str
    first_row: int  # row of the first line of `prefix`
    row: int
    col: int
    prefix: str  # from the start of `first_row` to the cursor
    suffix: str  # from the cursor on
    top: str  # first lines of the file; empty where `prefix` begins with them
    single_line: bool
    trigger: Trigger


class FimWarm(TypedDict):
    """Evaluate the text around a place in advance; nothing answers it.

    `fim.cancel` stops it. Ids are those of requests, and a newer request supersedes it.
    """

    id: int
    path: str
    name: str
    repo: str
    first_row: int
    prefix: str
    suffix: str
    top: str


class FimCancel(TypedDict):
    """Nobody waits for request `id`, or for `fim.warm` of that id, any more."""

    id: int


class FimMore(TypedDict):
    """What else could stand where the answer to request `id` is shown?"""

    id: int
    typed: str  # what of that answer has been typed since; the others begin with it as well


class FimOutcome(TypedDict):
    """What became of the suggestion of request `id`, which was shown; kept on this machine."""

    id: int
    filetype: str
    outcome: Outcome
    source: TextSource
    shown_chars: int
    kept_chars: int  # accepted, or typed as it said
    through_keys: int  # keys that it followed, as they said what it says
    shown_ms: float
    latency_ms: float  # from the key to the ghost; -1 where not only the model was waited for
    confidence: float  # -1 where it went before the model had ended


class Ready(TypedDict):
    """Answer to `hello`: the host runs; its model may still be loading."""

    protocol: int
    version: str
    python: str
    pid: int


class State(TypedDict):
    """What the host is doing; `progress` is 0 to 1 where it is known, else -1."""

    state: HostState
    detail: str
    progress: float


class FimStats(TypedDict):
    """What one completion cost."""

    prompt_tokens: int
    reused_tokens: int  # of the prompt, found in the KV cache
    decoded_tokens: int  # of the prompt, read now
    passes: int  # decode calls before the first token was written; 0 when nothing was read
    generated_tokens: int
    queue_ms: float
    prompt_ms: float
    first_ms: float  # from the request's arrival to the first text
    total_ms: float
    confidence: float  # probability of the first line, 0 to 1
    threshold: float  # of the confidence, below which nothing is shown
    source: TextSource
    window: Window


class FimPartial(TypedDict):
    """All text of request `id` so far; it only ever grows."""

    id: int
    buf: int
    tick: int
    text: str


class FimDone(TypedDict):
    """Request `id` has ended; `text` is final, and empty where there is nothing to show."""

    id: int
    buf: int
    tick: int
    text: str
    replaces: int  # bytes right of the cursor that it takes the place of: all of the line, or 0
    reason: StopReason
    stats: FimStats


class FimImproved(TypedDict):
    """A better answer to request `id`, made with more context, after its `fim.done`."""

    id: int
    buf: int
    tick: int
    text: str
    replaces: int  # as in `fim.done`
    stats: FimStats


class FimAlternatives(TypedDict):
    """The other suggestions for the place of request `id`, best first; none is no error."""

    id: int
    texts: list[str]  # each whole, from the cursor of the request on


class StatsRow(TypedDict):
    """What became of the suggestions in one filetype; shares are of 1, -1 stands for unknown."""

    filetype: str
    shown: int
    accepted: int
    partial: int
    typed: int
    rejected: int
    ignored: int
    accept_share: float  # accepted, partial and typed, of all that were not ignored
    p50_ms: float  # from the key to the ghost
    p95_ms: float
    cache_share: float  # of the suggestions
    speculation_share: float
    through_share: float  # of all times that a ghost followed a key, those that asked nobody
    threshold: float


class Stats(TypedDict):
    """What became of the suggestions, and what the gate learned from it."""

    rows: list[StatsRow]  # most shown first
    total: StatsRow
    since_s: float  # time of the oldest, in seconds since 1970; 0 where there is none
    path: str  # of the file that all this is in
    problem: str  # why the file cannot be used; empty where it can


class PromptPiece(TypedDict):
    """One token of a prompt."""

    id: int
    text: str
    kind: Literal["text", "marker"]
    is_kept: bool  # found in the KV cache, not read anew


class Prompt(TypedDict):
    """The last prompt, as the model read it; empty where there was none."""

    pieces: list[PromptPiece]


class ErrorMessage(TypedDict):
    """Something failed; the words are for the user."""

    id: int  # of the request that failed; 0 for none
    code: str
    message: str
    hint: str
    level: Level


class Log(TypedDict):
    """A line for the log."""

    level: Literal["debug", "info", "warn", "error"]
    message: str


class ContextChunk(TypedDict):
    """A piece of a file that later completions may be shown; nothing answers it."""

    path: str  # absolute; empty for what is in no file
    name: str  # as the model shall see it
    first_row: int
    text: str  # of an imported file its beginning, from which its headers are taken
    kind: ChunkKind
    symbols: list[str]  # what is imported, where that is known


class IndexPath(TypedDict):
    """A file was entered, and the index of its project shall wake; or it was written."""

    path: str  # absolute


class IndexBegin(TypedDict):
    """Index the project of a path, and keep it up; `index.state` tells how far it is."""

    id: int
    path: str  # absolute: of a file or a folder in it
    is_confirmed: bool  # also a home directory, or what is above one
    rebuild: bool  # forget what there is


class IndexAsk(TypedDict):
    """Question `id` about the project of a path, or about the path itself."""

    id: int
    path: str


class IndexSearch(TypedDict):
    """Find what a text is about; a newer search supersedes an older one."""

    id: int
    path: str
    text: str  # words, or a name; `path:`, `lang:` and `kind:` narrow it
    limit: int
    mode: Literal["lexical", "vector", "hybrid"]


class IndexSymbols(TypedDict):
    """Find definitions by the beginning of their name."""

    id: int
    path: str
    name: str
    limit: int


class IndexBuffer(TypedDict):
    """A buffer has text that its file has not; searches see it."""

    path: str
    is_changed: bool  # false: it is as on disk, or gone, and `text` says nothing
    text: str


class IndexRow(TypedDict):
    """One line of a report: a language, or a reason why files are left out."""

    name: str
    files: int
    bytes: int
    examples: list[str]


class IndexReported(TypedDict):
    """What indexing a project would read; answers `index.report`."""

    id: int
    root: str
    files: int
    bytes: int
    seconds: float  # an estimate until all is found by words; -1 where it is not known
    embed_seconds: float  # and by meaning, on top of that, where nothing of it was seen before
    languages: list[IndexRow]
    ignored: list[IndexRow]
    is_home: bool  # a home directory or above: hardly what was meant
    is_begun: bool  # it is indexed already


class IndexExplained(TypedDict):
    """Why a file is not in the index; answers `index.why`."""

    id: int
    path: str  # relative to the root
    root: str
    reason: str  # empty where it is, or would be


class IndexHit(TypedDict):
    """A place that a search found."""

    path: str  # absolute
    name: str  # relative to the root
    first_row: int
    end_row: int
    scope: str
    kind: str  # of a definition; else empty
    language: str
    text: str
    score: float
    parts: dict[str, float]  # what made the score
    is_stale: bool  # the file has changed since it was read


class IndexFound(TypedDict):
    """What was found; answers `index.search` and `index.symbols`."""

    id: int
    root: str
    query: str
    hits: list[IndexHit]  # best first
    ms: float  # that it took, as the host sees it
    note: str  # why there may be more some day; empty when all is indexed


class IndexState(TypedDict):
    """What the index of a project is doing, and what is in it."""

    root: str
    phase: IndexPhase
    detail: str
    done: int  # files while reading, chunks while embedding
    total: int  # 0 where it is not known
    seconds_left: float  # an estimate; -1 where there is none
    files: int
    chunks: int
    symbols: int
    embedded: int  # chunks that have a vector
    embedder: str  # empty where there is none
    embedder_note: str  # why there is none
    watching: str  # how changes are seen: `watching`, `polling`, or empty for now and then
    remarks: list[str]  # what went wrong and was mended, newest last
    memory_bytes: int  # of the worker
    pid: int  # of the worker; 0 for none


TO_PYTHON: dict[str, type] = {
    "hello": Hello,
    "config": ConfigChanged,
    "shutdown": Empty,
    "fim.request": FimRequest,
    "fim.warm": FimWarm,
    "fim.cancel": FimCancel,
    "fim.more": FimMore,
    "fim.outcome": FimOutcome,
    "stats.request": Empty,
    "stats.reset": Empty,
    "prompt.request": Empty,
    "context.chunk": ContextChunk,
    "index.enter": IndexPath,
    "index.saved": IndexPath,
    "index.begin": IndexBegin,
    "index.report": IndexAsk,
    "index.why": IndexAsk,
    "index.search": IndexSearch,
    "index.symbols": IndexSymbols,
    "index.buffer": IndexBuffer,
    "index.typing": Empty,
    **protocol_chat.TO_PYTHON,
    **protocol_edit.TO_PYTHON,
}

TO_LUA: dict[str, type] = {
    "ready": Ready,
    "state": State,
    "fim.partial": FimPartial,
    "fim.done": FimDone,
    "fim.improved": FimImproved,
    "fim.alternatives": FimAlternatives,
    "stats": Stats,
    "prompt": Prompt,
    "index.state": IndexState,
    "index.reported": IndexReported,
    "index.explained": IndexExplained,
    "index.found": IndexFound,
    **protocol_chat.TO_LUA,
    **protocol_edit.TO_LUA,
    "error": ErrorMessage,
    "log": Log,
}


@cache
def fields(message: type) -> dict[str, object]:
    """Return each field of a message with its type; all are required."""
    return get_type_hints(message)


def check(method: str, params: object, table: dict[str, type] = TO_PYTHON) -> dict[str, Any]:
    """Return `params` when it is a well-formed message of that name.

    Unknown fields are let through, so that a newer half can say more than an older one knows.

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
            raise MessageInvalid(f"{method}: field {name!r} is no {_name(hint)}")
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
