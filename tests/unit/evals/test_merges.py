"""Random changes of a user and of two agents: no line is lost or doubled."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from evals import merges
from lcursor.changes.merge import rebase
from lcursor.changes.records import Change, Lines


def test_no_line_is_lost_or_doubled() -> None:
    totals = merges.measure(300, seed=2)
    assert totals.is_right, totals
    assert totals.apart > 100
    assert totals.conflicts > 20


@pytest.mark.parametrize("damage", ["forget one", "keep old lines"])
def test_a_wrong_merge_is_found(monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    def wrong(changes: Sequence[Change], old: Lines, now: Lines) -> list[Change | None]:
        found = rebase(changes, old, now)
        if damage == "forget one":
            return found[1:]
        return [each and Change(each.first_row, each.first_row, (), each.new) for each in found]

    monkeypatch.setattr(merges, "rebase", wrong)
    assert not merges.measure(20).is_right
