"""Is a spliced prompt as good as one that is read exactly? Both read real code; the truth judges.

At each place the rest of a line is taken out. The suffix is read with the cursor some tokens
earlier, these are typed one by one, and the true rest is judged behind it; then behind the prompt
as it is read exactly. Runs the engine in this process, on this thread.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from evals.corpus import LANGUAGES, File, files
from lcursor.errors import EngineFailed, LcursorError
from lcursor.fim.prompt import Source

if TYPE_CHECKING:
    from lcursor.fim.llama import Model

TYPED = (2, 8, 16)
A_FILE = 4
"""Most places in one file, so that not every one costs the reading of a prefix."""
PREFIX_TOKENS = (400, 640)
"""Least and most before the line; with it under the engine's window, whose start so never moves."""
MAX_BEFORE = 100
"""Tokens of the line before the cursor; more of them would move that window."""
REACH_LINES = 120
"""Where the other places of a file may be, behind the first."""
SUFFIX_LINES = 60
MIN_SUFFIX = 300
"""Characters behind the line, white space not counted."""
REST_TOKENS = (5, 24)
"""Least and most of the rest of a line that is judged."""
TRIES = 12
"""Lines of one file that are looked at as the first."""
EXACT_TOKENS = 24
"""Who reads a suffix reads more than so many; a key reads less."""

Pieces = Callable[[str], list[str]]
"""Splits text into the texts of its tokens."""


class Splices(Protocol):
    """What can be told to keep the suffix or to read it anew."""

    splices: bool


class Reads(Protocol):
    """What is judged."""

    @property
    def reader(self) -> Splices:
        """What brings its prompts."""

    @property
    def read_tokens(self) -> int:
        """Tokens of the prompt that the last call read."""

    def nll(self, source: Source, text: str) -> list[float]:
        """Return what each token of `text` costs behind the prompt for `source`, in nats."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A cursor in a real file."""

    language: str
    label: str
    row: int
    prefixes: tuple[str, ...]
    """The text before the cursor; then the same with one, two, ... tokens less."""
    rest: str
    """The true rest of the line."""
    suffix: str
    first_row: int

    def source(self, missing: int) -> Source:
        """Return what the editor would send with some tokens not yet typed."""
        return Source(self.prefixes[missing], self.suffix, self.first_row, self.label, "eval")


@dataclass(frozen=True, slots=True)
class Case:
    """What the true rest cost at a spot, in nats for each of its tokens."""

    language: str
    file: str
    row: int
    rest: str
    exact: list[float]
    spliced: dict[int, list[float]]
    """By the number of tokens that were typed since the suffix was read."""
    key_tokens: list[int]
    """Tokens that each key read."""


def pieces_of(model: Model) -> Pieces:
    """Return what splits text into the texts of a model's tokens."""
    return lambda text: [
        model.piece(token).decode("utf-8", "replace") for token in model.tokenize(text)
    ]


def spots(count: int, seed: int, most_typed: int, pieces: Pieces) -> list[Spot]:
    """Choose places, as many of each language, `A_FILE` or fewer in a file.

    Args:
        count: how many in all.
        seed: of the choice; the same files give the same places.
        most_typed: tokens that the line must have before the cursor. All in one line, so that
            it does not matter how the engine takes a newline.
        pieces: splits text into the texts of its tokens.

    Returns:
        The places, those of one file together; the engine reads on from one to the next.

    Raises:
        LcursorError: there are fewer.
    """
    groups: list[list[Spot]] = []
    for number, language in enumerate(LANGUAGES):
        left = count // len(LANGUAGES) + (number < count % len(LANGUAGES))
        for file in files(language, seed):
            if not left:
                break
            rng = random.Random(f"{seed}:{file.label}")
            groups.append(choose(file, rng, most_typed, pieces)[:left])
            left -= len(groups[-1])
    random.Random(seed).shuffle(groups)  # a run that is stopped has some of each language
    found = [spot for group in groups for spot in group]
    if len(found) < count:
        raise LcursorError(
            f"Only {len(found)} of {count} places were found in the source files of this machine",
            "Ask for fewer --positions, or for fewer tokens with --typed",
        )
    return found


