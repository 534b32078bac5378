"""The changes in a reply, as they are written there, and the files that they are applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from lcursor.edit.lines import has_text, stripped
from lcursor.edit.records import FileKind, Lines

Form = Literal["fence", "search_replace", "udiff", "patch"]
"""Code in a fence, a whole file or a part; search/replace blocks; a diff; OpenAI's
`*** Begin Patch`."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Present lines and their replacement."""

    old: Lines
    new: Lines
    scope: str = ""
    """The heading after the `@@` of a diff: a line further up that identifies the place."""
    row: int = -1
    """The row that the reply names; a hint."""
    is_last: bool = False
    """The reply says that it ends with the file."""
    unmarked: tuple[Lines, Lines] | None = None
    """Old and new lines if the context lines of the diff lack the space that marks them."""


@dataclass(frozen=True, slots=True)
class Block:
    """One change of one file."""

    form: Form
    path: str = ""
    """As it is written; "" if it is not named."""
    language: str = ""
    lines: Lines = ()
    """Of a fence, or of a new file."""
    pairs: tuple[Pair, ...] = ()
    """In the order of the file if it is a diff."""
    kind: FileKind = "edit"
    to: str = ""
    heading: str = ""
    """First of the lines of a fence if that is the path as a comment."""
    is_path_sure: bool = True
    """False if the path was only mentioned before."""
    is_elided: bool = False
    is_closed: bool = True
    problem: str = ""
    """Why it cannot be used."""

    def code_for(self, text: Lines) -> Lines:
        """Return the lines without the comment that names the path, unless a text begins with it.

        And without the blank line below that.
        """
        if not self.heading or self.heading.strip() in stripped(text[:1]):
            return self.lines
        rest = self.lines[1:]
        return rest[1:] if rest and not has_text(rest[0]) else rest


class Files(Protocol):
    """The files that changes are applied to."""

    def read(self, path: str) -> Lines | None:
        """Return a file's lines, None if there is no such file."""

    def current(self) -> str:
        """Return the path of the current file, "" for none."""

    def all(self) -> Sequence[str]:
        """Return the paths of all files, absolute or relative to the project's root."""

    def absolute(self, path: str) -> str:
        """Return the absolute form of a path that is relative to the project's root."""
