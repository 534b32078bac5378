"""What indexing a project will mean, before it begins: how much, in what, how long, what not.

Arithmetic over a survey; reads no file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lcursor.index.files import Survey

FILE_S = 0.004
"""Time that each file takes on two slow cores, whatever its size."""
BYTES_PER_S = 900_000
"""Read, cut into chunks and stored, on top of that."""
CHUNK_BYTES = 1900
"""Of source text for one chunk: its letters, and the blanks between."""
CHUNKS_PER_S = 30
"""That the default embedder reads."""
MOST_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a project."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """What is about to be indexed."""

    files: int
    bytes: int
    languages: dict[str, Share]
    """The largest first."""
    ignored: dict[str, int]
    """Reasons, and how many paths each; a directory counts as one."""
    examples: dict[str, list[str]]
    """Of each reason some of its paths."""
    seconds: float
    """Until all is found by its words."""
    embed_seconds: float
    """And by its meaning, if nothing of it was seen before."""


def report(survey: Survey) -> Report:
    """Sum a survey up."""
    from lcursor.index import languages, skip

    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    ignored: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}

    def leave_out(path: str, reason: str) -> None:
        ignored[reason] += 1
        some = examples.setdefault(reason, [])
        if len(some) < MOST_EXAMPLES:
            some.append(path)

    for path, reason in survey.ignored:
        leave_out(path, _group(reason))
    for path, size_bytes, _ in survey.files:
        reason = skip.by_name(path, size_bytes)
        if reason:
            leave_out(path, reason)
            continue
        language = languages.of(path)
        files[language] += 1
        sizes[language] += size_bytes
    total = sizes.total()
    return Report(
        files=files.total(),
        bytes=total,
        languages={
            name: Share(files[name], size)
            for name, size in sorted(sizes.items(), key=lambda one: (-one[1], one[0]))
        },
        ignored=dict(ignored.most_common()),
        examples=examples,
        seconds=files.total() * FILE_S + total / BYTES_PER_S,
        embed_seconds=total / CHUNK_BYTES / CHUNKS_PER_S,
    )


def _group(reason: str) -> str:
    """Return a reason without the row and the pattern that say it."""
    return reason.split(":", 1)[0]