def choose(file: File, rng: random.Random, most_typed: int, pieces: Pieces) -> list[Spot]:
    """Find lines of a file that are long enough and near each other, and cut each."""
    lines = file.read().split("\n")
    rows = [
        row
        for row, line in enumerate(lines)
        if len(line.strip()) > 2 * most_typed and line.isascii() and line.isprintable()
    ]
    for first in rng.sample(rows, min(TRIES, len(rows))):
        sizes = [len(pieces(line + "\n")) for line in lines[: first + REACH_LINES]]
        start = _start(sizes, first)
        if start is None:
            continue
        near = [r for r in rows if first <= r < len(sizes) and _fits(sizes[start:r])]
        found = [_cut(file, lines, start, row, rng, most_typed, pieces) for row in near]
        spots = [spot for spot in found if spot]
        if spots:
            chosen = rng.sample(range(len(spots)), min(A_FILE, len(spots)))
            return [spots[number] for number in sorted(chosen)]
    return []


def _fits(sizes: Sequence[int]) -> bool:
    return PREFIX_TOKENS[0] <= sum(sizes) <= PREFIX_TOKENS[1]


def _start(sizes: Sequence[int], row: int) -> int | None:
    """Return where a window begins that is as small as may be; None where none fits."""
    for start in range(row - 1, -1, -1):
        if sum(sizes[start:row]) >= PREFIX_TOKENS[0]:
            return start if _fits(sizes[start:row]) else None
    return None


def _cut(
    file: File,
    lines: Sequence[str],
    start: int,
    row: int,
    rng: random.Random,
    most_typed: int,
    pieces: Pieces,
) -> Spot | None:
    """Cut a line between two of its tokens, rather early than late; None where it has too few."""
    parts = pieces(lines[row])
    ends = range(max(most_typed, 1), min(len(parts) - REST_TOKENS[0] + 1, MAX_BEFORE))
    suffix = "\n" + "\n".join(lines[row + 1 : row + 1 + SUFFIX_LINES])
    if not ends or "".join(parts) != lines[row] or len("".join(suffix.split())) < MIN_SUFFIX:
        return None
    cut = min(rng.choice(ends), rng.choice(ends))
    rest = "".join(parts[cut : cut + REST_TOKENS[1]])
    if not rest.strip():
        return None
    head = "".join(line + "\n" for line in lines[start:row])
    return Spot(
        language=file.language,
        label=file.label,
        row=row,
        prefixes=tuple(head + "".join(parts[: cut - less]) for less in range(most_typed + 1)),
        rest=rest,
        suffix=suffix,
        first_row=start,
    )


def measure(engine: Reads, chosen: Sequence[Spot], typed: Sequence[int]) -> Iterator[Case]:
    """Judge the true rest of the line at each place.

    Args:
        engine: what reads; healing off.
        chosen: where.
        typed: tokens typed between the exact reading of the suffix and the judgement.

    Raises:
        EngineFailed: it spliced where it was told not to; else see `Engine.nll`.
    """
    return (_case(engine, spot, typed) for spot in chosen)


def _case(engine: Reads, spot: Spot, typed: Sequence[int]) -> Case:
    splices, spliced, key_tokens = engine.reader.splices, {}, []
    try:
        for count in sorted(typed, reverse=True):  # the prefix is read once for all
            _read_exactly(engine, spot.source(count))
            engine.reader.splices = True
            for missing in range(count - 1, -1, -1):
                engine.nll(spot.source(missing), "")
                key_tokens.append(engine.read_tokens)
            spliced[count] = engine.nll(spot.source(0), spot.rest)
        _read_exactly(engine, spot.source(0))
        exact = engine.nll(spot.source(0), spot.rest)
    finally:
        engine.reader.splices = splices
    ordered = {count: spliced[count] for count in typed}
    return Case(spot.language, spot.label, spot.row, spot.rest, exact, ordered, key_tokens)


def _read_exactly(engine: Reads, source: Source) -> None:
    engine.reader.splices = False
    engine.nll(source, "")
    if engine.read_tokens <= EXACT_TOKENS:
        raise EngineFailed(
            f"the engine read {engine.read_tokens} tokens where it should read the whole suffix, "
            "so there is nothing to compare with",
            "Tell the project of it; this is a fault of lcursor",
        )
