"""The messages between Neovim and the host, with their fields.

`lua/lcursor/protocol.lua` is generated from this module (`make docs`).

All messages are notifications with one table of arguments. Positions are 0-based rows and byte
columns, ends exclusive. Text is UTF-8 with `\\n` between lines; other bytes are surrogate escapes.
Messages about buffers carry `tick`, the buffer's changedtick, so that a stale one is recognized.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

from lcursor import protocol_chat, protocol_edit
from lcursor.errors import Level, MessageInvalid

PROTOCOL = 6
"""Version of the protocol; both sides must have the same one."""

Trigger = Literal["auto", "manual"]
ChunkKind = Literal["visited", "edited", "yanked", "import", "diagnostics", "changes"]
HostState = Literal["loading_model", "ready", "failed"]
StopReason = Literal["end", "line", "tokens", "time", "trimmed", "unsure", "cancelled", "failed"]
"""Why a completion ended: the model ended it, one line was requested, a limit was reached, a rule
of `fim/trim/` cut it, its confidence was below the threshold, a newer request came, or the engine
failed."""
TextSource = Literal["model", "cache", "speculation"]
"""Where an answer came from: generated now, cached, or generated before it was requested."""
Window = Literal["short", "medium", "full"]
"""How much text around the cursor an answer was made from."""
IndexPhase = Literal[
    "absent", "idle", "surveying", "reading", "embedding", "ready", "paused", "failed"
]
"""What the worker of an index does: `idle` until indexing is requested, `paused` while the user
types, `absent` if there is no worker."""
Outcome = Literal["accepted", "partial", "typed", "rejected", "ignored"]
"""The outcome of a suggestion that was shown: all or a part was accepted, it was typed to its end,
it was dismissed or something else was typed, or none of these."""


class Hello(TypedDict):
    """The first message to a new host."""

    protocol: int
    version: str
    config: dict[str, Any]


class ConfigChanged(TypedDict):
    """The settings changed; the same table as in `hello`."""

    config: dict[str, Any]


class Empty(TypedDict):
    """A message without fields."""


class FimRequest(TypedDict):
    """Complete at the cursor; a newer request supersedes an older one."""

    id: int
    buf: int
    tick: int
    path: str  # absolute; empty for a buffer without a file
    name: str  # relative to the project's root, for the prompt
    repo: str  # name of the project's root folder
    filetype: str
    first_row: int  # row of the first line of `prefix`
    row: int
    col: int
    prefix: str  # from the start of `first_row` to the cursor
    suffix: str  # from the cursor on
    top: str  # first lines of the file; empty if `prefix` begins with them
    single_line: bool
    trigger: Trigger


class FimWarm(TypedDict):
    """Evaluate the text around a place in advance; there is no answer.

    `fim.cancel` stops it, and a newer request supersedes it.
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
    """Cancel request `id`, or the `fim.warm` of that id."""

    id: int


class FimMore(TypedDict):
    """Request alternatives to the answer to request `id`."""

    id: int
    typed: str  # the part of that answer that has been typed since; the alternatives begin with it


class FimOutcome(TypedDict):
    """The outcome of the suggestion of request `id`; stored on this machine only."""

    id: int
    filetype: str
    outcome: Outcome
    source: TextSource
    shown_chars: int
    kept_chars: int  # accepted, or typed as suggested
    through_keys: int  # typed keys that agreed with it
    shown_ms: float
    latency_ms: float  # from the key to the ghost text; -1 if there were other delays
    confidence: float  # -1 if it disappeared before the model had ended


class Ready(TypedDict):
    """The answer to `hello`; the model may still be loading."""

    protocol: int
    version: str
    python: str
    pid: int


class State(TypedDict):
    """What the host is doing; `progress` is 0 to 1, or -1 if unknown."""

    state: HostState
    detail: str
    progress: float


class FimStats(TypedDict):
    """The cost of a completion."""

    prompt_tokens: int
    reused_tokens: int  # of the prompt, found in the KV cache
    decoded_tokens: int  # of the prompt, evaluated now
    passes: int  # decode calls before the first token was generated
    generated_tokens: int
    queue_ms: float
    prompt_ms: float
    first_ms: float  # from the request's arrival to the first text
    total_ms: float
    confidence: float  # probability of the first line, 0 to 1
    threshold: float  # minimum confidence of what is shown
    source: TextSource
    window: Window


class FimPartial(TypedDict):
    """The text of request `id` so far; each one begins with the one before."""

    id: int
    buf: int
    tick: int
    text: str


class FimDone(TypedDict):
    """Request `id` has ended; `text` is final, and empty if there is nothing to show."""

    id: int
    buf: int
    tick: int
    text: str
    replaces: int  # bytes after the cursor that it replaces: the rest of the line, or 0
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
    """The alternatives to the answer to request `id`, best first; there may be none."""

    id: int
    texts: list[str]  # from the cursor of the request on


