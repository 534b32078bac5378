"""The positions and recorded screens of `bench typing`, and how times are computed from them.

`ghost_times_ms` defines a valid suggestion, `find_stay` the one that stays.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from lcursor.errors import LcursorError

KEYS = 6
COLD_KEYS = 3
MARGIN_ROWS = 60
APART_ROWS = 60
"""Minimum distance of a cold position from the previous one, if the file allows."""
SHORTEST = 15
COMMENTS = ("#", '"', "'", "//", "--", "/*", "*", "<!--")
"""The beginnings of comment lines and of lines with only a string."""
BLOCKS = (("/*", "*/"), ("--[[", "]]"), ("<!--", "-->"))
QUOTES = ('"""', "'''")


@dataclass(frozen=True, slots=True)
class Spot:
    """A line of the file whose end was removed.

    Attributes:
        row: 0-based.
        before: the beginning of the line.
        typed: what is typed after it.
        rest: the rest, which was removed.
        file: its name in the report.
    """

    row: int
    before: str
    typed: str
    rest: str
    file: str = ""

    @property
    def head(self) -> str:
        """The line when all keys are typed."""
        return self.before + self.typed

    def with_keys(self, count: int) -> Spot:
        """Return the same position with only the last keys left to type."""
        at = len(self.typed) - count
        return replace(self, before=self.before + self.typed[:at], typed=self.typed[at:])


class Flush(NamedTuple):
    """A screen that was drawn."""

    at_s: float
    left: str
    """The text left of the cursor."""
    ghost: str


class Cost(NamedTuple):
    """The work of the engine for one key."""

    tokens: int
    """Prompt tokens evaluated."""
    passes: int | None
    """Decode calls before the first generated token; None if no token was evaluated."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of one spot in a warm run.

    Attributes:
        final: the suggestion on the screen once it had settled; empty if there was none.
        ghost_ms: for each key, the time to a valid suggestion; None if none came.
        answer_ms: the same, from the newest key that was on the screen by then.
        tokens: for each key, the prompt tokens evaluated.
        main_ms: for each key, the time on Neovim's main thread.
        passes: for each key, see `Cost`; None also if the engine does not report it.
        ungated: the suggestion without a confidence gate; None if not asked for.
    """

    spot: Spot
    final: str
    ghost_ms: list[float | None]
    answer_ms: list[float | None]
    tokens: list[int]
    main_ms: list[float]
    passes: list[int | None] = field(default_factory=list)
    ungated: str | None = None


class Drawn(NamedTuple):
    """A screen of a cold run.

    Attributes:
        ms: time since the last key.
        typed: number of keys on it.
        ghost: the suggestion on it.
    """

    ms: float
    typed: int
    ghost: str


@dataclass(frozen=True, slots=True)
class Jump:
    """The result of one spot in a cold or rested run.

    Attributes:
        drawn: every screen since the jump.
        end_ms: the end of the observation, since the last key; later screens only show whether
            the suggestion was replaced.
        has_answer: False if time was up before the engine had answered.
        tokens: for each key, the prompt tokens evaluated.
    """

    spot: Spot
    drawn: list[Drawn]
    end_ms: float
    has_answer: bool
    tokens: list[int]

    def stay(self) -> Stay | None:
        """Return the suggestion that stayed, if any."""
        return find_stay(self.drawn, len(self.spot.typed), self.end_ms)


class Stay(NamedTuple):
    """The suggestion that stayed.

    Attributes:
        ms: from the last key to the first screen with it.
        ghost: all of it, at the end of the observation.
        replaced_later: whether it was changed other than by extension after the observation.
    """

    ms: float
    ghost: str
    replaced_later: bool


def find_stay(drawn: Sequence[Drawn], keys: int, end_ms: float) -> Stay | None:
    """Find the first suggestion after the last key that was only extended until `end_ms`.

    Args:
        drawn: screens in order of time.
        keys: number of keys typed; screens with fewer keys do not count.
        end_ms: the end of the observation, since the last key.
    """
    after = [each for each in drawn if each.typed == keys and each.ms >= 0]
    watched = [each for each in after if each.ms <= end_ms]
    if not watched or not watched[-1].ghost.strip():
        return None
    last = watched[-1].ghost.rstrip()
    ms = watched[-1].ms
    for each in reversed(watched):
        if not each.ghost.strip() or not last.startswith(each.ghost.rstrip()):
            break
        ms = each.ms
    later = after[len(watched) :]
    return Stay(ms, last, any(not each.ghost.startswith(last) for each in later))


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file as Neovim counts them.

    Raises:
        LcursorError: the file cannot be read as UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise LcursorError(f"{path} cannot be read: {error}", "Name a source file") from error


