"""Preview the index of a project, and explain why a file is left out. Any thread.

`summarize` uses a survey and reads no file; `why` reads one file.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from lcursor import system
from lcursor.code import languages
from lcursor.index import parse
from lcursor.project import filetypes, ignore, listing
from lcursor.project.listing import Survey
from lcursor.project.secrets import SecretGlobs

MAX_EXAMPLES = 3
FILE_S = 0.002
BYTES_PER_S = 1_000_000
"""Parsing time: seconds per file, plus bytes per second.

Source: Python's standard library, 1,700 files and 30 MB, in 33 s on one shared core of an AMD EPYC
(2026-11-21, `python -m lcursor bench index`).
"""
CHUNKS_PER_S = 33.0
"""Embedding speed with the default embedder on two idle cores of the same machine.

While the user is there, one core embeds.
"""
CHUNK_BYTES = 1_430
"""Average source text of a chunk. Source: this project, 1,983 chunks of 2.83 MB."""


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a project."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """The files that indexing would read and leave out."""

    files: int
    bytes: int
    languages: dict[str, Share]
    """Languages, the largest first."""
    ignored: dict[str, int]
    """Number of left-out paths by reason; a directory counts as one."""
    examples: dict[str, list[str]]
    """Some paths for each reason."""
    seconds: float
    """Estimated time until lexical search is complete."""
    embed_seconds: float
    """Estimated time until vector search is complete, without cached vectors, on one core."""


def summarize(survey: Survey, secret_globs: SecretGlobs) -> Report:
    """Return a report on the files of a survey."""
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    ignored: defaultdict[str, list[str]] = defaultdict(list)
    for path, reason in survey.ignored:
        ignored[_group(reason)].append(path)
    for path, size_bytes, _ in survey.files:
        if reason := filetypes.by_name(path, size_bytes) or secret_globs.reason(path):
            ignored[_group(reason)].append(path)
        else:
            sizes[languages.detect(path)].append(size_bytes)
    shares = {name: Share(len(found), sum(found)) for name, found in sizes.items()}
    files = sum(share.files for share in shares.values())
    total = sum(share.bytes for share in shares.values())
    return Report(
        files=files,
        bytes=total,
        languages=dict(sorted(shares.items(), key=lambda one: (-one[1].bytes, one[0]))),
        ignored={
            reason: len(paths)
            for reason, paths in sorted(ignored.items(), key=lambda one: -len(one[1]))
        },
        examples={reason: paths[:MAX_EXAMPLES] for reason, paths in ignored.items()},
        seconds=(files * FILE_S + total / BYTES_PER_S) * _slowdown(),
        embed_seconds=total / CHUNK_BYTES / (CHUNKS_PER_S / 2) * _slowdown(),
    )


def _slowdown() -> float:
    """Return how many times longer work takes because of the other processes, at least 1."""
    try:
        load = os.getloadavg()[0]
    except OSError:
        load = 0.0
    return max(1.0, (load + 1) / system.usable_cores())


def _group(reason: str) -> str:
    return reason.split(":", 1)[0]


def why(root: Path, name: str, secret_globs: SecretGlobs) -> str:
    """Return why a file is not in the index; "" if it is or will be."""
    reason = ignore.why(root, name)
    found = listing.found(root, name)
    if reason or found is None:
        return reason
    reason = filetypes.by_name(name, found.size_bytes) or secret_globs.reason(name)
    if reason:
        return reason
    content = parse.read_file(root, name)
    if isinstance(content, parse.Unreadable):
        return content.reason
    return filetypes.by_content(content.data)
