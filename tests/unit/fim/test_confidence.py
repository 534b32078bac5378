"""Probabilities of tokens, and how much of a suggestion may be shown."""

from __future__ import annotations

import numpy as np
import pytest

from lcursor.fim import confidence
from lcursor.fim.confidence import ConfidenceGate


@pytest.mark.parametrize("among", [None, np.array([5, 900, 17, 3])])
def test_the_most_likely_token_and_its_probability(among: np.ndarray | None) -> None:
    logits = np.random.default_rng(1).normal(0, 6, 1000).astype(np.float32)
    some = np.arange(1000) if among is None else among
    shares = np.exp(logits[some].astype(np.float64))
    shares /= shares.sum()
    ranked = some[np.argsort(shares)[::-1]]
    token, share = confidence.argmax_with_probability(logits, among)
    assert token == ranked[0] == confidence.argmax(logits, among)
    assert share == pytest.approx(shares.max(), abs=1e-4)
    assert [token for token, _ in confidence.top_k(logits, 3, among)] == list(ranked[:3])


def decisions(threshold: float, *probabilities: float) -> list[str]:
    gate = ConfidenceGate(threshold)
    return [gate.add(probability) for probability in probabilities]


def test_a_line_is_shown_then_held_then_ended() -> None:
    assert decisions(0.5, 0.9, 0.6, 0.6, 0.9, 0.8) == ["show", "show", "hold", "hold", "stop"]


def test_without_a_threshold_everything_is_shown() -> None:
    assert set(decisions(0.0, 0.1, 0.01, 0.5)) == {"show"}


def test_the_line_below_a_blank_one_counts_as_the_first() -> None:
    gate = ConfidenceGate(0.5)
    assert gate.add(1.0) == "show"
    gate.end_line(is_blank=True)
    assert gate.add(0.4) == "hold"
    assert gate.confidence == pytest.approx(0.4)
    gate.end_line(is_blank=False)
    gate.add(0.9)
    assert gate.confidence == pytest.approx(0.4)
