"""Predict the next edits: run all predictors, and rank the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from lcursor.next_edit.records import Edit, Proposal, Texts

Predictor = Callable[[Texts, Sequence[Edit]], Sequence[Proposal]]
PREDICTORS: Final[tuple[Predictor, ...]] = ()


def predict(texts: Texts, edits: Sequence[Edit]) -> list[Proposal]:
    """Return the proposals worth showing, best first.

    Args:
        texts: the current lines of the known files, with all edits.
        edits: the last edits of the user, oldest first.
    """
    return [found for one in PREDICTORS for found in one(texts, edits)]
