"""The data types of chat requests and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lcursor.http.detect import Kind

Role = Literal["system", "user", "assistant"]
End = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Target:
    """A model on a server, as the settings name it."""

    name: str
    """As the user calls it."""
    url: str
    """As `http.endpoint.check_url` returns it; a unix socket as `unix:///path`."""
    model: str = ""
    """As the server calls it; "" for the only one it has."""
    kind: Kind | Literal[""] = ""
    """"" to find out."""
    key: str = field(default="", repr=False)
    context_tokens: int = 0
    """As the settings say; 0 to find out."""
    setting: str = "chat"
    """Prefix of its settings, for hints."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a server can do."""

    kind: Kind
    model: str
    """The name to ask for."""
    context_tokens: int
    """Of one slot; 0 where it does not say."""
    can_count: bool = False
    """`/apply-template` and `/tokenize`: the exact prompt and its tokens."""
    can_progress: bool = False
    """`return_progress`."""
    can_keep: bool = False
    """Slots can be saved to disk."""
    slots: int = 1
    models: tuple[str, ...] = ()
    """All that it has."""


@dataclass(frozen=True, slots=True)
class Text:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """More of what the model thinks before its answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of the prompt has been read."""

    total: int
    cached: int
    """Of `done`, found in the cache."""
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
    """Drafted from text in the prompt, and checked many at a time."""
    accepted_tokens: int = 0
    """Of those, the correct ones: they needed no pass of the model."""
    passes: int = 0
    """Of the model for the answer; 0 if the server does not say."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer has ended; the last event of a stream."""

    reason: End
    usage: Usage


Event = Text | Reasoning | Progress | Finished


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Options of an answer."""

    max_tokens: int = 0
    """0 is as many as fit."""
    temperature: float = 0.2
    slot: int = -1
    """Of the server's cache; -1 lets it choose."""
    stop: tuple[str, ...] = ()
    """Texts before which the answer ends; not part of it."""
    schema: Mapping[str, Any] | None = None
    """JSON schema of the answer, if the server can enforce one."""
    grammar: str = ""
    """The same as a GBNF grammar, for llama.cpp."""
    seed: int = -1
    """Of the sampler; -1 for a random one."""
    has_counts: bool = False
    """Request counts with each token, as the answer may be stopped before its end."""
