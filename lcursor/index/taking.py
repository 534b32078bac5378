"""What one file becomes: read as it stands, looked at, cut in pieces.

Pure but for the file; any thread, any process. Knows no store.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lcursor.index import chunk, reading, skip
from lcursor.index.records import FileState, Parsed

NOTHING = Parsed("", (), ())
"""Of a file that holds nothing to find: its state is kept, so that it is not read again."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was found where a file should be."""

    path: str
    state: FileState | None = None
    """None where it was not read."""
    parsed: Parsed | None = None
    """None where its content is as it was known."""
    is_gone: bool = False
    """What is known of it holds no more."""


def take(root: Path, path: str, known: bytes | None) -> Taken:
    """Read and parse a file of a project.

    Args:
        root: of the project.
        path: of the file in it.
        known: digest of the content that was read before; None for none.
    """
    found = reading.read(root, path)
    if isinstance(found, reading.Refusal):
        return Taken(path, is_gone=not found.is_restless)
    if found.state.digest == known:
        return Taken(path, found.state)
    if skip.by_content(found.data):
        return Taken(path, found.state, NOTHING)
    return Taken(path, found.state, chunk.read(path, skip.decode(found.data)))
