"""Estimate what indexing a project takes: files, bytes and seconds, and what is left out.

Works on a survey of the project; reads no file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lcursor.code import languages
from lcursor.project import filetypes
from lcursor.project.listing import Survey
from lcursor.project.secrets import SecretGlobs

MAX_EXAMPLES = 3
FILE_S = 0.002
BYTES_PER_S = 1_000_000
"""Reading: seconds for each file, and bytes a second on top.

Source: Python's standard library, 1,700 files and 30 MB, in 33 s on one shared core of an AMD EPYC
(2026-11-21, `python -m lcursor bench index`).
"""
CHUNKS_PER_S = 33.0
"""Embedding with the default embedder on two idle cores of the same machine."""
CHUNK_BYTES = 1_430
"""Source text of a chunk. Source: this project, 1,983 chunks of 2.83 MB."""


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


def summarize(survey: Survey, own: SecretGlobs | None = None) -> Report:
    """Sum up a survey, without the files that the user calls secret."""
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    ignored: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}

    def leave_out(path: str, reason: str) -> None:
        ignored[reason] += 1
        some = examples.setdefault(reason, [])
        if len(some) < MAX_EXAMPLES:
            some.append(path)

    for path, reason in survey.ignored:
        leave_out(path, _group(reason))
    for path, size_bytes, _ in survey.files:
        reason = filetypes.by_name(path, size_bytes) or (own.reason(path) if own else "")
        if reason:
            leave_out(path, _group(reason))
            continue
        language = languages.detect(path)
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
