"""Predict the next edits: run all predictors, apply common guards, and rank the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from lcursor.code import languages, symbols
from lcursor.next_edit import rename, repetition, signature, trees
from lcursor.next_edit.records import Edit, Lines, Proposal, Texts

Predictor = Callable[[Texts, Sequence[Edit]], Sequence[Proposal]]
PREDICTORS: Final[tuple[Predictor, ...]] = (
    rename.proposals,
    signature.proposals,
    repetition.proposals,
)
"""More certain ones first: of two proposals for a row, the first one counts."""
MAX_PROPOSALS: Final = 50
MAX_CHECKED: Final = 3
"""Proposals whose syntax is checked; those behind them are never shown first."""


def predict(texts: Texts, edits: Sequence[Edit]) -> list[Proposal]:
    """Return the proposals worth showing, best first.

    Args:
        texts: the current lines of the known files, with all edits.
        edits: the last edits of the user, oldest first.
    """
    if not edits:
        return []
    undone = {(edit.path, edit.new, edit.old) for edit in edits}
    by_row: dict[tuple[str, int], Proposal] = {}
    for one in PREDICTORS:
        for found in one(texts, edits):
            if (found.path, found.old, found.new) not in undone and found.old != found.new:
                by_row.setdefault((found.path, found.row), found)
    last = edits[-1]
    ranked = sorted(
        by_row.values(),
        key=lambda one: (-one.confidence, one.path != last.path, abs(one.row - last.row), one.row),
    )
    checked = [
        one
        for at, one in enumerate(ranked[:MAX_PROPOSALS])
        if at >= MAX_CHECKED or not adds_error(texts[one.path], one)
    ]
    return checked


def adds_error(lines: Lines, proposal: Proposal) -> bool:
    """Return whether a proposal adds a syntax error to the top-level definition around it."""
    language = languages.detect(proposal.path)
    found = trees.tree(language, lines)
    if found is None:
        return False
    root, _ = found
    first, end = proposal.row, proposal.end_row
    for node in root.children:
        if node.start_point[0] <= proposal.row <= node.end_point[0]:
            first, end = min(first, node.start_point[0]), max(end, node.end_point[0] + 1)
    old = lines[first:end]
    new = lines[first : proposal.row] + proposal.new + lines[proposal.end_row : end]
    return not symbols.parses_no_worse(old, new, language)
