"""`eval splice`: compare a suffix that stayed in the cache with one that is evaluated again.

At each place the rest of a line is removed. The suffix is evaluated with the cursor some tokens
earlier, these tokens are typed one by one, and the cost of the true rest is measured; then the same
with the whole prompt evaluated at once. Runs the engine in this process and on this thread.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from bench.report import Json, emit, head, percentile, run_facts, table
from evals import fim
from evals.corpus import LANGUAGES, File, files
from evals.run import Cases, Model, collect
from lcursor.errors import EngineFailed, LcursorError
from lcursor.fim.engine import Engine
from lcursor.fim.llama import Model as LlamaModel
from lcursor.fim.prompt import Source

TYPED = (2, 8, 16)
DRAWS = 1000
TARGET, LATE_TARGET, LATE_TOKENS = 1.02, 1.04, 16
"""Limits of the cost of a splice, divided by the exact cost; the second from `LATE_TOKENS` on."""
A_FILE = 4
"""Maximum of places in one file; they share the evaluation of the prefix."""
PREFIX_TOKENS = (400, 640)
"""Bounds of the text before the line; small enough that the engine's window never moves."""
MAX_BEFORE_TOKENS = 100
"""Of the line before the cursor; more would move the window."""
REACH_LINES = 120
"""Distance of the other places of a file from the first."""
SUFFIX_LINES = 60
MIN_SUFFIX_CHARS = 300
"""After the line, not counting white space."""
REST_TOKENS = (5, 24)
"""Bounds of the rest of a line that is judged."""
TRIES = 12
"""Lines of one file that are tried as the first place."""
SUFFIX_MIN_TOKENS = 24
"""Evaluating a suffix takes more tokens than this; a key takes fewer."""

Pieces = Callable[[str], list[str]]
"""Split a text into the texts of its tokens."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A cursor in a real file."""

    language: str
    label: str
    row: int
    prefixes: tuple[str, ...]
    """The text before the cursor; then with one, two, ... tokens less."""
    rest: str
    """The true rest of the line."""
    suffix: str
    first_row: int

    def source(self, missing: int) -> Source:
        """Return the request of the editor when some tokens are not typed yet."""
        return Source(self.prefixes[missing], self.suffix, self.first_row, self.label, "eval")


@dataclass(frozen=True, slots=True)
class Case:
    """The cost of the true rest at a spot, in nats for each of its tokens."""

    language: str
    file: str
    row: int
    rest: str
    exact: list[float]
    spliced: dict[int, list[float]]
    """By the number of tokens typed since the suffix was evaluated."""
    key_tokens: list[int]
    """Prompt tokens evaluated for each key."""


def command(
    positions: Annotated[
        int, typer.Option("--positions", min=1, help="Number of places, over all languages.")
    ] = 200,
    typed: Annotated[
        list[int] | None,
        typer.Option(min=1, max=64, help="Tokens since the suffix was evaluated; repeatable."),
    ] = None,
    model: Model = "",
    seed: Annotated[int, typer.Option(help="Seed for the choice of files and lines.")] = 1,
    cases: Cases = None,
    as_json: Json = False,
) -> None:
    """Compare a suffix kept in the cache with one evaluated again, by the true rest of lines.

    Reads source files of this machine in four languages; about 10 seconds a place on two cores.
    """
    counts = sorted(set(typed or TYPED))
    facts = run_facts(seed=seed)
    engine = fim.load(model, heals=False)
    try:
        facts["model"] = f"{engine.model.path.name} ({engine.model.description})"
        chosen = spots(positions, seed, counts[-1], pieces_of(engine.model))
        found = collect(measure(engine, chosen, counts), positions, _describe, cases)
    finally:
        engine.close()
    document = as_dict(found, facts)
    emit(document, as_markdown(document), as_json)


def pieces_of(model: LlamaModel) -> Pieces:
    """Return a function that splits text into the texts of a model's tokens."""
    return lambda text: [
        model.piece(token).decode("utf-8", "replace") for token in model.tokenize(text)
    ]


