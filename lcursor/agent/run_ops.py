"""The operations of a run's log, as they are stored; `run_log` applies them. Pure.

A field that a later version added has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lcursor.agent.records import Observation, Policy, State, ToolCall
from lcursor.protocol.agent import AgentChoice


@dataclass(frozen=True, slots=True)
class Start:
    """The first one."""

    key: str
    root: str
    task: str
    context: str
    policy: Policy
    model: str
    dialect: str
    sandbox: str
    note: str
    at_s: float
    version: int = 1
    group: str = ""
    attempt: int = 0
    test: str = ""


@dataclass(frozen=True, slots=True)
class Talk:
    """The conversation with the model has grown."""

    talk: Mapping[str, Any]
    """A result of `run_log.difference`."""
    is_read: bool = False
    """Whether the model has the results of the last answer."""
    said: int = 0
    """Number of new messages of the user in it."""
    is_summary: bool = False
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class Tokens:
    """Numbers of tokens of an answer."""

    read_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """The model has answered."""

    text: str
    calls: tuple[ToolCall, ...]
    problem: str
    finish: str
    seconds: float
    usage: Tokens
    cached_share: float
    talk: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Added:
    """The program makes a call for an answer."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """The user is asked whether a call may run."""

    step: int


@dataclass(frozen=True, slots=True)
class Decided:
    """The user has answered."""

    step: int
    decision: str
    choice: AgentChoice
    reason: str
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Begun:
    """A call begins that may change files."""

    step: int
    tree: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A call has ended."""

    step: int
    tree: str
    digest: str
    observation: Observation
    seconds: float


@dataclass(frozen=True, slots=True)
class Said:
    """The user says something."""

    text: str


@dataclass(frozen=True, slots=True)
class Planned:
    """The user has approved a plan."""

    step: int
    text: str
    policy: Policy


@dataclass(frozen=True, slots=True)
class Done:
    """The run has ended."""

    state: State
    message: str
    turn: str
    is_checked: bool
    paths: list[str]
    digest: str = ""
    """Result of `attempts.digest`."""
    added: int = 0
    removed: int = 0
    changes_tests: bool = False


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run is continued."""

    sandbox: str
    policy: Policy | None = None
    """None if it stays the same."""
