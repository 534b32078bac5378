"""Statistics of outcomes, and the confidence threshold that adapts to what the user accepts.

Pure functions of the stored rows. The threshold follows the rule of Cursor's Tab: a suggestion is
worth showing if one of four like it is accepted (accept +0.75, reject -0.25, not shown 0;
cursor.com/blog/tab-rl). What lies just above the threshold decides, not the average: a user who
accepts everything certain tells nothing about what is not. So the range from the base to either
bound is divided into steps, and the threshold takes a step only on the evidence of the outcomes in
it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lcursor.fim.outcomes import Row
from lcursor.protocol.fim import Stats, StatsRow

ACCEPTS = {"accepted", "partial", "typed"}
MIN_OUTCOMES = 30
"""Accepts needed to lower the threshold, and rejections needed to raise it."""
STEPS = 5
"""Steps from the base to each of the bounds."""
TARGET = 0.25
"""Share of accepts at which showing a suggestion is worth as much as not showing it."""
DOUBT = 12
"""Outcomes that each step is assumed to have had, so that chance moves nothing. Half of them count
as accepts before the step is closed, none before the step below is opened."""


def history(rows: Iterable[Row]) -> list[tuple[str, float, bool]]:
    """Return what `thresholds` learns from: filetype, confidence, whether it was accepted.

    An ignored suggestion is no evidence, nor is one without a confidence: servers report none,
    which is stored as 0.
    """
    return [
        (row.filetype, row.confidence, row.outcome in ACCEPTS)
        for row in rows
        if row.outcome != "ignored" and row.confidence > 0
    ]


def stats(
    rows: Sequence[Row], thresholds: Mapping[str, float], path: str, problem: str = ""
) -> Stats:
    """Return the message with the statistics, per filetype and in total.

    Args:
        rows: stored outcomes, oldest first.
        thresholds: result of `thresholds`.
        path: file of the store.
        problem: why the file cannot be used, "" if it can.
    """
    by_filetype: dict[str, list[Row]] = {}
    for row in rows:
        by_filetype.setdefault(row.filetype, []).append(row)
    counted = sorted(by_filetype.items(), key=lambda item: (-len(item[1]), item[0]))
    common = thresholds.get("", 0.0)
    return Stats(
        rows=[_row(name, some, thresholds.get(name, common)) for name, some in counted],
        total=_row("", rows, common),
        since_s=rows[0].at_s if rows else 0.0,
        path=path,
        problem=problem,
    )


def _row(filetype: str, rows: Sequence[Row], threshold: float) -> StatsRow:
    outcomes = Counter(row.outcome for row in rows)
    sources = Counter(row.source for row in rows)
    through = sum(row.through_keys for row in rows)
    accepts = sum(outcomes[name] for name in ACCEPTS)
    waits = sorted(row.latency_ms for row in rows if row.latency_ms >= 0)
    return StatsRow(
        filetype=filetype,
        shown=len(rows),
        accepted=outcomes["accepted"],
        partial=outcomes["partial"],
        typed=outcomes["typed"],
        rejected=outcomes["rejected"],
        ignored=outcomes["ignored"],
        accept_share=_share(accepts, accepts + outcomes["rejected"]),
        p50_ms=_quantile(waits, 0.5),
        p95_ms=_quantile(waits, 0.95),
        cache_share=_share(sources["cache"], len(rows)),
        speculation_share=_share(sources["speculation"], len(rows)),
        through_share=_share(through, through + len(rows)),
        threshold=threshold,
    )


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else -1.0


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that the given share does not exceed; -1 if there is none."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else -1.0


def threshold(base: float, history: Sequence[tuple[float, bool]]) -> float:
    """Return the threshold for a user with this history.

    More rejections never lower it, more accepts never raise it. A base of 0 (show everything) or 1
    is an explicit choice of the user and stays.

    Args:
        base: the threshold without any history.
        history: confidence of each suggestion, and whether it was accepted.

    Returns:
        A value of [base / 2, (1 + base) / 2]; the base with fewer than `MIN_OUTCOMES` outcomes.
    """
    if not 0 < base < 1 or len(history) < MIN_OUTCOMES:
        return base
    down, up = base / 2 / STEPS, (1 - base) / 2 / STEPS
    accepts, counts = dict[int, int](), dict[int, int]()
    for confidence, is_accepted in history:
        width = up if confidence >= base else down
        step = math.floor((confidence - base) / width)
        counts[step] = counts.get(step, 0) + 1
        accepts[step] = accepts.get(step, 0) + is_accepted

    def share(step: int, assumed: float) -> float:
        return (accepts.get(step, 0) + assumed) / (counts.get(step, 0) + DOUBT)

    def is_bad(step: int) -> bool:
        return share(step, DOUBT / 2) < TARGET

    def is_good(step: int) -> bool:
        return share(step, 0) >= TARGET

    at, accepted = 0, sum(accepts.values())
    if len(history) - accepted >= MIN_OUTCOMES:
        while at < STEPS and is_bad(at):
            at += 1
    if at == 0 and accepted >= MIN_OUTCOMES:
        while at > -STEPS and is_good(at) and not is_bad(at - 1):
            at -= 1
    moved = base + at * (up if at > 0 else down)
    return min(max(moved, base / 2), (1 + base) / 2)


def thresholds(base: float, history: Iterable[tuple[str, float, bool]]) -> dict[str, float]:
    """Return the threshold of each filetype with enough outcomes, and of all others under "".

    Args:
        base: see `threshold`.
        history: filetype, confidence, whether it was accepted.
    """
    every: list[tuple[float, bool]] = []
    by_filetype: dict[str, list[tuple[float, bool]]] = {}
    for filetype, confidence, is_accepted in history:
        every.append((confidence, is_accepted))
        by_filetype.setdefault(filetype, []).append((confidence, is_accepted))
    own = {
        name: threshold(base, one) for name, one in by_filetype.items() if len(one) >= MIN_OUTCOMES
    }
    return {**own, "": threshold(base, every)}