class StatsRow(TypedDict):
    """The outcomes of the suggestions in a filetype; shares are 0 to 1, or -1 if unknown."""

    filetype: str
    shown: int
    accepted: int
    partial: int
    typed: int
    rejected: int
    ignored: int
    accept_share: float  # accepted, partial and typed, of all that were not ignored
    p50_ms: float  # from the key to the ghost text
    p95_ms: float
    cache_share: float  # of the suggestions
    speculation_share: float
    through_share: float  # of all keys after which a suggestion was shown, those without a request
    threshold: float


class Stats(TypedDict):
    """The outcomes of all suggestions, and the thresholds learned from them."""

    rows: list[StatsRow]  # most shown first
    total: StatsRow
    since_s: float  # time of the oldest, in seconds since 1970; 0 if there is none
    path: str  # of the file with the outcomes
    problem: str  # why the file cannot be used; empty for none


class PromptPiece(TypedDict):
    """A token of a prompt."""

    id: int
    text: str
    kind: Literal["text", "marker"]
    is_kept: bool  # found in the KV cache


class Prompt(TypedDict):
    """The last prompt, as the model read it; empty if there was none."""

    pieces: list[PromptPiece]


class ErrorMessage(TypedDict):
    """An error, for the user."""

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
    """A part of a file as context of later completions; there is no answer."""

    path: str  # absolute; empty if it is not from a file
    name: str  # for the prompt
    first_row: int
    text: str  # the beginning of an imported file, of which the headers are used
    kind: ChunkKind
    symbols: list[str]  # imported names, if known


class IndexPath(TypedDict):
    """A file was entered, which starts the index of its project; or it was written."""

    path: str  # absolute


class IndexBegin(TypedDict):
    """Index the project of a path, and keep the index up to date; see `index.state`."""

    id: int
    path: str  # absolute: of a file or a folder in it
    is_confirmed: bool  # even a home directory or one above it
    rebuild: bool  # from the start


class IndexAsk(TypedDict):
    """A request about a path or its project."""

    id: int
    path: str


class IndexSearch(TypedDict):
    """Search; a newer search supersedes an older one."""

    id: int
    path: str
    text: str  # words or a name, with the filters `path:`, `lang:` and `kind:`
    limit: int
    mode: Literal["lexical", "vector", "hybrid"]


class IndexSymbols(TypedDict):
    """Find definitions by the beginning of their name."""

    id: int
    path: str
    name: str
    limit: int


class IndexBuffer(TypedDict):
    """The unsaved text of a buffer, for searches."""

    path: str
    is_changed: bool  # false if it is saved or closed; `text` is ignored then
    text: str


class IndexRow(TypedDict):
    """A row of a report: a language, or a reason why files are left out."""

    name: str
    files: int
    bytes: int
    examples: list[str]


class IndexReported(TypedDict):
    """What indexing a project would read; the answer to `index.report`."""

    id: int
    root: str
    files: int
    bytes: int
    seconds: float  # an estimate for the lexical index; -1 if unknown
    embed_seconds: float  # an estimate for all embeddings, in addition
    languages: list[IndexRow]
    ignored: list[IndexRow]
    is_home: bool  # a home directory or above, probably by mistake
    is_begun: bool  # it is indexed already


class IndexExplained(TypedDict):
    """Why a file is not in the index; the answer to `index.why`."""

    id: int
    path: str  # relative to the root
    root: str
    reason: str  # empty if it is, or would be


class IndexHit(TypedDict):
    """A result of a search."""

    path: str  # absolute
    name: str  # relative to the root
    first_row: int
    end_row: int
    scope: str
    kind: str  # of a definition; else empty
    language: str
    text: str
    score: float
    parts: dict[str, float]  # of the score
    is_stale: bool  # the file has changed since it was read


class IndexFound(TypedDict):
    """The answer to `index.search` and `index.symbols`."""

    id: int
    root: str
    query: str
    hits: list[IndexHit]  # best first
    ms: float  # measured in the host
    note: str  # why it may be incomplete; empty if everything is indexed


class IndexState(TypedDict):
    """The state of a project's index."""

    root: str
    phase: IndexPhase
    detail: str
    done: int  # files while reading, chunks while embedding
    total: int  # 0 if unknown
    seconds_left: float  # an estimate; -1 if unknown
    files: int
    chunks: int
    symbols: int
    embedded: int  # chunks that have a vector
    embedder: str  # empty if there is none
    embedder_note: str  # why there is none
    watching: str  # how changes are noticed: `watching`, `polling`, or empty for rarely
    remarks: list[str]  # problems that were repaired, newest last
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