def spots(count: int, seed: int, max_typed: int, pieces: Pieces) -> list[Spot]:
    """Choose places, equally many of each language; those of one file come in a row.

    Args:
        count: of all places.
        seed: for the choice; the same files give the same places.
        max_typed: tokens that a line needs before the cursor.
        pieces: splits a text into the texts of its tokens.

    Raises:
        LcursorError: there are fewer places.
    """
    groups: list[list[Spot]] = []
    for number, language in enumerate(LANGUAGES):
        left = count // len(LANGUAGES) + (number < count % len(LANGUAGES))
        for file in files(language, seed):
            if not left:
                break
            rng = random.Random(f"{seed}:{file.label}")
            groups.append(choose(file, rng, max_typed, pieces)[:left])
            left -= len(groups[-1])
    random.Random(seed).shuffle(groups)  # an interrupted run has some of each language
    found = [spot for group in groups for spot in group]
    if len(found) < count:
        raise LcursorError(
            f"Only {len(found)} of {count} places were found in the source files of this machine",
            "Ask for fewer --positions, or for fewer tokens with --typed",
        )
    return found


def choose(file: File, rng: random.Random, max_typed: int, pieces: Pieces) -> list[Spot]:
    """Choose lines of a file that are long enough and near each other, and cut each."""
    lines = file.read().split("\n")
    rows = [
        row
        for row, line in enumerate(lines)
        if len(line.strip()) > 2 * max_typed and line.isascii() and line.isprintable()
    ]
    for first in rng.sample(rows, min(TRIES, len(rows))):
        sizes = [len(pieces(line + "\n")) for line in lines[: first + REACH_LINES]]
        start = _start(sizes, first)
        if start is None:
            continue
        near = [r for r in rows if first <= r < len(sizes) and _fits(sizes[start:r])]
        found = [_cut(file, lines, start, row, rng, max_typed, pieces) for row in near]
        spots = [spot for spot in found if spot]
        if spots:
            chosen = rng.sample(range(len(spots)), min(A_FILE, len(spots)))
            return [spots[number] for number in sorted(chosen)]
    return []


def _fits(sizes: Sequence[int]) -> bool:
    return PREFIX_TOKENS[0] <= sum(sizes) <= PREFIX_TOKENS[1]


def _start(sizes: Sequence[int], row: int) -> int | None:
    """Return the first row of the smallest window before a row; None if none fits."""
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
    max_typed: int,
    pieces: Pieces,
) -> Spot | None:
    """Cut a line between two tokens, early rather than late; None if it has too few."""
    parts = pieces(lines[row])
    ends = range(max(max_typed, 1), min(len(parts) - REST_TOKENS[0] + 1, MAX_BEFORE_TOKENS))
    suffix = "\n" + "\n".join(lines[row + 1 : row + 1 + SUFFIX_LINES])
    if not ends or "".join(parts) != lines[row] or len("".join(suffix.split())) < MIN_SUFFIX_CHARS:
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
        prefixes=tuple(head + "".join(parts[: cut - less]) for less in range(max_typed + 1)),
        rest=rest,
        suffix=suffix,
        first_row=start,
    )


def measure(engine: Engine, chosen: Sequence[Spot], typed: Sequence[int]) -> Iterator[Case]:
    """Measure the cost of the true rest of the line at each place.

    Args:
        engine: with healing off.
        chosen: the places.
        typed: numbers of tokens typed after the suffix was evaluated.

    Raises:
        EngineFailed: the engine spliced although that was switched off.
    """
    return (_case(engine, spot, typed) for spot in chosen)


def _case(engine: Engine, spot: Spot, typed: Sequence[int]) -> Case:
    splices, spliced, key_tokens = engine.reader.splices, {}, []
    try:
        for count in sorted(typed, reverse=True):  # the prefix is evaluated once
            _evaluate_all(engine, spot.source(count))
            engine.reader.splices = True
            for missing in range(count - 1, -1, -1):
                engine.nll(spot.source(missing), "")
                key_tokens.append(engine.read_tokens)
            spliced[count] = engine.nll(spot.source(0), spot.rest)
        _evaluate_all(engine, spot.source(0))
        exact = engine.nll(spot.source(0), spot.rest)
    finally:
        engine.reader.splices = splices
    ordered = {count: spliced[count] for count in typed}
    return Case(spot.language, spot.label, spot.row, spot.rest, exact, ordered, key_tokens)


def _evaluate_all(engine: Engine, source: Source) -> None:
    engine.reader.splices = False
    engine.nll(source, "")
    if engine.read_tokens <= SUFFIX_MIN_TOKENS:
        raise EngineFailed(
            f"the engine read {engine.read_tokens} tokens instead of the whole suffix",
            "Report this bug of lcursor",
        )


