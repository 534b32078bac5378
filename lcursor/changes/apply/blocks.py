"""The changes in a reply as written, and the files that they apply to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from lcursor.changes.lines import has_text, stripped
from lcursor.changes.records import FileKind, Lines

Form = Literal["fence", "search_replace", "udiff", "patch"]
"""Fenced code (a file or a part), search/replace blocks, a diff, OpenAI's `*** Begin Patch`."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Existing lines and their replacement."""

    old: Lines
    new: Lines
    scope: str = ""
    """The heading after the `@@` of a diff: an earlier line that identifies the position."""
    row: int = -1
    """The row given in the reply, only a hint."""
    is_last: bool = False
    """Whether the lines end with the file, according to the reply."""
    unmarked: tuple[Lines, Lines] | None = None
    """Old and new lines if the context lines of the diff lack their leading space."""


@dataclass(frozen=True, slots=True)
class Block:
    """One change of one file."""

    form: Form
    path: str = ""
    """Path as written; "" if there is none."""
    language: str = ""
    lines: Lines = ()
    """The lines of a fence, or of a new file."""
    pairs: tuple[Pair, ...] = ()
    """For a diff, in the order of the file."""
    kind: FileKind = "edit"
    to: str = ""
    heading: str = ""
    """The first line of a fence, if that is a comment with the path."""
    texts: tuple[str, ...] = ()
    """Texts in the places of a path, of which one is the path if there is such a file."""
    is_path_sure: bool = True
    """False if the path was only mentioned in the text before."""
    is_elided: bool = False
    is_closed: bool = True
    problem: str = ""
    """Why it cannot be used."""

    def code_for(self, text: Lines) -> Lines:
        """Return the lines without a path comment and the blank line after it.

        The comment stays if the text starts with the same comment.
        """
        if not self.heading or self.heading.strip() in stripped(text[:1]):
            return self.lines
        rest = self.lines[1:]
        return rest[1:] if rest and not has_text(rest[0]) else rest


class TextSource(Protocol):
    """The files that changes apply to."""

    def read(self, path: str) -> Lines | None:
        """Return a file's lines; None if there is no such file."""

    def current(self) -> str:
        """Return the path of the current file; "" for none."""

    def all(self) -> Sequence[str]:
        """Return the paths of all files, absolute or relative to the project's root."""

    def absolute(self, path: str) -> str:
        """Return the absolute form of a path that is relative to the project's root."""
