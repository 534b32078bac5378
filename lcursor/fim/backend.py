"""What completes: a model in this process (`engine.Engine`) or a server (`endpoint.Endpoint`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lcursor.config import CompletionConfig
from lcursor.errors import LcursorError
from lcursor.fim.prompt import Source
from lcursor.fim.result import OnText, Result

Progress = Callable[[float], bool]
"""Called with the progress of a load, 0 to 1; returning False stops it."""
OnImproved = Callable[[Result], None]
"""Called on the engine's thread, in idle time, with the answer of a larger window to a request that
was answered from a smaller one, also if it is the same."""


class Abort(Protocol):
    """The flag that stops the running request. Any thread."""

    def set(self, *, immediately: bool = False) -> None:
        """Stop the running request and, until `clear`, later ones.

        Args:
            immediately: stop the running batch, too; what it has evaluated is lost.
        """

    def clear(self) -> None:
        """Allow requests again."""


class Backend(Protocol):
    """What the completer uses; on the scheduler's thread only, except for `abort`.

    Attributes:
        threshold: confidence below which nothing is shown, 0 to 1; a server reports no confidence.
        is_machine_busy: whether other programs use all cores; a server ignores it.
    """

    threshold: float
    is_machine_busy: bool

    @property
    def abort(self) -> Abort:
        """Stops the running request."""

    @property
    def config(self) -> CompletionConfig:
        """The settings in use."""

    @property
    def warnings(self) -> list[LcursorError]:
        """Non-fatal problems for the user; the reader clears the list."""

    @property
    def read_tokens(self) -> int:
        """Prompt tokens that the last request evaluated, even if it was stopped."""

    @property
    def name(self) -> str:
        """What the statusline shows."""

    @property
    def description(self) -> str:
        """One line for the log."""

    @property
    def is_connected(self) -> bool:
        """Whether `connect` was successful; always True for a model in this process."""

    def connect(self) -> None:
        """Find out the API and the model of a server.

        Raises:
            LcursorError, Cancelled: see `endpoint.Endpoint.connect`.
        """

    def configure(self, config: CompletionConfig) -> None:
        """Apply settings that require neither a reload nor a new connection."""

    def complete(
        self,
        source: Source,
        on_text: OnText,
        *,
        single_line: bool = False,
        bypass_cache: bool = False,
    ) -> Result:
        """Complete at a position; see `engine.Engine.complete`."""

    def alternatives(self, typed: str = "") -> list[str]:
        """Return other texts for the last request, the most likely first."""

    def warm(self, source: Source) -> None:
        """Evaluate the prompts that a request at this position will need."""

    def idle(self) -> bool:
        """Do one step of work for later requests; return whether there is more."""

    def measure_speed(self) -> str:
        """Measure and store the speed of the model; return a line for the log, "" for none."""

    def save(self) -> None:
        """Save what later requests can use."""

    def close(self) -> None:
        """Free the model, or close the connections."""
