"""The change in a piece of a reply, as it is written there: where it goes is another matter.

Vocabulary: what `reply.py` and `patches.py` read and `resolve.py` finds places for, and the files
that it does so in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from lcursor.edit.records import FileKind, Lines

Form = Literal["fence", "search_replace", "udiff", "patch"]
"""Code in a fence: a whole file or a part of it; what is there and what shall be; a diff; OpenAI's
`*** Begin Patch`."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Lines that are there, and what shall be there."""

    old: Lines
    new: Lines
    scope: str = ""
    """A line further up that says which of several; behind the `@@` of a diff."""
    row: int = -1
    """Where the reply says it is; a hint that nothing relies on."""
    is_last: bool = False
    """It is said to end with the file."""
    unmarked: tuple[Lines, Lines] | None = None
    """Both, if the lines of a diff that stay lack the blank that marks them."""


@dataclass(frozen=True, slots=True)
class Block:
    """One change of one file."""

    form: Form
    path: str = ""
    """As it is written; "" where nothing says it."""
    language: str = ""
    lines: Lines = ()
    """Of a fence, or of a file that is created."""
    pairs: tuple[Pair, ...] = ()
    """In the order of the file where it is a diff."""
    kind: FileKind = "edit"
    to: str = ""
    blob: str = ""
    """How git names the text before, where the reply says it; maybe only its beginning."""
    heading: str = ""
    """First line of the fence, where that is the path as a comment; no part of `lines`."""
    is_path_sure: bool = True
    """False where the path was only spoken of before."""
    is_elided: bool = False
    is_closed: bool = True
    problem: str = ""
    """Why it cannot be used, as it is written."""


class Files(Protocol):
    """The texts that there are."""

    def read(self, path: str) -> Lines | None:
        """Return a file's lines, None where there is no such file."""

    def current(self) -> str:
        """Return the path of the file that is looked at, "" for none."""

    def all(self) -> Sequence[str]:
        """Return the paths of all files, absolute or relative to the project's root."""

    def absolute(self, path: str) -> str:
        """Return a path, which counts from the project's root, as an absolute one."""
