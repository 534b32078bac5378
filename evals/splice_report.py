"""What spliced and exact readings come to: means, ratios, their intervals, tables. Pure."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.report import percentile
from evals.splice import Case

DRAWS = 1000
TARGET, TARGET_LATE, LATE_TOKENS = 1.02, 1.04, 16
"""The most that a splice may cost of what exact reading costs; the second from so many tokens."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The splice against exact reading, over some cases."""

    positions: int
    tokens: int
    exact: float
    """Mean cost of a token of the true text, in nats: the lower the better."""
    spliced: float
    ratio: float
    """Of the second to the first."""
    low: float
    """Of the interval of 95 % that holds the ratio."""
    high: float
    target: float
    holds: bool
    """Whether the ratio is at most the target."""


def target(typed: int) -> float:
    """Return the highest ratio wanted after so many tokens."""
    return TARGET_LATE if typed >= LATE_TOKENS else TARGET


def compare(cases: Sequence[Case], typed: int) -> Comparison:
    """Compare after `typed` tokens. Each token of the true texts counts the same.

    Args:
        cases: at least one, with tokens.
        typed: one of the numbers that the cases have.
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
    """Return the interval of 95 % of the ratio, by drawing whole files with replacement.

    Args:
        sums: what a file's positions cost exactly and spliced; they are not independent.
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


def as_dict(cases: Sequence[Case], facts: dict[str, Any]) -> dict[str, Any]:
    """Return everything for JSON.

    Args:
        cases: of one run, at least one.
        facts: the machine, the model, the command, whatever a reader must know.
    """
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


def as_markdown(document: dict[str, Any]) -> str:
    """Return what `as_dict` made as a table, with what it was measured on."""
    machine = ", ".join(f"{key} {value}" for key, value in document["machine"].items())
    lines = [
        f"Machine: {machine}  ",
        f"Model: {document['model']}; seed {document['seed']}, {document['positions']} positions"
        + (
            "; a key reads {p50:g} tokens, 95 % of them at most {p95:g}  ".format(
                **document["key_tokens"]
            )
            if document["key_tokens"]
            else "  "
        ),
        f"Command: `{document['command']}`",
        "",
        "Mean cost of a token of the true text, in nats; typed: tokens since the suffix was read.",
        "",
        "| typed | language | n | tokens | exact | splice | ratio | 95 % | wanted | kept |",
        "|--:|---|--:|--:|--:|--:|--:|---|--:|---|",
    ]
    for row in document["comparisons"]:
        whole = row["language"] == "all"
        wanted = f"≤ {row['target']:g}" if whole else ""
        kept = ("yes" if row["holds"] else "**no**") if whole else ""
        lines.append(
            f"| {row['typed']} | {row['language']} | {row['positions']} | {row['tokens']}"
            f" | {row['exact']:.3f} | {row['spliced']:.3f} | {row['ratio']:.3f}"
            f" | {row['low']:.3f} – {row['high']:.3f} | {wanted} | {kept} |"
        )
    lines.append("")
    for language, names in document["files"].items():
        lines.append(f"- {language}: {', '.join(names)}")
    return "\n".join(lines) + "\n"
