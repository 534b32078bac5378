"""`eval scan`: its windows and figures. The scan itself is tested with the model."""

from __future__ import annotations

import pytest

from evals.next_edit import scan
from evals.next_edit.commits import Commit, Step

LINES = tuple(f"line_{row} = {row}" for row in range(40))
COMMIT = Commit(
    "c",
    {"a.py": LINES},
    {},
    (
        Step("a.py", 3, (LINES[3],), ("line_3 = 0",)),
        Step("a.py", 9, (), ("added = 1", "added = 2")),
        Step("a.py", 12, (LINES[12], LINES[13]), ()),
    ),
)


@pytest.mark.parametrize("seed", range(5))
def test_one_window_has_the_next_step_and_the_other_none(seed: int) -> None:
    found = list(scan.pairs(COMMIT, seed))
    assert len(found) == scan.STATES
    for place, other in found:
        assert len(place.now) == len(other.now) == scan.ROWS
        assert place.now != place.final
        assert other.now == other.final
        assert {*other.now} <= {*LINES} - {LINES[row] for row in (3, 8, 9, 12, 13)}
        assert 1 <= len(place.edits) <= 2
        assert place.edits == other.edits


def test_a_part_of_the_change_is_right_and_anything_else_is_not() -> None:
    now, final = "a = f(x)", "b = f(y)"
    assert scan.is_right(now, "b = f(x)", final)
    assert scan.is_right(now, final, final)
    assert not scan.is_right(now, now, final)
    assert not scan.is_right(now, "b = g(x)", final)
    assert not scan.is_right(now, "b = f(x)", now)


def test_a_scan_goes_on_behind_three_tokens_that_are_in_the_window() -> None:
    own = [1, 2, 3, 4, 5, 6]
    assert scan.resync(own, 1, [9, 3, 4]) is None
    assert scan.resync(own, 1, [9, 3, 4, 5]) == 5
    assert scan.resync(own, 3, [1, 2, 3]) is None


def test_the_area_under_the_curve() -> None:
    assert scan.auc([3, 2], [1, 0]) == 1
    assert scan.auc([1, 0], [1, 0]) == 0.5
    assert scan.auc([0], [1]) == 0
    assert scan.auc([], [1]) is None


def result(confidence: float, *, is_right: bool) -> scan.Scanned:
    return scan.Scanned("c", "a.py", 0, True, 1, 1, 1, confidence, is_right, ("x",), 5)


def test_the_report_names_the_confidence_from_which_half_is_right() -> None:
    found = [result(0.9, is_right=True), result(0.8, is_right=False), result(0.7, is_right=False)]
    document = scan.as_dict(found, {"model": "m", "repositories": 1})
    assert document["best"] == {"confidence": 0.8, "shown": 2, "right": 1}
    assert document["texts"]["confidence"] == 1.0
    assert "1 of 2" in "\n".join(scan.as_markdown({**document, "machine": {}, "command": ""}))
