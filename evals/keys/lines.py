"""`eval lines`: complete once at random positions of lines that real commits add.

Cheaper than typing whole texts, and comparable position by position, for one model or several.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bench.report import Json, emit, head, run_facts, table
from evals import fim
from evals.keys import insertions, report
from evals.keys.completing import INERT
from evals.keys.insertions import Insertion
from evals.keys.typist import choose, keys, source
from evals.run import Cases, collect
from lcursor.config import CompletionConfig
from lcursor.errors import LcursorError
from lcursor.fim.engine import Engine, Result

POSITIONS = {"start": "start of a line", "word": "behind a word", "inside": "inside a word"}
BODY = {"body": "body of a new function"}
MIN_REST = 3
"""Characters of the rest of a line; shorter ones are not asked for."""
BODY_LINES = 2
"""Lines of a body that are compared."""
_START = re.compile(r"\n[ \t]*")
_WORD = re.compile(r"\w+|[^\w\s]+")


@dataclass(frozen=True, slots=True)
class Cut:
    """A position in a text that a commit adds."""

    repo: str
    insertion: Insertion
    position: str
    at: int
    window: Literal["short", "full"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered at a cut.

    Attributes:
        truth: the rest of the commit's text.
        is_exact: whether the first line is the rest of the line, whatever the confidence.
        similarity: of the first line of text and truth, or of the first two of a body; 0 to 1.
        gains: for each threshold, the keys that the best use of the shown text saves.
        shown: for each threshold, whether something is shown.
    """

    model: str
    repo: str
    text_number: int
    language: str
    position: str
    window: str
    text: str
    truth: str
    is_exact: bool
    similarity: float
    gains: list[int]
    shown: list[bool]
    confidence: float
    seconds: float


def command(
    repo: Annotated[list[Path], typer.Option(help="A git clone; may be repeated.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Texts of each repository.")] = 20,
    model: Annotated[
        list[str] | None, typer.Option(help="A name or a path; the others are compared to it.")
    ] = None,
    threshold: Annotated[
        list[float] | None, typer.Option(help="Of the confidence; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed for the choice of positions.")] = 1,
    bodies: Annotated[
        bool, typer.Option("--bodies", help="Only before bodies of new functions.")
    ] = False,
    cases: Cases = None,
    as_json: Json = False,
) -> None:
    """Complete once at random positions in the added lines of real commits, with each model.

    Every other position has the short window of a CPU, the others the full one.
    """
    models = model or [CompletionConfig().model]
    thresholds = threshold or [CompletionConfig().min_confidence]
    loaded = [
        [(one.name, text) for text in insertions.load(one, n, seed, bodies=bodies)] for one in repo
    ]
    texts = [text for row in zip_longest(*loaded) for text in row if text]
    chosen = cuts(texts, seed, bodies=bodies)
    if not chosen:
        raise LcursorError("no commit of these adds code", "Name clones with their history")
    names = dict(zip(models, _labels(models), strict=True))
    facts = run_facts(seed=seed, repositories=", ".join(each.name for each in repo))
    engines = {name: fim.load(name) for name in models}
    facts["files"] = {names[name]: engine.model.path.name for name, engine in engines.items()}
    try:
        answered = (
            answer(engine, names[name], number, cut, thresholds)
            for number, cut in chosen
            for name, engine in engines.items()
        )
        found = collect(answered, len(chosen) * len(models), _progress, cases)
    finally:
        for engine in engines.values():
            engine.close()
    document = as_dict([*names.values()], found, thresholds, facts)
    emit(document, as_markdown(document), as_json)


def _labels(models: Sequence[str]) -> list[str]:
    names = [Path(each).stem if "/" in each else each for each in models]
    if len(set(names)) < len(names):
        raise typer.BadParameter("two models have the same name")
    return names


def cuts(
    texts: Sequence[tuple[str, Insertion]], seed: int, *, bodies: bool = False
) -> list[tuple[int, Cut]]:
    """Choose positions: three in each text, or its start if it is the body of a function.

    Returns:
        In random order, each with the number of its text.
    """
    chance = random.Random(seed)
    found: list[tuple[int, str, str, int, Insertion]] = []
    for number, (repo, insertion) in enumerate(texts):
        text = insertion.text
        if not INERT.fullmatch(insertion.after.partition("\n")[0]):
            continue  # the product asks for nothing there
        if bodies:
            first = _START.match(text)
            found.append((number, repo, "body", first.end() if first else 0, insertion))
            continue
        words = list(_WORD.finditer(text))
        inside = chance.choice(words)
        starts = [each.end() for each in _START.finditer(text)]
        if not insertion.before.rpartition("\n")[2].strip():
            starts.append(0)
        for position, at in (
            ("start", chance.choice(starts) if starts else len(text)),
            ("word", chance.choice(words).end()),
            ("inside", chance.randint(inside.start(), inside.end())),
        ):
            if len(text[at:].partition("\n")[0].strip()) >= MIN_REST:
                found.append((number, repo, position, at, insertion))
    chance.shuffle(found)
    return [
        (number, Cut(repo, insertion, position, at, "full" if order % 2 else "short"))
        for order, (number, repo, position, at, insertion) in enumerate(found)
    ]


