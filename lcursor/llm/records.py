"""What the chat slot's client and those who use it hand to each other.

Vocabulary: imports nothing of ours but the kinds of servers.
"""

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
    """A name that the server knows; "" is the only one it has."""
    kind: Kind | Literal[""] = ""
    """"" to find out."""
    key: str = field(default="", repr=False)
    context_tokens: int = 0
    """What the user says it has; 0 to find out."""
    setting: str = "chat"
    """What the settings of it begin with, for hints."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a server was found to be able to do."""

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
    """All that it offers."""


@dataclass(frozen=True, slots=True)
class Text:
    """More of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """More of what the model thinks before it answers."""

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
    """What a turn cost, by the server's count or by ours."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    prompt_ms: float = 0.0
    answer_ms: float = 0.0
    is_exact: bool = False
    draft_tokens: int = 0
    """Guessed from what stands in the prompt, and looked at many at a time."""
    accepted_tokens: int = 0
    """Of those, the ones that were right: no pass of the model was needed for them."""
    passes: int = 0
    """Of the model for the answer; 0 where the server does not say."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer has ended; the last event of a stream."""

    reason: End
    usage: Usage


Event = Text | Reasoning | Progress | Finished


@dataclass(frozen=True, slots=True)
class Wish:
    """How an answer shall be made."""

    max_tokens: int = 0
    """0 is as many as fit."""
    temperature: float = 0.2
    slot: int = -1
    """Of the server; -1 lets it choose."""
    stop: tuple[str, ...] = ()
    """Texts before which the answer ends; they are no part of it."""
    schema: Mapping[str, Any] | None = None
    """JSON schema of the answer, where the server can hold a model to one."""
    grammar: str = ""
    """The same as a GBNF grammar; llama.cpp alone takes it."""
    seed: int = -1
    """Of the choice of tokens; -1 is any."""
    has_counts: bool = False
    """The counts shall come with each token, as the answer may be stopped before its end."""
