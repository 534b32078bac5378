"""Which token is the most likely one."""

from __future__ import annotations

import numpy as np
import pytest

from lcursor.fim import likelihood


@pytest.mark.parametrize("among", [None, np.array([5, 900, 17, 3])])
def test_the_most_likely_token_and_its_probability(among: np.ndarray | None) -> None:
    logits = np.random.default_rng(1).normal(0, 6, 1000).astype(np.float32)
    some = np.arange(1000) if among is None else among
    shares = np.exp(logits[some].astype(np.float64))
    shares /= shares.sum()
    ranked = some[np.argsort(shares)[::-1]]
    token, share = likelihood.argmax_with_probability(logits, among)
    assert token == ranked[0] == likelihood.argmax(logits, among)
    assert share == pytest.approx(shares.max(), abs=1e-4)
    assert [token for token, _ in likelihood.top_k(logits, 3, among)] == list(ranked[:3])
