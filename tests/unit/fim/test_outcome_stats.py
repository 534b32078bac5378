"""From rows to the message of `:LCursor stats`, and to what the gate learns from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast, get_args

import pytest

from lcursor import protocol
from lcursor.fim import outcome_stats
from tests.unit.fim.test_outcomes import ROW


def row(**more: Any) -> Any:
    """Return a row that differs in that."""
    return replace(ROW, **more)


def test_of_nothing() -> None:
    said = outcome_stats.stats([], {}, "/x", "it is broken")
    protocol.check("stats", dict(said), protocol.TO_LUA)
    assert (said["rows"], said["since_s"], said["problem"]) == ([], 0.0, "it is broken")
    total = said["total"]
    assert (total["shown"], total["accept_share"], total["p50_ms"]) == (0, -1.0, -1.0)


def test_by_filetype_and_in_all() -> None:
    rows = [
        row(filetype="lua", outcome="rejected", latency_ms=100.0),
        *[row(latency_ms=float(number)) for number in range(1, 21)],
        row(outcome="ignored", latency_ms=-1.0, source="cache", through_keys=7),
    ]
    said = outcome_stats.stats(rows, {"": 0.4, "lua": 0.5}, "/x")
    python, lua = said["rows"]
    assert (python["filetype"], lua["filetype"]) == ("python", "lua")
    assert (python["shown"], python["accepted"], python["ignored"]) == (21, 20, 1)
    assert (python["p50_ms"], python["p95_ms"]) == (10.0, 19.0)
    assert python["accept_share"] == 1.0
    assert python["cache_share"] == pytest.approx(1 / 21, abs=1e-4)
    assert python["through_share"] == pytest.approx(47 / 68, abs=1e-4)
    assert (python["threshold"], lua["threshold"]) == (0.4, 0.5)
    total = said["total"]
    assert (total["shown"], total["rejected"], total["p95_ms"]) == (22, 1, 20.0)
    assert total["accept_share"] == pytest.approx(20 / 21, abs=1e-4)


@pytest.mark.parametrize(
    ("outcome", "confidence", "learned"),
    [
        ("accepted", 0.5, [("python", 0.5, True)]),
        ("partial", 0.5, [("python", 0.5, True)]),
        ("typed", 0.5, [("python", 0.5, True)]),
        ("rejected", 0.5, [("python", 0.5, False)]),
        ("ignored", 0.5, []),
        ("accepted", -1.0, []),
        ("accepted", 0.0, []),
    ],
)
def test_what_is_learned(outcome: str, confidence: float, learned: list[Any]) -> None:
    assert outcome_stats.history([row(outcome=outcome, confidence=confidence)]) == learned


def test_every_outcome_of_the_wire_is_counted() -> None:
    for outcome in get_args(protocol.Outcome):
        total = cast(
            "dict[str, Any]", outcome_stats.stats([row(outcome=outcome)], {}, "/x")["total"]
        )
        assert total[outcome] == 1