def is_exact(suggestion: str, rest: str) -> bool:
    """Whether its first line is the removed text, ignoring trailing white space."""
    return suggestion.split("\n")[0].rstrip() == rest.rstrip()


def is_beginning(suggestion: str, rest: str) -> bool:
    """Whether its first line is a prefix of the removed text."""
    first = suggestion.split("\n")[0].rstrip()
    return bool(first.strip()) and rest.startswith(first)


def spread(total: int, parts: int) -> list[int]:
    """Split `total` into parts that are as equal as possible, larger ones first."""
    least, more = divmod(total, parts)
    return [least + (part < more) for part in range(parts)]


def apart(spots: Sequence[Spot]) -> list[Spot]:
    """Order the spots so that each is `APART_ROWS` or more from the one before.

    The first spot that is far enough comes next; if there is none, the farthest one.
    """
    left, ordered = list(spots), list[Spot]()
    while left:
        row = ordered[-1].row if ordered else 0
        far = (spot for spot in left if abs(spot.row - row) >= APART_ROWS)
        ordered.append(next(far, None) or max(left, key=lambda spot: abs(spot.row - row)))
        left.remove(ordered[-1])
    return ordered


def pick_spots(lines: Sequence[str], count: int, seed: int, file: str = "") -> list[Spot]:
    """Choose lines of code and columns in them, depending on the seed.

    Raises:
        LcursorError: the file has too few suitable lines.
    """
    rng = random.Random(seed)
    rows = [
        row
        for row in _code_rows(lines)
        if MARGIN_ROWS < row < len(lines) - MARGIN_ROWS
        and len(text := lines[row].strip()) >= SHORTEST
        and text.isascii()
        and text.isprintable()
        and not text.startswith(COMMENTS)
    ]
    if len(rows) < count:
        raise LcursorError(
            f"{file or 'the file'} has {len(rows)} lines of code to type in, {count} are needed",
            "Name a longer file, or fewer positions with --positions",
        )
    rng.shuffle(rows)
    return [_cut(row, lines[row], rng, file) for row in rows[:count]]


def _code_rows(lines: Sequence[str]) -> Iterator[int]:
    """Yield the rows outside of docstrings and multi-line comments."""
    end = ""
    for row, line in enumerate(lines):
        text = line.strip()
        if end:
            end = "" if end in text else end
            continue
        quotes = [quote for quote in QUOTES if text.count(quote) % 2]
        blocks = [close for start, close in BLOCKS if text.startswith(start) and close not in text]
        end = (quotes + blocks + [""])[0]
        yield row


def _cut(row: int, line: str, rng: random.Random, file: str) -> Spot:
    indent = len(line) - len(line.lstrip())
    least = KEYS + 2
    at = indent + rng.randint(least, max(least, len(line.strip()) * 2 // 3))
    return Spot(row, line[: at - KEYS], line[at - KEYS : at], line[at:], file)


def ghost_times_ms(
    flushes: Sequence[Flush], sent_s: Sequence[float], base: int
) -> tuple[list[float | None], list[float | None]]:
    """Return, for each key, the time to the first valid ghost: since it, and since the newest key.

    A ghost is valid if the line with it is a prefix of the line on the last screen. A screen
    answers a key only if that key is on it.

    Args:
        flushes: every screen since the first key; the last one has settled.
        sent_s: when each key was sent.
        base: characters left of the cursor before the first key.
    """
    last = flushes[-1]
    if not last.ghost.strip():
        return [None] * len(sent_s), [None] * len(sent_s)
    whole = last.left + last.ghost
    valid = [
        (flush.at_s, len(flush.left) - base)
        for flush in flushes
        if flush.ghost.strip() and whole.startswith((flush.left + flush.ghost).rstrip())
    ]
    first = [
        next(((at, typed) for at, typed in valid if at >= sent and typed >= key), None)
        for key, sent in enumerate(sent_s, 1)
    ]
    return (
        [found and 1000 * (found[0] - sent) for found, sent in zip(first, sent_s, strict=True)],
        [found and 1000 * (found[0] - sent_s[min(found[1], len(sent_s)) - 1]) for found in first],
    )
