"""The messages of the session itself: its start and end, the settings, errors and the log."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from lcursor.errors import Level

HostState = Literal["loading_model", "ready", "failed"]


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


TO_PYTHON: dict[str, type] = {
    "hello": Hello,
    "config": ConfigChanged,
    "shutdown": Empty,
}
TO_LUA: dict[str, type] = {
    "ready": Ready,
    "state": State,
    "error": ErrorMessage,
    "log": Log,
}
