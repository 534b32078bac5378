"""The figures of `eval keys`, and their tables."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from typing import Any

from bench.report import head, percent, share, table
from evals.keys.insertions import kind
from evals.keys.typist import READING_KEYS, Shown, Typed

DRAWS, SEED = 1000, 1
SIMILAR = 0.8
"""Ratio of equal characters of two lines that mean the same."""

KINDS = {
    "body": "after a signature",
    "block": "new block",
    "line": "line in a block",
    "top": "line without indentation",
    "middle": "middle of a line",
}


@dataclass(frozen=True, slots=True)
class Figures:
    """What typing some texts or lines cost.

    Attributes:
        saved: share of the keys that were saved.
        read: the same, less what reading costs.
        low, high: 95 % interval of `saved`; bootstrap over texts.
        offered: share of the lines with a suggestion.
        full, part: shares of the suggestions that were accepted, to their end or in part.
        wrong: wrong suggestions for each 100 keys that were pressed.
        several: share of the suggestions with several lines.
        length: mean characters of a suggestion.
    """

    texts: int
    lines: int
    keys: int
    saved: float
    low: float
    high: float
    read: float
    offered: float
    shown: int
    full: float
    part: float
    wrong: float
    several: float
    length: float


def figures(typed: Sequence[Typed], of: str = "") -> Figures:
    """Return the figures of texts, or of their lines and suggestions of one kind."""
    lines = [[line for line in each.lines if line.keys and of in ("", line.kind)] for each in typed]
    shown = [s for each in typed for s in each.shown if of in ("", s.kind)]
    all_lines = [line for each in lines for line in each]
    keys = sum(line.keys for line in all_lines)
    pressed = sum(line.pressed for line in all_lines)
    sums = [(sum(x.keys for x in each), sum(x.pressed for x in each)) for each in lines if each]
    low, high = _interval(sums)
    full = [s for s in shown if s.accepted and s.accepted >= len(s.text.rstrip())]
    part = [s for s in shown if s.accepted and s.accepted < len(s.text.rstrip())]
    wrong = [s for s in shown if s.is_wrong and not s.accepted]
    return Figures(
        texts=len(sums),
        lines=len(all_lines),
        keys=keys,
        saved=share(keys - pressed, keys),
        low=low,
        high=high,
        read=share(keys - pressed - READING_KEYS * len(shown), keys),
        offered=share(sum(line.shown > 0 for line in all_lines), len(all_lines)),
        shown=len(shown),
        full=share(len(full), len(shown)),
        part=share(len(part), len(shown)),
        wrong=100 * share(len(wrong), pressed),
        several=share(sum("\n" in s.text.strip() for s in shown), len(shown)),
        length=share(sum(len(s.text) for s in shown), len(shown)),
    )


def _interval(sums: Sequence[tuple[int, int]]) -> tuple[float, float]:
    if not sums:
        return 0.0, 0.0
    chance, found = random.Random(SEED), []
    for _ in range(DRAWS):
        drawn = chance.choices(sums, k=len(sums))
        keys = sum(each[0] for each in drawn)
        found.append(share(keys - sum(each[1] for each in drawn), keys))
    found.sort()
    return found[DRAWS // 40], found[-DRAWS // 40]


def bodies(typed: Sequence[Typed]) -> tuple[int, int, int]:
    """Return what was shown before the first key of a function's body.

    Returns:
        The number of bodies, and of those at which several lines were shown, and a first line that
        is right in spirit.
    """
    places = several = right = 0
    for each in typed:
        text = each.insertion.text
        starts = [
            found for found in re.finditer(r"(?:^|\n)[ \t]*", text) if found.end() < len(text)
        ]
        for found in starts:
            before = each.insertion.before + text[: found.end()]
            if "\n" not in found[0] or kind(before, False) != "body":
                continue
            places += 1
            truth = text[found.end() :].partition("\n")[0].strip()
            shown = [s for s in each.shown if found.start() <= s.at <= found.end()]
            lines = [[line for line in s.text.split("\n") if line.strip()] for s in shown]
            several += any(len(part) > 1 for part in lines)
            right += any(part and _is_similar(part[0].strip(), truth) for part in lines)
    return places, several, right


def _is_similar(line: str, truth: str) -> bool:
    return SequenceMatcher(None, line, truth, autojunk=False).ratio() >= SIMILAR


def paired_ratio(
    texts: Sequence[int], ours: Sequence[float], others: Sequence[float]
) -> tuple[float, float, float]:
    """Return how many times the sum of others ours is, and its 95 % interval.

    Args:
        texts: the number of the text that each pair of values belongs to; texts are drawn.
    """
    sums: dict[int, tuple[float, float]] = {}
    for text, one, other in zip(texts, ours, others, strict=True):
        before = sums.get(text, (0.0, 0.0))
        sums[text] = before[0] + one, before[1] + other
    pairs = list(sums.values())
    chance, found = random.Random(SEED), []
    for _ in range(DRAWS):
        drawn = chance.choices(pairs, k=len(pairs))
        found.append(share(sum(e[0] for e in drawn), max(sum(e[1] for e in drawn), 1)))
    found.sort()
    whole = share(sum(e[0] for e in pairs), max(sum(e[1] for e in pairs), 1))
    return whole, found[DRAWS // 40], found[-DRAWS // 40]


def as_dict(found: Sequence[Typed], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report as JSON."""
    begun = dict(zip(("bodies", "several", "right"), bodies(found), strict=True))
    return {**facts, "groups": _groups(found), "bodies": begun}


def _groups(typed: Sequence[Typed]) -> dict[str, Any]:
    languages = sorted({each.insertion.language for each in typed})
    rows = {"all": figures(typed)}
    for language in languages:
        rows[language] = figures([each for each in typed if each.insertion.language == language])
    for each, words in KINDS.items():
        rows[words] = figures(typed, each)
    return {name: asdict(row) for name, row in rows.items()}


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    title = (
        f"Model: {document['model']}; one decode takes {document['pass_ms']:.1f} ms and "
        f"{document['token_ms']:.2f} ms for each token; {document['repositories']}; "
        f"seed {document['seed']}"
    )
    lines = [*head(document, title), *_table(document["groups"])]
    begun = document["bodies"]
    if begun["bodies"]:
        lines += [
            "",
            f"Before the first key of {begun['bodies']} bodies of functions: several lines "
            f"were shown at {begun['several']}, the first one was right in spirit at "
            f"{begun['right']}",
        ]
    return lines


def _table(rows: Mapping[str, Mapping[str, float]]) -> Iterable[str]:
    heads = ["", "lines:", "keys:", "saved:", "less reading:", "lines with one:", "shown:"]
    heads += ["accepted:", "in part:", "wrong in 100 keys:", "several lines:", "length:"]
    return table(
        heads,
        [
            (
                name,
                row["lines"],
                row["keys"],
                f"{percent(row['saved'])} ({percent(row['low'])} to {percent(row['high'])})",
                percent(row["read"]),
                percent(row["offered"]),
                row["shown"],
                percent(row["full"]),
                percent(row["part"]),
                f"{row['wrong']:.1f}",
                percent(row["several"]),
                f"{row['length']:.0f}",
            )
            for name, row in rows.items()
            if row["lines"]
        ],
    )


def describe(shown: Shown) -> str:
    """Return a suggestion with its truth, to read."""
    sign = "+" if shown.accepted else "-" if shown.is_wrong else " "
    return f"{sign} {shown.reason or 'running':8} {shown.text!r}  |  {shown.truth[:80]!r}"
