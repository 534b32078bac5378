"""The messages of completion: requests, answers, their context and their outcomes."""

from __future__ import annotations

from typing import Literal, TypedDict

from lcursor.protocol.session import Empty

Trigger = Literal["auto", "manual"]
ChunkKind = Literal["visited", "edited", "yanked", "import"]
StopReason = Literal["end", "line", "tokens", "time", "trimmed", "unsure", "cancelled", "failed"]
"""Why a completion ended: the model ended it, one line was requested, a limit was reached, a rule
of `fim/trim/` cut it, its confidence was below the threshold, a newer request came, or the engine
failed."""
TextSource = Literal["model", "cache", "speculation"]
"""Where an answer came from: generated now, cached, or generated before it was requested."""
Window = Literal["short", "full"]
"""How much text around the cursor an answer was made from."""
Outcome = Literal["accepted", "partial", "typed", "rejected", "ignored"]
"""The outcome of a suggestion that was shown: all or a part was accepted, it was typed to its end,
it was dismissed or something else was typed, or none of these."""


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
    reason: StopReason
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


class NextEditStats(TypedDict):
    """The outcomes of next edits of a kind."""

    kind: str
    accepted: int
    rejected: int


class Stats(TypedDict):
    """The outcomes of all suggestions, and the thresholds learned from them."""

    rows: list[StatsRow]  # most shown first
    total: StatsRow
    next_edits: list[NextEditStats]  # most accepted first
    since_s: float  # time of the oldest, in seconds since 1970; 0 if there is none
    path: str  # of the file with the outcomes
    problem: str  # why the file cannot be used; empty for none


class ContextChunk(TypedDict):
    """A part of a file as context of later completions; there is no answer."""

    path: str  # absolute; empty if it is not from a file
    name: str  # for the prompt
    first_row: int
    text: str  # the beginning of an imported file, of which the headers are used
    kind: ChunkKind
    symbols: list[str]  # imported names, if known


TO_PYTHON: dict[str, type] = {
    "fim.request": FimRequest,
    "fim.warm": FimWarm,
    "fim.cancel": FimCancel,
    "fim.more": FimMore,
    "fim.outcome": FimOutcome,
    "stats.request": Empty,
    "stats.reset": Empty,
    "context.chunk": ContextChunk,
}
TO_LUA: dict[str, type] = {
    "fim.partial": FimPartial,
    "fim.done": FimDone,
    "fim.improved": FimImproved,
    "fim.alternatives": FimAlternatives,
    "stats": Stats,
}
