"""The task of a rewrite, feedback on failed attempts, and the listener of its progress."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lcursor.changes.lines import without_returns
from lcursor.changes.records import Format, Lines, Region
from lcursor.protocol.edit import EditPhase


@dataclass(frozen=True, slots=True)
class Task:
    """A region of a file, and an instruction."""

    path: str
    """Absolute path."""
    name: str
    """Path relative to the project's root."""
    language: str
    """Name in `code.languages`; "" or `text` if unknown."""
    lines: Lines
    """Lines of the whole file."""
    region: Region
    instruction: str
    context: str = ""
    """Attachments, in fenced blocks with headings."""
    format: Format = "whole"
    selection: Lines = ()
    """The lines that the user selected, if the region is larger."""
    sketch: str = ""
    """The sketch of the change by a chat."""

    @property
    def old(self) -> Lines:
        """The region's current lines."""
        return self.lines[self.region.first_row : self.region.last_row]

    @property
    def near(self) -> Lines:
        """The region's current lines, or a line next to it if it has none."""
        first, last = self.region.first_row, self.region.last_row
        return self.old or self.lines[max(first - 1, 0) : first] or self.lines[last : last + 1]

    def without_returns(self) -> Task:
        """Return the task for a model, which writes no CR at the end of a line."""
        lines, selection = without_returns(self.lines), without_returns(self.selection)
        return replace(self, lines=lines, selection=selection)

    def with_new(self, new: Lines) -> Lines:
        """Return the whole file with the region replaced."""
        return self.lines[: self.region.first_row] + new + self.lines[self.region.last_row :]


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An unsatisfactory attempt, as feedback for the next one."""

    problems: tuple[str, ...]
    """Problems as sentences for the model; empty if the user requests an alternative."""
    lines: Lines = ()
    """The model's text."""


@dataclass(frozen=True, slots=True)
class RewriteProgress:
    """The state of a rewrite; the fields of `edit.progress`."""

    phase: EditPhase
    detail: str = ""
    done: int = 0
    total: int = 0
    seconds_left: float = -1.0
    attempt: int = 1


class RewriteListener:
    """Gets the progress of a rewrite; this base class ignores it."""

    def started(self, region: Region, attempt: int) -> None:
        """Called when an attempt starts."""

    def progress(self, now: RewriteProgress) -> None:
        """Called with new progress."""

    def lines(self, attempt: int, lines: Lines) -> None:
        """Called with further complete lines of the region's new text."""
