"""What the journal's rows say in numbers, per filetype and in all.

Pure: rows in, the message for the editor out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lcursor.fim.outcomes import Row
from lcursor.protocol import Stats, StatsRow

ACCEPTS = {"accepted", "partial", "typed"}


def history(rows: Iterable[Row]) -> list[tuple[str, float, bool]]:
    """Return what the gate learns from: filetype, confidence, whether it was accepted.

    An ignored suggestion says nothing, nor does one whose confidence is not known: a server tells
    none, which reads 0.
    """
    return [
        (row.filetype, row.confidence, row.outcome in ACCEPTS)
        for row in rows
        if row.outcome != "ignored" and row.confidence > 0
    ]


def stats(
    rows: Sequence[Row], thresholds: Mapping[str, float], path: str, problem: str = ""
) -> Stats:
    """Return the message.

    Args:
        rows: of the journal, oldest first.
        thresholds: as `adaptive_threshold.thresholds` gives them.
        path: where the rows are kept.
        problem: why they are not.
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
    """Return the smallest value that so many do not exceed; -1 of nothing."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else -1.0
