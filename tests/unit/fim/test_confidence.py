"""When a suggestion may stand, and how much of it."""

from __future__ import annotations

import pytest

from lcursor.fim.confidence import ConfidenceGate


def decisions(threshold: float, *shares: float) -> list[str]:
    judge = ConfidenceGate(threshold)
    return [judge.decision(share) for share in shares]


def test_a_line_falls_from_sure_to_doubtful_to_nothing() -> None:
    assert decisions(0.5, 0.9, 0.6, 0.6, 0.9, 0.8) == ["sure", "sure", "doubtful", "doubtful", "no"]


def test_without_a_threshold_all_is_sure() -> None:
    assert set(decisions(0.0, 0.1, 0.01, 0.5)) == {"sure"}


def test_only_a_first_line_may_be_doubtful() -> None:
    judge = ConfidenceGate(0.5)
    assert judge.decision(0.4) == "doubtful"
    judge.newline()
    assert judge.decision(0.9) == "sure"
    assert judge.decision(0.5) == "no"


def test_the_confidence_is_that_of_the_first_line() -> None:
    judge = ConfidenceGate(0.5)
    for share in (0.8, 0.9, 0.5):
        judge.decision(share)
    judge.newline()
    judge.decision(0.1)
    assert judge.confidence == pytest.approx(0.36)
    assert judge.sure_confidence == pytest.approx(0.72)
