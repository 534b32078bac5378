"""The data types of chat requests and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
""""tool" is the result of a call."""
End = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that a model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of an object."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call in an answer, as the model wrote it; it may be invalid."""

    id: str
    name: str
    arguments: str
    """JSON, maybe incomplete."""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Other fields, which the server wants back with the call: Gemini signs its calls."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Role
    text: str
    calls: tuple[ToolRequest, ...] = ()
    """Calls of an answer; each is followed by a message with its result."""
    call_id: str = ""
    """Id of the call whose result it is."""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Fields of `Returned`, of an answer with calls."""


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """A prompt as token ids, for llama.cpp: the model continues it without any template."""

    ids: Sequence[int]


Prompt = Sequence[Message] | TokenPrompt


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A configured model on a server."""

    name: str
    """The user's name for it."""
    url: str
    """A result of `http.endpoint.check_url`; a Unix socket is `unix:///path`."""
    model: str = ""
    """The server's name for it; "" for its only model."""
    kind: str = ""
    """A name of `providers.APIS`; "" to detect it."""
    key: str = field(default="", repr=False)
    context_tokens: int = 0
    """The configured context; 0 to detect it."""
    setting: str = "chat"
    """Prefix of its settings, for hints."""
    is_hosted: bool = False
    """Whether a provider hosts it, whose models reason before they answer."""


@dataclass(frozen=True, slots=True)
class Served:
    """The capabilities of a server."""

    kind: str
    """A name of `providers.APIS`."""
    model: str
    """The model's name in requests."""
    context_tokens: int
    """Context of one slot; 0 if unknown."""
    can_count: bool = False
    """Whether it has `/apply-template` and `/tokenize`, for exact token counts."""
    can_progress: bool = False
    """Whether it supports `return_progress`."""
    can_save_slots: bool = False
    """Whether it can save slots to disk."""
    slots: int = 1
    models: tuple[str, ...] = ()
    """All its models."""
    has_tools: bool = False
    """Whether requests may have tools; a server may reject them all the same."""


@dataclass(frozen=True, slots=True)
class Text:
    """Further text of the answer."""

    text: str
    ids: tuple[int, ...] = ()
    """Its tokens, if the prompt was a `TokenPrompt`."""
    unsent: int = 0
    """Number of tokens before `ids` that the server did not send: parts of a character."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Further text of the model's reasoning before its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class CallText:
    """Further text of a call while it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class Returned:
    """Fields of an answer with calls that the server wants back with it, such as its reasoning."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Queued:
    """The request waits for others, or not any more."""

    is_waiting: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of prompt processing."""

    total: int
    cached: int
    """Number of cached tokens in `done`."""
    done: int
    spent_ms: float


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts and times of an answer."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    prompt_ms: float = 0.0
    answer_ms: float = 0.0
    is_exact: bool = False
    draft_tokens: int = 0
    """Tokens drafted from text in the prompt."""
    accepted_tokens: int = 0
    """Accepted draft tokens, which needed no pass of the model."""
    passes: int = 0
    """Passes of the model for the answer; 0 if unknown."""


def add_usage(one: Usage, other: Usage) -> Usage:
    """Return the sum of two token counts."""
    sums = {
        each.name: getattr(one, each.name) + getattr(other, each.name)
        for each in fields(Usage)
        if each.name != "is_exact"
    }
    return Usage(**sums, is_exact=other.is_exact and (one.is_exact or one == Usage()))


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer has ended; the last event of a stream."""

    reason: End
    usage: Usage


Event = Queued | Text | Reasoning | CallText | ToolRequest | Returned | Progress | Finished


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Options of an answer."""

    max_tokens: int = 0
    """Limit; 0 for as many as fit."""
    temperature: float = 0.2
    stop: tuple[str, ...] = ()
    """Texts that end the answer, and are not part of it."""
    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, Any] | None = None
    """JSON schema of the answer, if the server can enforce one."""
    grammar: str = ""
    """The same as a GBNF grammar, for llama.cpp."""
    trigger: str = ""
    """Text from which on the grammar applies, after a `TokenPrompt`; "" for the whole answer."""
    preserved: tuple[str, ...] = ()
    """Special tokens whose text is a part of the answer, after a `TokenPrompt`."""
    seed: int = -1
    """Seed of the sampler; -1 for a random one."""
    has_counts: bool = False
    """Whether to request counts with each token, because the answer may be stopped early."""
    rank: int = 0
    """A request with a lower one is sent first: 0 if a user waits for the answer."""
