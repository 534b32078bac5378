"""The task of a rewrite, feedback on failed attempts, and the listener of its progress."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lcursor.edit.records import Format, Lines, Region
from lcursor.llm.records import Usage
from lcursor.protocol.edit import EditPhase


@dataclass(frozen=True, slots=True)
class Task:
    """A region of a file, and an instruction."""

    path: str
    """Absolute."""
    name: str
    """Relative to the project's root."""
    language: str
    """As `code.languages` names it; "" or `text` if unknown."""
    lines: Lines
    """Of the whole file."""
    region: Region
    instruction: str
    context: str = ""
    """Attachments, in fenced blocks with headings."""
    format: Format = "whole"
    selection: Lines = ()
    """The lines that the user selected, if the region is larger."""
    sketch: str = ""
    """How a planner or a chat would make the change."""

    @property
    def old(self) -> Lines:
        """The region's current lines."""
        return self.lines[self.region.first_row : self.region.last_row]

    def with_new(self, new: Lines) -> Lines:
        """Return the whole file with the region replaced."""
        return self.lines[: self.region.first_row] + new + self.lines[self.region.last_row :]


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt that was not good enough, as feedback for the next one."""

    problems: tuple[str, ...]
    """What is wrong, as sentences for the model; empty if the user wants an alternative."""
    lines: Lines = ()
    """What the model wrote."""


@dataclass(frozen=True, slots=True)
class RewriteProgress:
    """What a rewrite is doing; the fields of `edit.progress`."""

    phase: EditPhase
    detail: str = ""
    done: int = 0
    total: int = 0
    seconds_left: float = -1.0
    attempt: int = 1


class RewriteListener:
    """Hears how a rewrite goes; this one ignores it."""

    def started(self, region: Region, attempt: int) -> None:
        """An attempt at a region starts."""

    def progress(self, now: RewriteProgress) -> None:
        """Something has made progress."""

    def lines(self, attempt: int, lines: Lines) -> None:
        """More complete lines of the region's new text have arrived."""


def add_usage(one: Usage, other: Usage) -> Usage:
    """Return the token counts of two answers together."""
    sums = {
        each.name: getattr(one, each.name) + getattr(other, each.name)
        for each in fields(Usage)
        if each.name != "is_exact"
    }
    return Usage(**sums, is_exact=other.is_exact and (one.is_exact or one == Usage()))
