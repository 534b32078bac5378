"""The records that the modules of an agent share. Imports no other module of the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from lcursor.llm.records import ToolRequest, Usage

Policy = Literal["plan", "ask", "auto", "full"]
State = Literal["preparing", "running", "waiting", "checking", "done", "stuck", "failed", "stopped"]
"""While it is "checking", it looks for changes that no test needs."""
DialectName = Literal["native", "fenced", "choice", "api"]
Verdict = Literal["allow", "ask", "forbid"]

FOREIGN: Final = "foreign"
"""The tool of a step of someone else's agent; its arguments have the kind and the target."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, with valid names and types of its arguments."""

    tool: str
    arguments: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Identifies equal calls."""
        return f"{self.tool} {sorted(self.arguments.items())!r}"


@dataclass(frozen=True, slots=True)
class Shown:
    """Lines of a file that the model has read."""

    path: str
    """Relative to the root."""
    first_row: int
    last_row: int
    """0-based, exclusive."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a call."""

    text: str
    """What the model reads: within the token limit, with a note on what is left out."""
    is_error: bool = False
    target: str = ""
    """The object of the call, for the user: `src/a.py:1-40`, `pytest -x`."""
    result: str = ""
    """A few words for the user: `exit 1`, `3 lines changed`, `12 hits`."""
    output: str = ""
    """Name of the stored full output, `out:17`; "" if `text` is complete."""
    shown: tuple[Shown, ...] = ()
    status: int | None = None
    """Exit status of a command."""
    obstacle: str = ""
    """Why the user's tests cannot start, whatever the model does: it ends the run."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model wrote in a step."""

    text: str
    """All of it, as generated, without the token that ends a message."""
    finish: Literal["stop", "length", "stopped"] = "stop"
    """It ended by itself; at the token limit; or the listener returned false."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Tokens of the prompt that the server found in its KV cache."""
    answer_tokens: int = 0
    calls: tuple[ToolRequest, ...] = ()
    """Calls that the server sent apart from the text."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, parsed by a dialect."""

    thought: str = ""
    """The text before the calls."""
    calls: tuple[ToolCall, ...] = ()
    problem: str = ""
    """Why it is malformed, in words for the model; "" if it is valid. Without a problem and
    without calls, the text is a final answer."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call may run."""

    verdict: Verdict
    why: str = ""
    """For the user if it asks: `opens the network`; for the model if it forbids."""
    is_bound: bool = False
    """Whether an approval for the run would end when a file changes."""


OnText = Callable[[str], bool]
"""Called with new text while a model writes; returns false to stop it."""

OnWait = Callable[[bool], None]


class Model(Protocol):
    """A conversation with a model, append-only. On the run's thread, except for `close`.

    The conversation survives the process: `state` returns what `restore` needs.
    """

    @property
    def context_tokens(self) -> int:
        """The context, for the conversation and the next answer."""

    def begin(self, system: str, task: str) -> None:
        """Start, or start again after a summary, with a system text and the first message."""

    def append(self, text: str, results: Sequence[str] = ()) -> None:
        """Add a message of the user or the results of calls, to be read with the next answer.

        Args:
            results: those that `text` has, one by one, for a conversation with a place for each.
        """

    def add_answer(self, text: str) -> None:
        """Add an answer that the model did not write itself."""

    def ask(
        self,
        on_text: OnText,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        grammar: str = "",
        is_forced: bool = False,
        on_wait: OnWait = ...,
    ) -> Answer:
        """Let the model answer; the answer becomes a part of the conversation.

        Args:
            grammar: GBNF; unless `is_forced`, it applies only from the start of a call on.
            on_wait: called when it waits for other requests, and when it does no more.

        Raises:
            Cancelled: `close` was called.
            LcursorError: the server failed; the conversation is as before.
        """

    def drop_answer(self) -> None:
        """Remove the last answer, whose prefix stays cached."""

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""

    @property
    def used_tokens(self) -> int:
        """The length of the conversation."""

    def state(self) -> Mapping[str, Any]:
        """Return the conversation as JSON."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue a conversation of `state`."""

    @property
    def usage(self) -> Usage:
        """All tokens read and written since it was opened, also by summaries and rewrites."""

    def close(self) -> None:
        """Stop the current answer. Thread: any."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a model may name whose dialect lets it choose."""

    paths: tuple[str, ...] = ()
    """Files it has seen named, relative to the root."""
    symbols: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Definitions of files it has seen named."""
    regions: Mapping[str, Shown] = field(default_factory=dict)
    """Regions it has read, by id: `a.py#load`."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """The user's commands by name: test, lint."""
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Schemas of the arguments of servers' tools that it has found, by name."""
    may_look: bool = True
    """Whether it may read and search, although it could edit."""
    may_search: bool = True
    """Whether it may search, although it could read."""
    may_end: bool = True
