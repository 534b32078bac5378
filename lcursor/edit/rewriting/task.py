"""What is asked of a rewrite: a region of a text, and what shall be done with it.

Vocabulary: imports only what the rooms of an edit hand to each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from lcursor.edit.records import Format, Lines, Region


@dataclass(frozen=True, slots=True)
class Task:
    """One region of one file, and an instruction."""

    path: str
    """Absolute."""
    name: str
    """Relative to the project's root."""
    language: str
    """As `code.languages` names it; "" or `text` where none is known."""
    lines: Lines
    """Of the whole text."""
    region: Region
    instruction: str
    context: str = ""
    """What is attached, in fenced blocks with their heads; "" for nothing."""
    format: Format = "whole"
    selection: Lines = ()
    """What the user marked, where the region is more than that; nothing where it is not."""
    sketch: str = ""
    """What a planner thinks the change should be; "" for none."""

    @property
    def old(self) -> Lines:
        """The region's text as it is."""
        return self.lines[self.region.first_row : self.region.last_row]


@dataclass(frozen=True, slots=True)
class Failed:
    """A try that was not good enough, for the next one to learn from."""

    problems: tuple[str, ...]
    """What is wrong with it, in sentences for the model; nothing where another way is asked for."""
    lines: Lines = ()
    """What it wrote; nothing where there was nothing to read."""
