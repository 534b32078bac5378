"""What indexing a project will mean, before it begins: how much, in what, how long, what not.

Arithmetic over a survey; reads no file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lcursor.index.rates import Rates

if TYPE_CHECKING:
    from lcursor.index.files import Survey
    from lcursor.index.own import OwnSecrets

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


def report(survey: Survey, own: OwnSecrets | None = None, speed: Rates | None = None) -> Report:
    """Sum a survey up, without what the user calls secret.

    Args:
        speed: of this machine; a guess where none is given.
    """
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
        reason = skip.by_name(path, size_bytes) or (own.reason(path) if own else "")
        if reason:
            leave_out(path, _group(reason))
            continue
        language = languages.of(path)
        files[language] += 1
        sizes[language] += size_bytes
    total, speed = sizes.total(), speed or Rates()
    return Report(
        files=files.total(),
        bytes=total,
        languages={
            name: Share(files[name], size)
            for name, size in sorted(sizes.items(), key=lambda one: (-one[1], one[0]))
        },
        ignored=dict(ignored.most_common()),
        examples=examples,
        seconds=speed.read_s(files.total(), total),
        embed_seconds=speed.embed_s(total),
    )


def _group(reason: str) -> str:
    """Return a reason without the row and the pattern that say it."""
    return reason.split(":", 1)[0]