def _describe(found: Sequence[Case]) -> str:
    last = max(found[-1].spliced)
    exact = sum(sum(case.exact) for case in found)
    spliced = sum(sum(case.spliced[last]) for case in found)
    return f"ratio {_ratio(spliced, exact):.3f} after {last} typed, now {found[-1].file}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The costs with and without a splice, over some cases."""

    positions: int
    tokens: int
    exact: float
    """Mean cost of a token of the true text, in nats; lower is better."""
    spliced: float
    ratio: float
    """`spliced` divided by `exact`."""
    low: float
    """Of the 95 % interval of the ratio."""
    high: float
    target: float
    holds: bool
    """Whether the ratio is at most the target."""


def target(typed: int) -> float:
    """Return the limit of the ratio after so many typed tokens."""
    return LATE_TARGET if typed >= LATE_TOKENS else TARGET


def compare(cases: Sequence[Case], typed: int) -> Comparison:
    """Compare the costs after `typed` tokens; each token of the true texts has the same weight.

    Args:
        cases: at least one.
        typed: one of the keys of `Case.spliced`.
    """
    sums: dict[str, tuple[float, float]] = {}
    for case in cases:
        before = sums.get(case.file, (0.0, 0.0))
        sums[case.file] = (before[0] + sum(case.exact), before[1] + sum(case.spliced[typed]))
    tokens = sum(len(case.exact) for case in cases)
    exact, spliced = (sum(column) for column in zip(*sums.values(), strict=True))
    low, high = interval(list(sums.values()))
    ratio = _ratio(spliced, exact)
    return Comparison(
        positions=len(cases),
        tokens=tokens,
        exact=exact / tokens,
        spliced=spliced / tokens,
        ratio=ratio,
        low=low,
        high=high,
        target=target(typed),
        holds=ratio <= target(typed),
    )


def interval(sums: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio by bootstrapping over files.

    Args:
        sums: exact and spliced costs of each file.
    """
    rng = random.Random(1)
    ratios = []
    for _ in range(DRAWS):
        drawn = rng.choices(sums, k=len(sums))
        ratios.append(_ratio(sum(pair[1] for pair in drawn), sum(pair[0] for pair in drawn)))
    ratios.sort()
    return ratios[int(DRAWS * 0.025)], ratios[int(DRAWS * 0.975)]


def _ratio(spliced: float, exact: float) -> float:
    return spliced / exact if exact else 1.0


def as_dict(cases: Sequence[Case], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report as JSON; there is at least one case."""
    groups: dict[str, list[Case]] = {"all": list(cases)}
    for case in cases:
        groups.setdefault(case.language, []).append(case)
    typed = list(cases[0].spliced)
    keys = [count for case in cases for count in case.key_tokens]
    return {
        **facts,
        "positions": len(cases),
        "key_tokens": {"p50": statistics.median(keys), "p95": percentile(keys, 95)} if keys else {},
        "files": {
            name: sorted({case.file for case in group})
            for name, group in groups.items()
            if name != "all"
        },
        "comparisons": [
            {"typed": count, "language": name, **asdict(compare(group, count))}
            for count in typed
            for name, group in groups.items()
        ],
        "holds": all(compare(cases, count).holds for count in typed),
    }


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    title = (
        f"Model: {document['model']}; seed {document['seed']}, {document['positions']} positions"
    )
    if document["key_tokens"]:
        title += "; a key evaluates {p50:g} tokens, 95 % of them at most {p95:g}".format(
            **document["key_tokens"]
        )
    rows = [
        (
            row["typed"],
            row["language"],
            row["positions"],
            row["tokens"],
            f"{row['exact']:.3f}",
            f"{row['spliced']:.3f}",
            f"{row['ratio']:.3f}",
            f"{row['low']:.3f} – {row['high']:.3f}",
            f"≤ {row['target']:g}" if row["language"] == "all" else "",
            row["holds"] if row["language"] == "all" else "",
        )
        for row in document["comparisons"]
    ]
    columns = ["typed:", "language", "n:", "tokens:", "exact:", "splice:", "ratio:", "95 %"]
    return [
        *head(document, title),
        "Mean cost of a token of the true text, in nats, by tokens since the suffix was evaluated.",
        "",
        *table([*columns, "wanted:", "kept"], rows),
        "",
        *(f"- {language}: {', '.join(names)}" for language, names in document["files"].items()),
    ]