def answer(
    engine: Engine, model: str, number: int, cut: Cut, thresholds: Sequence[float]
) -> Answer:
    """Complete at a cut as at a new position, without a threshold and with each of them."""
    engine.reader.forget()
    engine.reader.window = cut.window
    asked = source(cut.insertion, cut.at, cut.repo)
    truth = cut.insertion.text[cut.at :]

    def complete(threshold: float) -> Result:
        engine.threshold = threshold
        one_line = cut.insertion.is_middle
        return engine.complete(asked, lambda text: None, single_line=one_line, bypass_cache=True)

    whole = complete(0.0)
    # A text that replaces some is not compared.
    answers = [complete(each) for each in thresholds]
    shown = ["" if each.replace_bytes else each.text for each in answers]
    return Answer(
        model=model,
        repo=cut.repo,
        text_number=number,
        language=cut.insertion.language,
        position=cut.position,
        window=cut.window,
        text=whole.text,
        truth=truth,
        is_exact=_line(whole.text) == _line(truth),
        similarity=_similarity(whole.text, truth, BODY_LINES if cut.position == "body" else 1),
        gains=[gain(each, truth) for each in shown],
        shown=[bool(each.strip()) for each in shown],
        confidence=whole.confidence,
        seconds=whole.total_ms / 1000,
    )


def gain(text: str, truth: str) -> int:
    """Return the keys that the best use of a suggestion saves."""
    choice = choose(text, truth)
    same = 0
    while same < min(choice.length, len(truth)) and text[same] == truth[same]:
        same += 1
    return keys(truth[:same]) - len(choice.units) - choice.wrong


def _line(text: str) -> str:
    return text.partition("\n")[0].rstrip()


def _similarity(text: str, truth: str, count: int) -> float:
    one, other = ("\n".join(each.split("\n")[:count]).strip() for each in (text, truth))
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _progress(found: Sequence[Answer]) -> str:
    return f"{sum(each.is_exact for each in found)} rests of lines exact"


def as_dict(
    models: Sequence[str],
    found: Sequence[Answer],
    thresholds: Sequence[float],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the report as JSON."""
    groups = [("all", "", "")]
    groups += [(words, "position", name) for name, words in (POSITIONS | BODY).items()]
    groups += [(f"{window} window", "window", window) for window in ("short", "full")]
    groups += [(each, "language", each) for each in sorted({each.language for each in found})]
    rows = {}
    for words, name, value in groups:
        some = [each for each in found if not name or getattr(each, name) == value]
        by_model = [[each for each in some if each.model == model] for model in models]
        if some:
            rows[words] = [_figures(mine, by_model[0]) for mine in by_model]
    return {**facts, "models": [*models], "thresholds": [*thresholds], "groups": rows}


def _figures(mine: Sequence[Answer], base: Sequence[Answer]) -> dict[str, Any]:
    """Return the figures of a model's answers, and compare them to those of another one."""
    numbers = [each.text_number for each in mine]
    columns = range(len(mine[0].gains))
    pairs = list(zip(mine, base, strict=True))
    by_text: dict[int, int] = {}
    for one, other in pairs:  # positions in the same text are no independent samples
        more = one.is_exact - other.is_exact
        by_text[one.text_number] = by_text.get(one.text_number, 0) + more
    won = sum(more > 0 for more in by_text.values())
    lost = sum(more < 0 for more in by_text.values())
    return {
        "cuts": len(mine),
        "exact": sum(each.is_exact for each in mine),
        "exact_ratio": report.paired_ratio(
            numbers, [each.is_exact for each in mine], [each.is_exact for each in base]
        ),
        "won": won,
        "lost": lost,
        "chance": sign_test(won, lost),
        "similar": sum(each.similarity >= report.SIMILAR for each in mine),
        "several": sum("\n" in each.text.strip() for each in mine),
        "gains": [sum(each.gains[at] for each in mine) for at in columns],
        "gain_ratios": [
            report.paired_ratio(
                numbers, [each.gains[at] for each in mine], [each.gains[at] for each in base]
            )
            for at in columns
        ],
        "shown": [sum(each.shown[at] for each in mine) for at in columns],
        "useful": [sum(each.gains[at] > 0 for each in mine if each.shown[at]) for at in columns],
    }


def sign_test(won: int, lost: int) -> float:
    """Return how likely a difference this large is by chance, two-sided."""
    count, least = won + lost, min(won, lost)
    ways = sum(math.comb(count, at) for at in range(least + 1))
    return float(min(1.0, 2 * ways / 2**count))


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    models, thresholds = document["models"], document["thresholds"]
    title = f"{document['repositories']}; seed {document['seed']}; compared to {models[0]}"
    heads = [
        "",
        "",
        "cuts:",
        "exact:",
        "texts won, lost:",
        "by chance:",
        "similar:",
        "several lines:",
    ]
    for each in thresholds:
        heads += [f"keys saved at {each:g}:", "shown:", "useful:"]
    rows = []
    for group, by_model in document["groups"].items():
        for model, row in zip(models, by_model, strict=True):
            is_base = model == models[0]
            cells = [
                group,
                model,
                str(row["cuts"]),
                f"{row['exact']}" + ("" if is_base else f", {_ratio(row['exact_ratio'])}"),
                "" if is_base else f"{row['won']}, {row['lost']}",
                "" if is_base else f"{row['chance']:.2g}",
                str(row["similar"]),
                str(row["several"]),
            ]
            for at in range(len(thresholds)):
                saved = f"{row['gains'][at]}"
                saved += "" if is_base else f", {_ratio(row['gain_ratios'][at])}"
                cells += [saved, str(row["shown"][at]), str(row["useful"][at])]
            rows.append(tuple(cells))
    return [*head(document, title), *table(heads, rows)]


def _ratio(found: Sequence[float]) -> str:
    return "{:.2f} × ({:.2f} to {:.2f})".format(*found)
